"""Plausible: whether a record of a result can be one - kinds, ranges, and what must agree. It reads no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from simulator.documents import quoted
from simulator.errors import InputError
from simulator.kinds import OURS
from simulator.metrics import METRICS, Metric

Record = Mapping[str, Any]
WHOLE = ("requests", "tries", "tokens", "count", "replicas")
"""Units of which there are only whole numbers."""
SHARES = ("share", "index")
LARGEST, NEAR = 1e300, 1e-6
"""What is not smaller is no measurement; two figures nearer than this share of them are one."""
ENDS = ("completed", "rejected", "failed", "skipped", "aborted")
"""How a request may end, each in one of these ways."""
ARRAYS = ("input_lens", "output_lens", "ttfts", "latencies", "queue_times", "itls", "start_times", "errors")
RATES = {"request_throughput": "completed", "output_throughput": "total_output_tokens"}
"""What is so much for each second of the duration."""


def check(document: Record, where: str) -> None:
    """Raise InputError, one line, for a record that no run can have left."""
    for problem in _problems(document):
        raise InputError(f"{where}: is no plausible result: {problem}")


def _problems(document: Record) -> Iterator[str]:
    for metric, about in METRICS.items():
        for name in _names(document, metric, about):
            yield from _out_of_range(name, document[name], about)
        yield from _out_of_order(document, metric)
    if str(document.get("backend", "")).startswith(OURS):
        yield from _disagreeing(document)
        yield from _of_other_lengths(document)


def _names(document: Record, metric: str, about: Metric) -> list[str]:
    """The names under which a record has a metric."""
    return [name for name in document if name == metric or (about.spread and name.endswith(f"_{metric}_ms"))]


def _out_of_range(name: str, value: Any, about: Metric) -> Iterator[str]:
    if value is None:
        return
    if not _is_number(value):
        yield f"{name} must be a number or null, not {quoted(value)}"
    elif value < 0:
        yield f"{name} must be at least 0, not {value!r}"
    elif about.unit in SHARES and value > 1 + NEAR:
        yield f"{name} must be at most 1, not {value!r}"
    elif about.unit in WHOLE and value % 1:
        yield f"{name} must be a whole number, not {value!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST and isfinite(value)


def _out_of_order(document: Record, metric: str) -> Iterator[str]:
    """A percentile below a lower one, or a bound below the lower one."""
    for low, high in ((f"median_{metric}_ms", f"p99_{metric}_ms"), (f"{metric}_low", f"{metric}_high")):
        if (pair := _numbers(document, low, high)) and pair[0] > pair[1] * (1 + NEAR):
            yield f"{low} must be at most {high}, not {pair[0]!r} and {pair[1]!r}"


def _disagreeing(document: Record) -> Iterator[str]:
    """Requests that end in more or fewer ways than there are, and rates that are not what came in that time."""
    told = [document.get(name) for name in ("num_prompts", "duration", *RATES.values(), *ENDS)]
    wrong = next((value for value in told if value is not None and not (_is_number(value) and value >= 0)), None)
    if wrong is not None:
        yield f"its counts and its duration must be numbers of at least 0, not {quoted(wrong)}"
        return
    ends = sum(document.get(name) or 0 for name in ENDS)
    if (count := document.get("num_prompts")) is not None and ends != count:
        yield f"{', '.join(ENDS)} must come to num_prompts, {count}, and come to {ends}"
    for rate, what in RATES.items():
        if (found := _numbers(document, rate, "duration", what)) and not _near(found[0] * found[1], found[2]):
            yield f"{rate} must be {what} over duration, not {found[0]!r}"


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other), 1)


def _numbers(document: Record, *names: str) -> Sequence[float]:
    """The values of these names; none where one of them is no number."""
    values = [document.get(name) for name in names]
    return [float(value) for value in values if value is not None] if all(map(_is_number, values)) else ()


def _of_other_lengths(document: Record) -> Iterator[str]:
    if not isinstance(count := document.get("num_prompts"), int):
        return
    for name in ARRAYS:
        found = document.get(name, [None] * count)
        if not isinstance(found, list) or len(found) != count:
            yield f"{name} must list num_prompts entries"
