"""The slot bound: what freed slots alone can be worth at most, in steps, by the lengths of the answers.

A static batch takes as many steps as its longest answer. Slots that are refilled at once take at least as many steps
as there are tokens for each slot. The ratio of the two is a bound for any schedule with as many slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True)
class SlotBound:
    """The bound for so many slots.

    Attributes:
        slots: In each batch.
        batches: Of the batches as they were formed: never exceeded.
        order: Expected for batches drawn at random from the same lengths: E[longest of a batch] / E[length].
        harmonic: The same for exponential lengths: 1 + 1/2 + ... + 1/slots.
    """

    slots: int
    batches: Fraction
    order: Fraction
    harmonic: Fraction


def slot_bound(lengths: Sequence[int], slots: int, longest: int) -> SlotBound | None:
    """The bound for answers of these lengths whose batches had longest answers of so many tokens in all.

    None without an answer.
    """
    if not len(lengths):
        return None
    return SlotBound(slots, Fraction(slots * longest, sum(lengths)), expected_longest(lengths, slots)
                     / Fraction(sum(lengths), len(lengths)), harmonic(slots))


def expected_longest(lengths: Iterable[int], draws: int) -> Fraction:
    """E[the longest of `draws` of these lengths], each drawn from all of them."""
    values, counts = np.unique(np.asarray(lengths, np.int64), return_counts=True)
    at_most = [int(count) for count in np.cumsum(counts)]
    below = [0, *at_most[:-1]]
    ways = sum(value * (upto ** draws - less ** draws)
               for value, upto, less in zip(values.tolist(), at_most, below, strict=True))
    return Fraction(ways, at_most[-1] ** draws)


def harmonic(count: int) -> Fraction:
    """1 + 1/2 + ... + 1/count."""
    return sum((Fraction(1, each) for each in range(1, count + 1)), Fraction(0))
