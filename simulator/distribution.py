"""Distribution: values that may occur many times each, and their mean, spread and exact percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERCENTILE_METHOD = "linear"
"""Between the two nearest ranks: the default of numpy.percentile."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Values in ascending order, and how often each occurs.

    It answers as numpy does on the array with every value repeated, without making that array. None, and not 0, is the
    answer of an empty one.
    """

    values: NDArray[Any]
    weights: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any], weights: NDArray[np.int64] | None = None) -> Distribution:
        """The distribution of values in any order; each occurs once where no weights are given."""
        if weights is None:
            return cls(np.sort(values), np.ones(len(values), np.int64))
        order = np.argsort(values, kind="stable")
        order = order[weights[order] > 0]
        return cls(values[order], weights[order])

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        """How many are at most as far up as each value."""
        return np.cumsum(self.weights)

    @property
    def count(self) -> int:
        """How many there are, repetitions included."""
        return int(self._ranks[-1]) if len(self._ranks) else 0

    def mean(self) -> float | None:
        """The mean, every repetition counted."""
        return float((self.values.astype(float) * self.weights).sum()) / self.count if self.count else None

    def std(self) -> float | None:
        """The standard deviation of the population."""
        mean = self.mean()
        if mean is None:
            return None
        return sqrt(float(((self.values - mean) ** 2 * self.weights).sum()) / self.count)

    def percentile(self, percent: float) -> float | None:
        """The percentile by linear interpolation between the two nearest ranks."""
        if not self.count:
            return None
        rank = (self.count - 1) * (percent / 100)
        below = floor(rank)
        low, high = self._at(below), self._at(min(below + 1, self.count - 1))
        part = rank - below
        # Measured from the nearer end, as numpy does it: the last bit is the same.
        return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))

    def _at(self, rank: int) -> Any:
        """The value of a rank, counted from 0."""
        return self.values[np.searchsorted(self._ranks, rank, side="right")].item()
