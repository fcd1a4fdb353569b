"""How far predicted times lie from measured ones, and which rows are kept back to ask that.

Errors are relative to the measured time, in percent; a positive bias predicts too long.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
HELD_OUT = 0.25
"""Share of the rows that no fit sees."""


@dataclass(frozen=True)
class Errors:
    """Of one kind of step: mean absolute error, its 95th percentile, and mean error, in percent."""

    mape_percent: float
    p95_percent: float
    bias_percent: float

    def rounded(self) -> dict[str, float]:
        """As a profile states them."""
        return {name: round(value, 2) for name, value in vars(self).items()}


def errors(predicted: Floats, measured: Floats) -> Errors:
    """The errors of some predictions.

    >>> errors(np.array([11.0, 19.0]), np.array([10.0, 20.0])).rounded()
    {'mape_percent': 7.5, 'p95_percent': 9.75, 'bias_percent': 2.5}
    """
    relative = 100 * (predicted / measured - 1)
    size = np.abs(relative)
    return Errors(float(size.mean()), float(np.percentile(size, 95)), float(relative.mean()))


def held_out(rows: int, seed: int, share: float = HELD_OUT) -> Mask:
    """Which of so many rows are kept back; at least one of two, never all. The same for the same seed."""
    kept_back = min(max(1, round(rows * share)), rows - 1)
    mask = np.zeros(rows, bool)
    mask[np.random.default_rng(seed).permutation(rows)[:kept_back]] = True
    return mask
