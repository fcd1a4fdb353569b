import numpy as np
import pytest

from traces import TraceError, gamma_arrivals
from traces.arrivals import tick_arrivals, window_arrivals

SECOND = 10**9


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_infinite_burstiness_gives_constant_gaps_without_drift():
    times = gamma_arrivals(10_000, 200, float("inf"), rng())
    assert times.tolist() == [i * 5_000_000 for i in range(10_000)]
    thirds = gamma_arrivals(300_001, 3, float("inf"), rng())
    assert thirds[[1, 2, 3, 300_000]].tolist() == [333_333_333, 666_666_667, SECOND, 100_000 * SECOND]


def test_a_requested_rate_is_realised_without_drift():
    times = gamma_arrivals(10_000, 200, 1, rng())
    assert times[0] == 0
    assert 9_999 / (times[-1] / SECOND) == pytest.approx(200, rel=0.02)


@pytest.mark.parametrize(("burstiness", "error"), [(float("inf"), 1e-12), (10, 0.01), (1, 0.02), (0.1, 0.05)])
def test_the_mean_gap_is_one_over_the_rate(burstiness, error):
    times = gamma_arrivals(100_000, 50, burstiness, rng(1))
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(SECOND / 50, rel=error)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness**-0.5, rel=0.05, abs=1e-6)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), None, "1", True])
def test_rate_and_burstiness_must_be_above_0(wrong):
    with pytest.raises(TraceError, match="burstiness must be above 0"):
        gamma_arrivals(10, 1, wrong, rng())
    with pytest.raises(TraceError, match="request rate must be above 0"):
        gamma_arrivals(10, wrong, 1, rng())


def test_no_and_one_arrival_and_a_negative_number():
    assert gamma_arrivals(0, 1, 1, rng()).tolist() == []
    assert gamma_arrivals(1, 1, 1, rng()).tolist() == [0]
    with pytest.raises(TraceError, match="must be 0 or more, not -1"):
        gamma_arrivals(-1, 1, 1, rng())


@pytest.mark.parametrize(("rate", "burstiness"), [(1e-300, 1), (1e-9, float("inf")), (5e-324, 1)])
def test_times_beyond_the_clock_are_refused(rate, burstiness):
    with pytest.raises(TraceError, match="more than 146 years"):
        gamma_arrivals(100, rate, burstiness, rng())


def test_an_infinite_rate_puts_all_at_0():
    assert gamma_arrivals(3, float("inf"), 0.5, rng()).tolist() == [0, 0, 0]


@pytest.mark.parametrize("burstiness", [0.2, 1, 5])
def test_windows_keep_their_counts_and_the_span(burstiness):
    counts = [3, 0, 250, 1, 40]
    times = window_arrivals(counts, 60 * SECOND, 260 * SECOND, burstiness, rng())
    assert np.bincount(times // (60 * SECOND)).tolist() == counts
    assert (times[0], times[-1]) == (0, 260 * SECOND)
    assert (np.diff(times) >= 0).all()


def test_ticks_keep_the_counts_of_their_windows():
    times = tick_arrivals([20, 35, 9], [20, 20, 7], 3 * SECOND, rng())
    assert np.bincount(times // (60 * SECOND)).tolist() == [20, 35, 9]
    assert np.unique(times).tolist() == [i * 3 * SECOND for i in range(47)]


def test_only_the_generator_decides():
    assert gamma_arrivals(50, 1, 1, rng(3)).tolist() == gamma_arrivals(50, 1, 1, rng(3)).tolist()
    assert gamma_arrivals(50, 1, 1, rng(3)).tolist() != gamma_arrivals(50, 1, 1, rng(4)).tolist()
