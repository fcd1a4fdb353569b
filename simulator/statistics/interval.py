"""Interval: an estimate, and between which values the truth lies. It does not know how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.errors import InputError

LEVEL = 0.95
"""How sure an interval is where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval. Too few values leave a side open: it is infinite then.

    Attributes:
        low, high: The ends, both included.
        mean: The estimate between them: a mean, a share, or a quantile.
        level: In which part of all repetitions such an interval holds the truth, such as 0.95.
    """

    low: float
    mean: float
    high: float
    level: float = LEVEL

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def plain(self) -> dict[str, float | None]:
        """For JSON, which has no infinity: an open side is None."""
        return {name: value if isfinite(value) else None
                for name, value in (("low", self.low), ("mean", self.mean), ("high", self.high), ("level", self.level))}


def numbers(values: ArrayLike) -> NDArray[np.float64]:
    """The values of an interval as a column. Raises InputError for none, and for what is no finite number."""
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or not len(found):
        raise InputError("an interval needs a value: there is none" if not found.size else
                         f"an interval takes a list of values, not a table of {' x '.join(map(str, found.shape))}")
    if not np.isfinite(found).all():
        raise InputError(f"an interval takes finite numbers, not {found[~np.isfinite(found)][0]:g}")
    return found


def tail_of(level: float) -> float:
    """The chance to leave on each side of an interval: 0.025 for a level of 0.95."""
    if not 0 < level < 1:
        raise InputError(f"an interval is sure to a part between 0 and 1, not to {level:g}: 0.95 is usual")
    return (1 - level) / 2
