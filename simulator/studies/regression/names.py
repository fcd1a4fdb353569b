"""Names: what a metric of a result is called in words, in which unit, and which way is better. It knows no value."""

from __future__ import annotations

import re
from difflib import get_close_matches

from simulator.errors import InputError
from simulator.metrics import METRICS, json_keys

STEM = re.compile(r"(?P<stem>mean|median|std|p\d{1,3}(?:\.\d+)?)_(?P<metric>\w+)_ms")
NAMES = tuple(name for metric in METRICS for name in json_keys(metric))
"""What a simulated run tells, as the JSON spells it."""
SPEED = ("duration", "request_throughput", "output_throughput", "total_token_throughput", "gpu_seconds")
"""Different words for how fast all of it was done."""
FELT = frozenset([*SPEED, "completed", "rejected", "failed", "skipped", "aborted", "timed_out", "shed",
                  "request_goodput", "ttft", "tpot", "itl", "e2el"])
"""Metrics that a client feels or an operator pays; the others are the work behind them."""


def metric_of(name: str) -> str | None:
    """Which of METRICS a name of the JSON belongs to, or is; None if to none."""
    if name in METRICS:
        return name
    found = STEM.fullmatch(name)
    return found["metric"] if found and found["metric"] in METRICS and METRICS[found["metric"]].spread else None


def label(name: str) -> str:
    """What it is called in a table."""
    metric, found = metric_of(name), STEM.fullmatch(name)
    if metric is None:
        return name
    return f"{METRICS[metric].label}, {found['stem']}" if found else METRICS[metric].label


def unit(name: str) -> str:
    """Of its value; nothing for counts and shares."""
    metric = metric_of(name)
    told = METRICS[metric].unit if metric else ""
    return told if told in ("ms", "s", "%", "slot-s", "GPU-s") else ""


def better(name: str) -> str | None:
    """"higher" or "lower"; None where neither way is an improvement."""
    metric = metric_of(name)
    return METRICS[metric].better if metric else None


def felt(name: str) -> bool:
    """Whether it is what a client feels or an operator pays, and no measure of scatter."""
    return metric_of(name) in FELT and not name.startswith("std_") and better(name) is not None


def extreme(name: str) -> bool:
    """Whether few requests or one moment make it, so that it differs from run to run: scatter, a tail, a maximum."""
    found = STEM.fullmatch(name)
    stem = found["stem"] if found else ""
    return stem == "std" or stem.startswith("p") or name.startswith("max_") or name.endswith("_max")


def subject(name: str) -> str | None:
    """What a metric is about: names with the same subject tell the same story."""
    metric = metric_of(name)
    return "speed" if metric in SPEED else metric


def belongs(name: str, wanted: str) -> bool:
    """Whether a name is the wanted one, or one of its mean, median and percentiles."""
    return wanted in (name, metric_of(name))


def check(name: str) -> str:
    """The name, if it is one of a metric, or of all of its statistics. Raises InputError with the nearest one."""
    if metric_of(name) is None:
        raise InputError(f"unknown metric '{name}'{hint(name)} (`batchsim run --json` shows all names)")
    return name


def hint(name: str) -> str:
    """The nearest name that there is, as a question; nothing if none is near."""
    near = get_close_matches(name, [*NAMES, *METRICS], n=1, cutoff=0.6)
    return f": did you mean '{near[0]}'?" if near else ""


def shown(value: float | None) -> str:
    """A value as tables have it."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.4g}"
