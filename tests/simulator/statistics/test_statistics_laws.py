"""Quantiles against printed tables, against closed forms, and against their own inverse."""

from __future__ import annotations

from math import pi, sqrt, tan
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.statistics.laws import MANY, beta_cdf, beta_quantile, student_quantile

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


# scipy 1.17.1: stats.t.ppf(share, degrees) and stats.beta.ppf(share, a, b).
STUDENT = [(0.975, 1, 12.706204736174694), (0.975, 9, 2.262157162798205), (0.975, 19, 2.0930240544083087),
           (0.995, 59, 2.6617587521629673), (0.975, 199, 1.9719565442517533), (0.975, 9999, 1.960201263621357),
           (0.975, 1e4, 1.960201239890626), (0.975, 1e6, 1.959966356814107), (0.975, 1e9, 1.959963986912325),
           (0.9995, 12345, 3.291315054529859)]
BETA = [(0.025, 5, 6, 0.18708602844739855), (0.975, 6, 5, 0.8129139715526015), (0.025, 999, 2, 0.9944410757201734),
        (0.975, 1000, 1, 0.9999746825125088), (0.025, 5e5, 5e5, 0.49902001870387463),
        (0.975, 2, 1e6, 5.571625083604013e-06), (0.025, 0.5, 9.5, 5.3064053418492834e-05)]


@pytest.mark.parametrize(("share", "degrees", "value"), STUDENT)
def test_student_agrees_with_scipy(share: float, degrees: float, value: float) -> None:
    assert student_quantile(share, degrees) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize(("share", "a", "b", "value"), BETA)
def test_beta_agrees_with_scipy(share: float, a: float, b: float, value: float) -> None:
    assert beta_quantile(share, a, b) == pytest.approx(value, rel=3e-9)


def test_student_so_far_out_that_nearly_nothing_is_left() -> None:
    """At one degree the quantile is 1 / tan(pi * tail), and at very many both ways of working it out meet."""
    assert student_quantile(1 - 2 ** -40, 1) == pytest.approx(1 / tan(pi * 2 ** -40), rel=1e-9)
    assert student_quantile(0.999, MANY - 1e-6) == pytest.approx(student_quantile(0.999, MANY), rel=1e-11)


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
