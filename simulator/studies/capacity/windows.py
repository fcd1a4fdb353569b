"""Windows: requests in the order in which they come, cut into equal parts.

Requests depend on those beside them, windows hardly do. Copies of a request, where a trace was repeated, stand in one
window: they depend on each other however far apart they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints

WINDOWS = 20
"""As many as batch means want."""
LONG = 75
"""Requests of a window in which most of those are that a request depends on; of 10, intervals are much too narrow."""
FEWEST = 10
"""Requests of a window at least: with fewer than two of them nothing is cut."""


def cut(rows: int) -> list[slice]:
    """Windows of equally many requests, few and long rather than many and short; one where there are few."""
    windows = max(1, min(2, rows // FEWEST), min(WINDOWS, rows // LONG))
    edges = [rows * at // windows for at in range(windows + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


def shares(met: NDArray[np.bool_], original: Ints | None = None) -> tuple[float, ...]:
    """The share of each window that meets the limits; nothing of no requests.

    Args:
        met: Whether each request does.
        original: Of which row each one is a copy; None where there are none.
    """
    if original is not None and len(met):
        copies, times = np.unique(original, return_inverse=True, return_counts=True)[1:]
        kept = np.bincount(copies, weights=met)
        return tuple(float(kept[part].sum() / times[part].sum()) for part in cut(len(times)))
    return tuple(float(met[part].mean()) for part in cut(len(met))) if len(met) else ()


def merged(windows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean of each window over runs of the same requests.

    What a run leaves out as warm-up it leaves out at the front: of runs with different windows the last ones count.
    """
    size = min(map(len, windows))
    return tuple(fmean(values) for values in zip(*(own[len(own) - size:] for own in windows), strict=True))


def worst(met: NDArray[np.bool_], sent: NDArray[np.int64]) -> tuple[float, float, float]:
    """The least share of a window, and the seconds of its first and of its last request."""
    if not len(met):
        return 0.0, 0.0, 0.0
    part = min(cut(len(met)), key=lambda part: float(met[part].mean()))
    return float(met[part].mean()), float(sent[part][0]) / 1e9, float(sent[part][-1]) / 1e9
