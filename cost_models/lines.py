"""Piecewise linear functions of whole numbers in whole femtoseconds, so that sums and strides are exact.

Below the first knot a line stays level. Beyond the last it goes on with the slope of its upper half, so that
one flat tile at the very end does not stop it. It knows no kernel.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from cost_models.linear import FS_PER_NS, HALF_NS, evenly_spaced


class Line(NamedTuple):
    """Knots from 0 on, the value at each in fs, and the slope behind each in fs."""

    at: list[int]
    fs: list[int]
    slope: list[int]

    def value(self, x: int) -> int:
        """The value at ``x`` in fs."""
        i = bisect_right(self.at, x) - 1
        return self.fs[i] + (x - self.at[i]) * self.slope[i]

    def time(self, x: int) -> int:
        """The value at ``x`` in ns, at least 1."""
        i = bisect_right(self.at, x) - 1
        return (self.fs[i] + (x - self.at[i]) * self.slope[i] + HALF_NS) // FS_PER_NS or 1

    def times(self, x: int, stride: int, k: int) -> list[int]:
        """``time`` at ``x``, ``x + stride``, ... (``k`` of them), piece by piece."""
        found: list[int] = []
        while k:
            i = bisect_right(self.at, x) - 1
            n = min(k, -((x - self.at[i + 1]) // stride)) if stride and i + 1 < len(self.at) else k
            found += evenly_spaced(self.fs[i] + (x - self.at[i]) * self.slope[i], stride * self.slope[i], n)
            x, k = x + n * stride, k - n
        return found


def line(at: Sequence[int], fs: Sequence[int]) -> Line:
    """The line through these points; slopes are whole, so that later knots may move by a few fs.

    >>> line([1, 3], [10, 30]).value(2), line([1, 3], [10, 30]).value(4)
    (20, 40)
    """
    slopes = [round((high - low) / (to - since)) for since, to, low, high in
              zip(at, at[1:], fs, fs[1:], strict=False)]
    values = [fs[0]]
    for since, to, slope in zip(at, at[1:], slopes, strict=False):
        values.append(values[-1] + (to - since) * slope)
    knots, slopes = list(at), [*slopes, _beyond(at, values)]
    if knots[0] > 0:
        return Line([0, *knots], [values[0], *values], [0, *slopes])
    return Line(knots, values, slopes)


def blend(low: Sequence[int], high: Sequence[int], at: int, since: int, to: int) -> list[int]:
    """``between`` for rows of values."""
    return [between(there, here, at, since, to) for there, here in zip(low, high, strict=True)]


def between(low: int, high: int, at: int, since: int, to: int) -> int:
    """The value at ``at``, given those at ``since`` and at ``to``; beyond ``to`` it does not fall."""
    if at > to and high < low:
        return high
    return low + (high - low) * (at - since) // (to - since)


def neighbours(knots: Sequence[int], x: int) -> tuple[int, int]:
    """Where the knots stand that ``x`` lies between; twice the first one below the knots, the last two beyond them."""
    if x <= knots[0] or len(knots) == 1:
        return 0, 0
    high = min(bisect_left(knots, x), len(knots) - 1)
    return high - 1, high


def _beyond(at: Sequence[int], values: Sequence[int]) -> int:
    half = bisect_right(at, at[-1] // 2) - 1
    if half < 0 or half == len(at) - 1:
        half = len(at) - 2
    return max(0, round((values[-1] - values[half]) / (at[-1] - at[half]))) if len(at) > 1 else 0
