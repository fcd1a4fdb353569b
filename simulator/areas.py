"""Areas under step functions of time, exact in integers. They know no run: only instants, intervals and amounts.

64 bits do not hold a pool's tokens times a day's nanoseconds. Areas from the start of a long run may wrap around; the
difference of two edges is right all the same as long as a single bin fits, and where even that does not, Python's own
integers take over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.columns import Ints, Packed

FEW = 16
"""Rows that Python's own integers add up as fast as numpy."""


@dataclass(frozen=True, eq=False)
class Level:
    """An amount in each of several intervals that follow one another, and 0 between them.

    Attributes:
        start, end: Of the intervals, on one clock.
        amount: In each of them.
    """

    start: Ints
    end: Ints
    amount: Packed

    def total(self) -> int:
        """The area under all of it."""
        return times(self.amount, self.end - self.start)

    def between(self, edges: Ints) -> Any:
        """The area between each edge and the next; whole numbers of Python's own where 64 bits may not hold it."""
        amount: Any = self.amount
        if _largest(amount) * _largest(np.diff(edges)) >= 1 << 63:
            amount = amount.astype(object)
        return np.diff(area_of_intervals(self.start, self.end, amount, edges))


def times(amounts: Packed, durations: Ints) -> int:
    """The sum of amount x duration."""
    rows = (1 << 63) // (_largest(amounts) * _largest(durations) + 1)    # of which 64 bits hold the sum for certain
    if rows < FEW:
        return sum(amount * lasts for amount, lasts in zip(amounts.tolist(), durations.tolist(), strict=True))
    return sum(int(amounts[at:at + rows] @ durations[at:at + rows]) for at in range(0, len(amounts), rows))


def _largest(values: Packed) -> int:
    return int(np.abs(values).max(initial=0))


def area_of_counts(instants: Ints, edges: Ints) -> Ints:
    """Area up to each edge under the number of instants that have passed."""
    instants = np.sort(instants)
    passed = np.searchsorted(instants, edges)
    return passed * edges - np.concatenate(([0], np.cumsum(instants)))[passed]


def area_of_intervals(starts: Ints, ends: Ints, amounts: Packed, edges: Ints) -> Ints:
    """Area up to each edge under a level that is `amounts` inside of intervals in a row and 0 between them."""
    if not len(starts):
        return np.zeros_like(edges)
    whole = np.concatenate(([0], np.cumsum(amounts * (ends - starts))))
    over = np.searchsorted(ends, edges, side="right")
    current = np.minimum(over, len(ends) - 1)
    part = np.clip(edges - starts[current], 0, ends[current] - starts[current]) * amounts[current]
    return whole[over] + np.where(over < len(ends), part, 0)
