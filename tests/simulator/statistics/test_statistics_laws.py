"""Quantiles against printed tables, against closed forms, and against their own inverse."""

from __future__ import annotations

from math import pi, sqrt, tan
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.statistics.laws import beta_cdf, beta_quantile, student_quantile

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: upper critical values of Student's distribution.
TABLE = [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 5, 2.571), (0.975, 10, 2.228), (0.975, 30, 2.042),
         (0.975, 100, 1.984), (0.95, 7, 1.895), (0.99, 19, 2.539), (0.995, 4, 4.604), (0.999, 15, 3.733)]


@pytest.mark.parametrize(("share", "degrees", "value"), TABLE)
def test_student_agrees_with_the_printed_table(share: float, degrees: int, value: float) -> None:
    assert student_quantile(share, degrees) == pytest.approx(value, abs=5e-4)
    assert student_quantile(1 - share, degrees) == pytest.approx(-value, abs=5e-4)


@pytest.mark.parametrize("share", [0.51, 0.9, 0.975, 0.9995])
def test_student_has_closed_forms_at_one_and_two_degrees(share: float) -> None:
    assert student_quantile(share, 1) == pytest.approx(tan(pi * (share - 0.5)), rel=1e-9)
    two = (2 * share - 1) / sqrt(2 * share * (1 - share))
    assert student_quantile(share, 2) == pytest.approx(two, rel=1e-9)


def test_student_ends_up_normal() -> None:
    assert student_quantile(0.975, 1e7) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-6)
    assert student_quantile(0.5, 3) == pytest.approx(0, abs=1e-15)


@given(st.floats(0.001, 0.999), st.floats(0.5, 50))
def test_beta_has_closed_forms_with_a_shape_of_one(x: float, shape: float) -> None:
    assert beta_cdf(x, shape, 1) == pytest.approx(x ** shape, rel=1e-9)
    assert beta_cdf(x, 1, shape) == pytest.approx(1 - (1 - x) ** shape, rel=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0.5, 2000), st.floats(0.5, 2000))
def test_a_beta_quantile_leads_back(share: float, a: float, b: float) -> None:
    assert beta_cdf(beta_quantile(share, a, b), a, b) == pytest.approx(share, rel=1e-6)


@given(st.floats(0.01, 0.99), st.floats(0.5, 200), st.floats(0.5, 200))
def test_beta_is_its_own_mirror(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) + beta_cdf(1 - x, b, a) == pytest.approx(1, abs=1e-9)


def test_beta_ends_where_its_values_end() -> None:
    assert (beta_cdf(-0.1, 2, 3), beta_cdf(0, 2, 3), beta_cdf(1, 2, 3), beta_cdf(2, 2, 3)) == (0, 0, 1, 1)
