"""The interval of a share: of requests that met an objective, of runs that came out well."""

from __future__ import annotations

from simulator.errors import InputError
from simulator.statistics.interval import LEVEL, Interval, tail_of
from simulator.statistics.laws import beta_quantile


def share_interval(successes: float, n: int, level: float = LEVEL) -> Interval:
    """The interval of a share of which `successes` of `n` independent trials are seen: Clopper and Pearson's.

    It is exact: it holds the truth at least as often as its level says, for any n and any share, also where no trial
    or every one succeeded. Where several trials count as one, their mean may be a part of a success. Requests of one
    run are not independent; `batch_means` of their 0s and 1s is for them.
    """
    if not 0 <= successes <= n or n < 1:
        raise InputError(f"{successes} of {n} is no share: it takes a trial, and no more successes than trials")
    tail = tail_of(level)
    low = beta_quantile(tail, successes, n - successes + 1) if successes else 0.0
    high = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return Interval(low, successes / n, high, level)
