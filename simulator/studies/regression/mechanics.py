"""Mechanics: what a change of a metric is made of, from the other metrics of both sides. It runs nothing.

Means of latencies are sums, and rates are products; their parts explain a change exactly. For what has no such parts,
the work behind it is told: preemptions, steps, how full they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from simulator.studies.regression.comparing import Change
from simulator.studies.regression.names import STEM, label, shown

Metrics = Mapping[str, float | None]
SUMS = {"mean_ttft_ms": {"mean_queue_time_ms": "queue time", "mean_ttft_preemption_ms": "preemption",
                         "mean_ttft_prefill_ms": "prefill", "mean_ttft_delivery_ms": "delivery"},
        "mean_e2el_ms": {"mean_ttft_ms": "until the first token", "": "after it"}}
"""Means that are sums, and their parts in words; "" is the rest."""
WORK = ("steps", "mean_batch_size", "preemptions", "recomputed_tokens", "cached_tokens", "kv_usage_mean",
        "padding_tokens", "slot_utilization")
"""What work a run was, for metrics that have no parts."""
MOST = 3
"""Figures of the work that are told."""


def mechanics(change: Change, before: Metrics, after: Metrics) -> str:
    """What the change of a metric is made of, in words; empty where nothing can be said."""
    if change.name in ("output_throughput", "duration", "request_throughput"):
        return _product(change.name, before, after) or _work(change.name, before, after)
    found = STEM.fullmatch(change.name)
    mean = f"mean_{found['metric']}_ms" if found else ""
    return _sum(mean, before, after, own=mean == change.name) or _work(change.name, before, after)


def _sum(name: str, before: Metrics, after: Metrics, own: bool) -> str:
    """The parts of a mean that moved, in ms."""
    moved = _moved(name, before, after)
    if name not in SUMS or moved is None:
        return ""
    parts = {words: _moved(part, before, after) for part, words in SUMS[name].items() if part}
    if None in parts.values():
        return ""
    if rest := SUMS[name].get(""):
        parts[rest] = moved - sum(part or 0.0 for part in parts.values())
    told = ", ".join(f"{words} {signed(part)}" for words, part in parts.items() if part and abs(part) >= 1e-6)
    return f"{'' if own else f'its mean moved by {signed(moved)} ms: '}{told}{' ms' if own else ''}" if told else ""


def _product(name: str, before: Metrics, after: Metrics) -> str:
    """Throughput as what a step yields times steps a second; the duration as steps times their length."""
    sides = [[side.get(each) or 0.0 for each in (name, "steps", "duration")] for side in (before, after)]
    if not all(value for side in sides for value in side):
        return ""
    value, steps, lasted = (now / was for was, now in zip(*sides, strict=True))
    if name == "duration":
        return f"{_times(steps)} the steps, {_times(lasted / steps)} as long each"
    what = "tokens" if name == "output_throughput" else "requests"
    return f"{_times(value * lasted / steps)} the {what} a step, {_times(steps / lasted)} the steps a second"


def _work(name: str, before: Metrics, after: Metrics) -> str:
    """The figures of the work that moved most."""
    moved = {each: (before.get(each), after.get(each)) for each in WORK if each != name}
    pairs = [(abs(now - was) / max(abs(now), abs(was)), each, was, now) for each, (was, now) in moved.items()
             if was is not None and now is not None and was != now]
    most = sorted(pairs, key=lambda pair: (-pair[0], WORK.index(pair[1])))[:MOST]
    return ", ".join(f"{label(each)} {shown(was)} -> {shown(now)}" for _, each, was, now in most)


def _moved(name: str, before: Metrics, after: Metrics) -> float | None:
    was, now = before.get(name), after.get(name)
    return None if was is None or now is None else now - was


def signed(value: float) -> str:
    """A difference with its sign."""
    return f"{'+' if value >= 0 else '-'}{shown(abs(value))}"


def _times(factor: float) -> str:
    return f"{factor:.3g} x"
