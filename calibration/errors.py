"""How far predicted times lie from measured ones, and which rows a fit may not see when it is asked that.

Errors are relative to the measured time, in percent; a positive bias predicts too long.
"""

import numpy as np
from numpy.typing import NDArray

from cost_models.fits import Error

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FOLDS = 4
LEAVE_ONE_OUT_BELOW = 24
"""With fewer rows each is a fold of its own."""
QUANTILES = np.linspace(0.01, 0.99, 15)
"""Of measured over predicted: what ``noise`` draws from. Beyond them few rows make a long tail, which would count as
much as the rows between two of them."""


def error(predicted: Floats, measured: Floats, *, held_out: bool = True) -> Error:
    """The error of some predictions, as a profile states it.

    >>> error(np.array([11.0, 19.0]), np.array([10.0, 20.0])).bias_percent
    2.5
    """
    relative = 100 * (predicted / measured - 1)
    size = np.abs(relative)
    residuals = np.quantile(measured / predicted, QUANTILES)
    return Error(round(float(size.mean()), 2), round(float(np.percentile(size, 95)), 2),
                 round(float(relative.mean()), 2), len(measured), held_out,    # type: ignore[arg-type]
                 tuple(round(float(value), 4) for value in residuals))


def folds(rows: int, seed: int) -> Ints:
    """For each row the number of the fold that keeps it back; the same for the same seed."""
    parts = FOLDS if rows >= LEAVE_ONE_OUT_BELOW else rows
    return np.random.default_rng(seed).permutation(rows) % parts
