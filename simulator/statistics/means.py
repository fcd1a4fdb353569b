"""Intervals of means: over runs of their own, over batches of one run, and of differences in pairs."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulator.counting import counted
from simulator.errors import InputError
from simulator.statistics.interval import LEVEL, Interval, numbers, tail_of
from simulator.statistics.laws import student_quantile

BATCHES = 20
"""Between 10 and 30 batches an interval is about as narrow as it gets (Schmeiser, Operations Research 30, 1982)."""


def of_means(values: ArrayLike, level: float = LEVEL) -> Interval:
    """The interval of the mean of independent values, such as one figure a seed: Student's.

    One value alone leaves both sides open. Raises InputError for none.
    """
    found = numbers(values)
    tail, mean = tail_of(level), float(found.mean())
    if len(found) == 1:
        return Interval(-inf, mean, inf, level)
    half = student_quantile(1 - tail, len(found) - 1) * float(found.std(ddof=1)) / sqrt(len(found))
    return Interval(mean - half, mean, mean + half, level)


def paired(a: ArrayLike, b: ArrayLike, level: float = LEVEL) -> Interval:
    """The interval of the mean of a - b, where each pair shares what chance did to it: arrivals and lengths.

    What both sides share cancels out, so it is narrower than the two intervals apart (common random numbers).
    """
    first, second = numbers(a), numbers(b)
    if len(first) != len(second):
        raise InputError(f"pairs need as many values on both sides, not {len(first)} and {len(second)}")
    return of_means(first - second, level)


def batch_means(series: ArrayLike, level: float = LEVEL, batches: int = BATCHES) -> Interval:
    """The interval of the mean of one run's values in the order in which they came, its warm-up left out.

    Their neighbours depend on each other; the means of long batches hardly do. What does not fill a batch is left out
    at the front. Raises InputError for fewer values than batches.
    """
    return of_means(_batches(series, batches).mean(axis=1), level)


def batch_quantile(series: ArrayLike, share: float, level: float = LEVEL, batches: int = BATCHES) -> Interval:
    """The interval of a quantile of one run's values in the order in which they came: `share` 0.99 for p99.

    The quantile of all of them, and around it Student's interval from the spread of the batches' own quantiles
    (sectioning: Asmussen and Glynn, Stochastic Simulation, chapter III). A batch must be long enough for that quantile.
    Raises InputError for a quantile that lies not between 0 and 1.
    """
    if not 0 < share < 1:
        raise InputError(f"a quantile lies between 0 and 1, not at {share:g}: 0.99 is p99")
    found = _batches(series, batches)
    quantile = float(np.quantile(found, share))
    half = of_means(np.quantile(found, share, axis=1), level).half_width
    return Interval(quantile - half, quantile, quantile + half, level)


def _batches(series: ArrayLike, batches: int) -> NDArray[np.float64]:
    """The series in rows of one length."""
    found = numbers(series)
    if batches < 2 or len(found) < batches:
        raise InputError(f"{len(found)} values do not fill {counted(batches, 'batch')}: it takes 2 batches, and a "
                         "value for each")
    length = len(found) // batches
    return found[len(found) - length * batches:].reshape(batches, length)


