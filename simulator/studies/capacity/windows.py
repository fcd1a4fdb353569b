"""Windows: requests in the order in which they come, cut into equal parts.

Requests depend on those beside them, windows hardly do.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

WINDOWS = 20
"""As many as batch means want."""
FEWEST_A_WINDOW = 10


def cut(rows: int) -> list[slice]:
    """Windows of equally many requests; one where there are few."""
    windows = max(1, min(WINDOWS, rows // FEWEST_A_WINDOW))
    edges = [rows * at // windows for at in range(windows + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


def shares(met: NDArray[np.bool_]) -> tuple[float, ...]:
    """The share of each window that meets the limits; nothing of no requests."""
    return tuple(float(met[part].mean()) for part in cut(len(met))) if len(met) else ()


def worst(met: NDArray[np.bool_], sent: NDArray[np.int64]) -> tuple[float, float, float]:
    """The least share of a window, and the seconds of its first and of its last request."""
    if not len(met):
        return 0.0, 0.0, 0.0
    part = min(cut(len(met)), key=lambda part: float(met[part].mean()))
    return float(met[part].mean()), float(sent[part][0]) / 1e9, float(sent[part][-1]) / 1e9
