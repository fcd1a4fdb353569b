"""Measures: what a claim is about, as a number read off one result. Each has a name, its unit in it, and one meaning.

Besides those listed here, every name of `Result.summary` is one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simulator.areas import times
from simulator.errors import choose
from simulator.result import Result


def batch_while_queued(result: Result) -> float | None:
    """Mean requests in a slot over the time in which others wait: the drain at the end would make it smaller."""
    took = _queued(result)
    return times(result.record.step("running"), took) / int(took.sum()) if took.any() else None


def kv_holding_percent(result: Result) -> float | None:
    """KV memory that holds the KV of a token, in percent of the pool, over the time in which others wait."""
    record, took = result.record, _queued(result)
    holding = record.step("resident") + record.step("decodes") + record.step("prompt")
    pool = result.memory.capacity * result.memory.block_size * int(took.sum())
    return 100 * times(holding, took) / pool if pool else None


def median_normalised_latency_ms(result: Result) -> float | None:
    """Median of a request's end-to-end latency over its output tokens, ms a token."""
    line = result.timeline
    return float(np.median(line.e2el / line.output)) / 1e6 if len(line) else None


def last_pass_s(result: Result) -> float | None:
    """From the start of the last pass of a workload to the last token delivered, seconds."""
    line = result.timeline
    start = result.setup.trace.arrival.max()
    return float(line.last_delivered.max() - start) / 1e9 if len(line) else None


def first_pass_s(result: Result) -> float | None:
    """From the start to the last token of those who came at 0, seconds."""
    line = result.timeline
    first = line.last_delivered[result.setup.trace.arrival[line.request] == 0]
    return float(first.max()) / 1e9 if len(first) else None


def slot_use_percent(result: Result) -> float | None:
    """Slot-seconds that compute new tokens, in percent of all."""
    share = result.slot_ledger.share("decode", "prefill")
    return None if share is None else 100 * share


def p99_itl_s(result: Result) -> float | None:
    """99th percentile of the gaps between tokens, seconds."""
    value = result.latency("itl").percentile(99)
    return None if value is None else value / 1e9


def median_ttft_s(result: Result) -> float | None:
    """Median time to the first token, seconds."""
    value = result.latency("ttft").percentile(50)
    return None if value is None else value / 1e9


MEASURES: dict[str, Callable[[Result], float | None]] = {each.__name__: each for each in (
    batch_while_queued, kv_holding_percent, median_normalised_latency_ms, last_pass_s, first_pass_s, slot_use_percent,
    p99_itl_s, median_ttft_s)}
"""By name."""


def measure(result: Result, name: str) -> float | None:
    """A measure of this name, or the entry of the summary; None where nothing was measured."""
    if name in MEASURES:
        return MEASURES[name](result)
    summary = result.summary()
    value = summary[choose("measure", name, summary)]
    return None if value is None else float(value)


def _queued(result: Result) -> NDArray[np.int64]:
    """How long each step lasts, ns; 0 for those in which nobody waits."""
    record = result.record
    return np.where(record.step("waiting") > 0, record.ends - record.starts, 0)
