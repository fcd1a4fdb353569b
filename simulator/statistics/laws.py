"""Quantiles of the beta and of Student's distribution, to nine digits. They know no data.

The incomplete beta function is the continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions,
evaluated by Lentz's method; its inverse is found by halving, which needs no care at the edges.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt
from sys import float_info

TINY = float_info.min
"""Stands for 0 where a continued fraction would divide by it."""


def beta_cdf(x: float, a: float, b: float) -> float:
    """The chance of a value of at most `x` under the beta distribution with shapes `a`, `b` > 0."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):    # there the fraction converges slowly, and fast on the other side
        return 1 - beta_cdf(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    return front / (a * _fraction(x, a, b))


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), until it no longer moves."""
    value, above, below, term = 1.0, 1.0, 0.0, 0
    while True:
        term += 1
        part = _part(term, x, a, b)
        below = 1 / ((1 + part * below) or TINY)
        above = (1 + part / above) or TINY
        value *= above * below
        if abs(above * below - 1) < 1e-15:
            return value


def _part(term: int, x: float, a: float, b: float) -> float:
    """The partial numerator of the continued fraction."""
    m = term // 2
    if term % 2:
        return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


@lru_cache(maxsize=1024)
def beta_quantile(share: float, a: float, b: float) -> float:
    """The value below which `share` of the beta distribution with shapes `a`, `b` lies."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if beta_cdf(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return high


def student_quantile(share: float, degrees: float) -> float:
    """The value below which `share` of Student's distribution lies; `degrees` of freedom > 0.

    For a value t > 0, t² / (degrees + t²) has the beta distribution with shapes 1/2 and degrees/2.
    """
    if share < 0.5:
        return -student_quantile(1 - share, degrees)
    part = beta_quantile(2 * share - 1, 0.5, degrees / 2)
    return sqrt(degrees * part / (1 - part))
