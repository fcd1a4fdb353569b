"""Which sizes a table keeps: as few knots as hold the straight lines between them close to what was measured.

Knots are added one by one where the miss is largest, so that the two edges of a tile step both become knots. What is
not a knot was not fitted: it is what the table is tested on.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def curve_knots(sizes: Sequence[int], times: Floats, most: int, miss: float) -> list[int]:
    """Places of at most so many sizes between which a straight line misses no measured one by more than `miss`.

    Args:
        sizes: Ascending.
        times: A row a size; with several columns each is a curve of its own, and the mean miss counts.
        most: Knots at most.
        miss: Relative miss that is good enough.

    >>> curve_knots([0, 1, 2, 3, 4], np.array([1.0, 1.0, 2.0, 2.0, 2.0]), 9, 0.01)
    [0, 1, 2, 4]
    """
    table = times.reshape(len(sizes), -1)
    kept = sorted({0, len(sizes) - 1})
    while len(kept) < min(most, len(sizes)):
        misses = np.abs(_between(sizes, table, kept) / table - 1).mean(axis=1)
        if misses.max() <= miss:
            break
        kept = sorted([*kept, int(misses.argmax())])
    return kept


def monotone(times: Floats) -> Floats:
    """The same times, never falling along any axis: half-way between the largest so far and the smallest to come.

    >>> monotone(np.array([5.0, 3.0, 4.0, 9.0])).tolist()
    [4.0, 4.0, 4.5, 9.0]
    """
    for axis in range(times.ndim):
        smallest_to_come = np.flip(np.minimum.accumulate(np.flip(times, axis), axis), axis)
        times = (np.maximum.accumulate(times, axis) + smallest_to_come) / 2
    return times


def _between(sizes: Sequence[int], table: Floats, kept: Sequence[int]) -> Floats:
    known = [sizes[place] for place in kept]
    return np.stack([np.interp(sizes, known, column[list(kept)]) for column in table.T], axis=1)
