"""Coefficients that are never negative, found by relative least squares: a 2% miss weighs the same at 5 and at 500 ms.

Lawson and Hanson's active-set method on the normal equations. It knows nothing of steps or kernels.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TOLERANCE = 1e-10
"""Of the gradient, once each column is scaled to length 1."""
TINY = np.finfo(float).tiny


def relative_nonnegative(columns: Floats, measured: Floats, fixed: Floats | float = 0.0) -> Floats:
    """Coefficients of at least 0 with the least sum of ((fixed + columns @ coefficients) / measured - 1)^2.

    Args:
        columns: A row a measurement, a column a coefficient.
        measured: Positive, one a row.
        fixed: What is paid in any case.

    A column of zeros gets 0.

    >>> relative_nonnegative(np.array([[1.0, 1.0], [1.0, 3.0]]), np.array([5.0, 11.0])).round(9).tolist()
    [2.0, 3.0]
    """
    relative = columns / measured[:, None]
    lengths = np.sqrt((relative**2).sum(axis=0))
    scale = np.where(lengths > 0, lengths, 1.0)
    relative = relative / scale
    return _lawson_hanson(relative.T @ relative, relative.T @ (1 - fixed / measured)) / scale


def _lawson_hanson(gram: Floats, moment: Floats) -> Floats:
    """The non-negative x with the least x' gram x - 2 x' moment."""
    found = np.zeros(len(moment))
    free = np.zeros(len(moment), bool)
    for _ in range(3 * len(moment) + 1):
        gradient = np.where(free, -np.inf, moment - gram @ found)
        if gradient.max() <= TOLERANCE * max(1.0, np.abs(moment).max()):
            break
        free[gradient.argmax()] = True
        found = _settle(gram, moment, found, free)
    return found


def _settle(gram: Floats, moment: Floats, found: Floats, free: NDArray[np.bool_]) -> Floats:
    """The optimum over the free coefficients; those that would turn negative are fixed at 0 on the way."""
    while free.any():
        wanted = np.zeros_like(found)
        wanted[free] = np.linalg.lstsq(gram[np.ix_(free, free)], moment[free], rcond=None)[0]
        below = free & (wanted <= 0)
        if not below.any():
            return wanted
        step = (found[below] / np.maximum(found[below] - wanted[below], TINY)).min()
        found = found + step * (wanted - found)
        free &= ~(below & (found <= TOLERANCE))
        found[~free] = 0.0
    return found
