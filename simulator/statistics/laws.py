"""Quantiles of the beta and of Student's distribution, to eight digits for shapes up to a million. They know no data.

The incomplete beta function is the continued fraction 8.17.22 of the NIST Digital Library of Mathematical Functions,
evaluated by Lentz's method; its inverse is found by halving, which needs no care at the edges. Student's distribution
with very many degrees is the normal one with the corrections 26.7.5 of Abramowitz and Stegun.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist
from sys import float_info

TINY = float_info.min
"""Stands for 0 where a continued fraction would divide by it."""
LARGE = 20
"""Shapes from which on Stirling's series has all digits of a float."""
MANY = 10_000
"""Degrees of freedom from which on Student's distribution is nearly normal."""


def beta_cdf(x: float, a: float, b: float) -> float:
    """The chance of a value of at most `x` under the beta distribution with shapes `a`, `b` > 0."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    return _cdf(x, 1 - x, a, b)


def _cdf(x: float, y: float, a: float, b: float) -> float:
    """The same with y = 1 - x beside it, so that both keep their digits."""
    if x > (a + 1) / (a + b + 2):    # there the fraction converges slowly, and fast on the other side
        return 1 - _cdf(y, x, b, a)
    return exp(_log_front(log(x) if x < 0.5 else log1p(-y), log(y) if y < 0.5 else log1p(-x), a, b)) / (
        a * _fraction(x, a, b))


def _log_front(x: float, y: float, a: float, b: float) -> float:
    """log(x ** a * (1 - x) ** b / B(a, b)), given the logarithms of x and 1 - x.

    Of a large shape the logarithm of the factorial has few digits left of its difference to another one; Stirling's
    series (5.11.1 of the same library) leaves out what cancels.
    """
    if a > b:
        return _log_front(y, x, b, a)
    if b < LARGE:
        return lgamma(a + b) - lgamma(a) - lgamma(b) + a * x + b * y
    if a < LARGE:
        grows = (b - 0.5) * log1p(a / b) + a * log(a + b) - a + _stirling(a + b) - _stirling(b)
        return grows - lgamma(a) + a * x + b * y
    return (a * (x + log1p(b / a)) + b * (y + log1p(a / b)) + log(a * b / (a + b) / (2 * pi)) / 2
            + _stirling(a + b) - _stirling(a) - _stirling(b))


def _stirling(x: float) -> float:
    """What the logarithm of a factorial is above Stirling's formula, for LARGE numbers."""
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x * x)) / (x * x)) / (x * x)) / x


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
    if degrees >= MANY:
        return _nearly_normal(NormalDist().inv_cdf(share), degrees)
    if share < 0.75:
        part = beta_quantile(2 * share - 1, 0.5, degrees / 2)
        return sqrt(degrees * part / (1 - part))
    rest = beta_quantile(2 * (1 - share), degrees / 2, 0.5)    # what is left, so that a part near 1 keeps its digits
    return sqrt(degrees * (1 - rest) / rest)


def _nearly_normal(z: float, degrees: float) -> float:
    """Student's quantile from the normal one, by powers of 1 / degrees."""
    first = z * (z ** 2 + 1) / 4
    second = z * (5 * z ** 4 + 16 * z ** 2 + 3) / 96
    third = z * (3 * z ** 6 + 19 * z ** 4 + 17 * z ** 2 - 15) / 384
    return z + (first + (second + third / degrees) / degrees) / degrees
