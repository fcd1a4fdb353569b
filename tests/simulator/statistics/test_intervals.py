"""Intervals: worked examples by hand, printed ones, the edges, and wrong input. How often they hold is tested apart."""

from __future__ import annotations

from math import inf, nan, sqrt

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.statistics import (
    Interval,
    batch_means,
    batch_quantile,
    of_means,
    paired,
    quantile_interval,
    share_interval,
)


def test_the_mean_of_four_runs() -> None:
    found = of_means([1, 2, 3, 4])
    assert found.mean == 2.5
    assert found.half_width == pytest.approx(3.18245 * sqrt(5 / 3) / 2, rel=1e-5)    # t of 3 degrees: 3.18245
    assert (found.low + found.high) / 2 == pytest.approx(2.5)
    assert 2.5 in found
    assert 5 not in found


def test_one_run_bounds_nothing_and_json_can_say_so() -> None:
    assert of_means([7.0]) == Interval(-inf, 7.0, inf, 0.95)
    assert of_means([7.0]).plain() == {"low": None, "mean": 7.0, "high": None, "level": 0.95}


def test_runs_that_agree_leave_no_doubt() -> None:
    assert of_means([3, 3, 3], 0.99) == Interval(3, 3, 3, 0.99)


def test_a_difference_in_pairs_forgets_what_both_share() -> None:
    shared = np.array([10.0, 90.0, 40.0, 70.0])
    assert paired(shared + 2, shared) == Interval(2, 2, 2, 0.95)
    assert of_means(shared).half_width > 50


def test_batches_of_one_run() -> None:
    """2 batches of 3: the first value fills none."""
    found = batch_means([99, 1, 2, 3, 5, 6, 7], batches=2)
    assert found.mean == 4
    assert found.half_width == pytest.approx(12.7062 * 2, rel=1e-5)    # t of 1 degree; batch means 2 and 6


def test_a_quantile_over_batches_is_that_of_all_values() -> None:
    found = batch_quantile([1, 2, 3, 11, 12, 13], 0.5, batches=2)
    assert found.mean == 7
    assert found.half_width == pytest.approx(12.7062 * 5, rel=1e-5)    # of the batches' own medians, 2 and 12


@pytest.mark.parametrize(("n", "ranks"), [(10, (2, 9)), (20, (6, 15)), (30, (10, 21)), (5, (-inf, inf))])
def test_the_interval_of_a_median_lies_between_the_tabulated_ranks(n: int, ranks: tuple[float, float]) -> None:
    """David and Nagaraja, Order Statistics, table of the sign test's ranks at 95 %."""
    found = quantile_interval(range(1, n + 1), 0.5)
    assert (found.low, found.mean, found.high) == (ranks[0], (n + 1) / 2, ranks[1])


def test_few_values_leave_the_upper_end_of_a_p99_open() -> None:
    """0.99 ** 367 = 0.02500: the largest of 368 values lies above p99 often enough, that of 367 does not quite."""
    assert quantile_interval(range(1, 368), 0.99).high == inf
    assert quantile_interval(range(1, 369), 0.99).high == 368


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 20, 400])
def test_an_estimate_lies_in_its_own_interval(n: int, share: float) -> None:
    """Of two values the larger one lies below p99 with a chance of 0.98, and so does what is interpolated below it."""
    found = quantile_interval(range(1, n + 1), share)
    assert found.low <= found.mean <= found.high
    assert found.mean in found
    assert quantile_interval([1, 2], 0.99) == Interval(2, 2, inf, 0.95)


@pytest.mark.parametrize("values", [[7.0] * 400, [0.0] * 400, [1e-300] * 400, [1e12] * 400])
def test_values_all_alike_leave_a_point(values: list[float]) -> None:
    for found in (of_means(values), batch_means(values), batch_quantile(values, 0.99), quantile_interval(values, 0.99),
                  paired(values, [0.0] * 400)):
        assert (found.low, found.mean, found.high) == pytest.approx((values[0],) * 3, rel=1e-12)


def test_one_or_two_values_say_so_themselves() -> None:
    assert of_means([3.0]) == quantile_interval([3.0], 0.9) == Interval(-inf, 3.0, inf, 0.95)
    assert of_means([1.0, 2.0]).half_width == pytest.approx(12.7062 / 2, rel=1e-5)
    assert (share_interval(1, 1).low, share_interval(0, 1).high) == (pytest.approx(0.025), pytest.approx(0.975))


def test_the_order_of_values_does_not_matter_to_a_quantile() -> None:
    assert quantile_interval([3, 1, 2] * 10, 0.5) == quantile_interval(sorted([3, 1, 2] * 10), 0.5)


@pytest.mark.parametrize(("successes", "n", "low", "high"), [
    (0, 10, 0, 0.3085), (10, 10, 0.6915, 1), (9, 10, 0.5550, 0.9975), (5, 10, 0.1871, 0.8129),
    (1, 100, 0.0003, 0.0545)])
def test_clopper_and_pearson_as_printed(successes: int, n: int, low: float, high: float) -> None:
    found = share_interval(successes, n)
    assert (found.low, found.mean, found.high) == (
        pytest.approx(low, abs=6e-5), successes / n, pytest.approx(high, abs=6e-5))


def test_all_of_n_has_the_rule_of_a_closed_form() -> None:
    assert share_interval(300, 300).low == pytest.approx(0.025 ** (1 / 300), rel=1e-9)


@pytest.mark.parametrize(("asked", "said"), [
    (lambda: of_means([]), "an interval needs a value: there is none"),
    (lambda: of_means([1, 2], 95), "an interval is sure to a part between 0 and 1, not to 95: 0.95 is usual"),
    (lambda: paired([1, 2], [1]), "pairs need as many values on both sides, not 2 and 1"),
    (lambda: batch_means([1, 2]), "2 values do not fill 20 batches: it takes 2 batches, and a value for each"),
    (lambda: batch_means([1, 2], batches=1), "2 values do not fill 1 batch: "),
    (lambda: quantile_interval([], 0.5), "an interval needs a value: there is none"),
    (lambda: quantile_interval([1], 99), "a quantile lies between 0 and 1, not at 99: 0.99 is p99"),
    (lambda: batch_quantile(range(100), 1.5), "a quantile lies between 0 and 1, not at 1.5: 0.99 is p99"),
    (lambda: batch_quantile(range(100), nan), "a quantile lies between 0 and 1, not at nan: "),
    (lambda: of_means([1, nan]), "an interval takes finite numbers, not nan"),
    (lambda: batch_means([1.0] * 39 + [inf]), "an interval takes finite numbers, not inf"),
    (lambda: quantile_interval([1, -inf], 0.5), "an interval takes finite numbers, not -inf"),
    (lambda: of_means([[1, 2], [3, 4]]), "an interval takes a list of values, not a table of 2 x 2"),
    (lambda: share_interval(3, 2), "3 of 2 is no share: "),
    (lambda: share_interval(0, 0), "0 of 0 is no share: ")])
def test_wrong_input_is_told(asked: object, said: str) -> None:
    with pytest.raises(InputError) as told:
        asked()    # type: ignore[operator]
    assert str(told.value).startswith(said)
