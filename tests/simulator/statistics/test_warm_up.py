"""MSER-5: where it cuts what it must cut, and where it says that nothing settles."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.statistics import warm_up


def test_a_start_unlike_the_rest_is_left_out_in_batches_of_five() -> None:
    assert warm_up([100.0] * 12 + [1, 2] * 100) == 15


def test_a_series_that_is_alike_keeps_all() -> None:
    assert warm_up([1.0] * 100) == 0


def test_a_queue_that_grows_never_settles() -> None:
    assert warm_up(np.arange(1000)) is None


def test_few_values_are_too_few_to_tell() -> None:
    assert warm_up([]) == warm_up([5.0] * 3 + [1.0] * 6) == 0


@given(st.lists(st.floats(0, 1e6), min_size=10, max_size=80))
def test_it_minimises_the_error_of_the_mean(values: list[float]) -> None:
    """Against the definition, term by term, over every start that leaves two batches."""
    means = np.reshape(values[:len(values) // 5 * 5], (-1, 5)).mean(axis=1)
    errors = [float(((means[d:] - means[d:].mean()) ** 2).sum()) / (len(means) - d) ** 2 for d in range(len(means) - 1)]
    found, half, slack = warm_up(values), len(means) // 2, 1e-9 * (1 + float(np.max(means)) ** 2)
    if found is None:
        assert min(errors[half + 1:]) <= min(errors[:half + 1]) + slack
    else:
        assert errors[found // 5] <= min(errors) + slack
