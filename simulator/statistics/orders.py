"""The interval of a quantile between two of the values themselves: it supposes no shape of the distribution."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from simulator.errors import InputError
from simulator.statistics.interval import LEVEL, Interval, tail_of
from simulator.statistics.laws import beta_cdf


def quantile_interval(values: ArrayLike, share: float, level: float = LEVEL) -> Interval:
    """The interval of the quantile of independent values: `share` 0.99 for p99.

    The k-th smallest value lies below the quantile as often as at least k of n throws with chance `share` succeed
    (David and Nagaraja, Order Statistics, 7.1). A side that so few values cannot bound is open: p99 has no upper end
    below 368 values at a level of 0.95. Values of one run are not independent; `batch_quantile` is for them.
    """
    found, sure = np.sort(np.asarray(values, dtype=float)), 1 - tail_of(level)
    n = len(found)
    if not n or not 0 < share < 1:
        raise InputError(f"{n} values have no quantile {share:g}: it takes a value, and a quantile between 0 and 1")
    below, above = _highest_rank(n, share, sure), _highest_rank(n, 1 - share, sure)
    return Interval(float(found[below - 1]) if below else -inf, float(np.quantile(found, share)),
                    float(found[n - above]) if above else inf, level)


def _highest_rank(n: int, share: float, sure: float) -> int:
    """The highest rank whose value lies at or below the quantile with a chance of at least `sure`; 0 for none."""
    low, high = 0, n + 1
    while high - low > 1:
        rank = (low + high) // 2
        if beta_cdf(share, rank, n - rank + 1) >= sure:
            low = rank
        else:
            high = rank
    return low
