"""The interval of a quantile between two of the values themselves: it supposes no shape of the distribution."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from simulator.errors import InputError
from simulator.statistics.interval import LEVEL, Interval, numbers, tail_of
from simulator.statistics.laws import beta_cdf


def quantile_interval(values: ArrayLike, share: float, level: float = LEVEL) -> Interval:
    """The interval of the quantile of independent values: `share` 0.99 for p99.

    The k-th smallest value lies below the quantile as often as at least k of n throws with chance `share` succeed
    (David and Nagaraja, Order Statistics, 7.1). A side that so few values cannot bound is open: p99 has no upper end
    below 368 values at a level of 0.95. The estimate lies between the two nearest ranks, as numpy has it, or at an end
    of the interval where that is outside. Values of one run are not independent; `batch_quantile` is for them.
    """
    if not 0 < share < 1:
        raise InputError(f"a quantile lies between 0 and 1, not at {share:g}: 0.99 is p99")
    found, sure = np.sort(numbers(values)), 1 - tail_of(level)
    n = len(found)
    below, above = _highest_rank(n, share, sure), _highest_rank(n, 1 - share, sure)
    low, high = float(found[below - 1]) if below else -inf, float(found[n - above]) if above else inf
    return Interval(low, min(max(low, float(np.quantile(found, share))), high), high, level)


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
