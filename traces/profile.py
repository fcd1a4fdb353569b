"""Curves of a trace: how its arrivals spread over time, and what request-level batches would waste on its outputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traces.arrivals import SECOND

if TYPE_CHECKING:
    from traces.columns import Int64
    from traces.trace import Trace

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Batch sizes of the slot-utilisation curve."""
MINUTE, HOUR, DAY = 60, 3_600, 86_400
ROUND_S = (1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR,
           3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 28 * DAY, 365 * DAY, 3_650 * DAY)
"""Widths of windows in s that people read easily."""
MOST_WINDOWS = 24


class Arrivals(NamedTuple):
    """How many requests arrive in each window of `window_s` seconds, from the first arrival on."""

    window_s: float
    counts: list[int]


def arrivals_over_time(trace: "Trace", most: int = MOST_WINDOWS) -> Arrivals:
    """Counts in at most `most` windows of a round width; below 24 s in all, of as many parts of the whole."""
    span = int(trace.arrival[-1] - trace.arrival[0]) if len(trace) else 0
    window = next((width * SECOND for width in ROUND_S if span < most * width * SECOND), span // most + 1)
    if span < most * SECOND:
        window = span // most + 1
    places = (trace.arrival - trace.arrival[0]) // window if len(trace) else trace.arrival
    return Arrivals(window / SECOND, np.bincount(places, minlength=min(most, span // window + 1)).tolist())


def slot_utilization(trace: "Trace", batches: Sequence[int] = BATCHES) -> dict[int, float]:
    """Share of slot-time that computes tokens if each `batch` requests in a row ran until their longest answer.

    Every step of a batch counts alike and a last batch that is not full counts in full. Sizes above the number of
    requests are left out.
    """
    return {batch: _share(trace.output, batch) for batch in batches if batch <= len(trace)}


def _share(output: "Int64", batch: int) -> float:
    longest = np.maximum.reduceat(output, np.arange(0, len(output), batch))
    return float(output.sum(dtype=float) / (batch * longest.sum(dtype=float)))


def reused_share(trace: "Trace") -> float | None:
    """Share of all prompt tokens that stand in a block seen before, or repeat the turn before; None if not known.

    It is what a prefix cache without bounds could save; partial blocks count as far as they reach.
    """
    if not len(trace):
        return None
    if trace.hash_ids is None:
        return None if trace.shared is None else float(trace.shared.sum(dtype=float) / trace.prompt.sum(dtype=float))
    assert trace.hash_block is not None
    first = np.zeros(len(trace.hash_ids.values), dtype=bool)
    first[np.unique(trace.hash_ids.values, return_index=True)[1]] = True
    lengths = trace.hash_ids.lengths
    at = np.arange(len(first)) - np.repeat(trace.hash_ids.starts[:-1], lengths)
    tokens = np.minimum(trace.hash_block, np.repeat(trace.prompt, lengths) - at * trace.hash_block)
    return float(tokens[~first].sum(dtype=float) / trace.prompt.sum(dtype=float))
