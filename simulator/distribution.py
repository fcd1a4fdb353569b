"""Distribution: values that may occur many times each, and their mean, spread and exact percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.frozen import Kept

PERCENTILE_METHOD = "linear"
"""Between the two nearest ranks: the default of numpy.percentile."""


@dataclass(frozen=True, eq=False)
class Distribution(Kept):
    """Values in ascending order, and how often each occurs; without weights, once.

    It answers as numpy does on the array with every value repeated, without making that array. None, and not 0, is the
    answer of an empty one.
    """

    values: NDArray[Any]
    weights: NDArray[Any] | None = None

    @classmethod
    def of(cls, values: NDArray[Any], weights: NDArray[Any] | None = None) -> Distribution:
        """The distribution of values in any order; each occurs once where no weights are given."""
        if weights is None:
            return cls(np.sort(values))
        order = np.argsort(values, kind="stable")
        order = order[weights[order] > 0]
        return cls(values[order], weights[order])

    @property
    def count(self) -> int:
        """How many there are, repetitions included."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    def mean(self) -> float | None:
        """The mean, every repetition counted."""
        return self._mean_of(self.values.astype(float)) if self.count else None

    def std(self) -> float | None:
        """The standard deviation of the population."""
        mean = self.mean()
        return None if mean is None else sqrt(self._mean_of((self.values.astype(float) - mean) ** 2))

    def _mean_of(self, amounts: NDArray[np.float64]) -> float:
        """The mean of an amount for each value."""
        return float((amounts if self.weights is None else amounts * self.weights).sum()) / self.count

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
        at = rank if self.weights is None else np.searchsorted(np.cumsum(self.weights), rank, side="right")
        return self.values[at].item()
