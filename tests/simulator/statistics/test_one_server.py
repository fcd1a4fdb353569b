"""The queue whose answer is known: Poisson arrivals, one server, a fixed service time (M/D/1).

The simulator must be that queue, exactly; its mean must lie in its own interval; and intervals of every kind must hold
the truth about as often as they say. The queue itself is played by Lindley's recursion, which the simulator equals.
"""

from __future__ import annotations

from math import exp, factorial, floor

import numpy as np
import pytest
from numpy.typing import NDArray
from worlds import trace_of

from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.statistics import (
    Interval,
    batch_means,
    batch_quantile,
    of_means,
    paired,
    quantile_interval,
    share_interval,
    warm_up,
)

Floats = NDArray[np.float64]
SERVICE = 10_000_000    # 4 steps of 2.5 ms, ns
LOAD = 0.6
MEAN = LOAD / (2 * (1 - LOAD))    # Pollaczek and Khinchine: the mean wait over the service time
LIMIT = 2.0    # a wait that is "short", in service times


def waits(gaps: Floats, services: Floats) -> Floats:
    """Lindley: a customer waits as long as the work before it exceeds the gap, in each row by itself.

    That is the random walk of work less gaps, above the lowest it has been.
    """
    walk = np.cumsum(np.concatenate([np.zeros((len(gaps), 1)), services[:, :-1] - gaps[:, 1:]], axis=1), axis=1)
    return walk - np.minimum.accumulate(walk, axis=1)


def waits_of(runs: int, customers: int, seed: int, load: float = LOAD) -> Floats:
    """Waits of so many runs, in service times; each starts empty."""
    gaps = np.random.default_rng(seed).exponential(1 / load, (runs, customers))
    return waits(gaps, np.ones((runs, customers)))


def share_below(x: float, load: float = LOAD) -> float:
    """The share of customers who wait at most x service times (Erlang, 1909)."""
    terms = (exp(load * (x - k)) * (load * (k - x)) ** k / factorial(k) for k in range(floor(x) + 1))
    return (1 - load) * sum(terms)


@pytest.fixture(scope="module")
def simulated() -> Result:
    trace = trace_of([(0, 3, 4)] * 20_000)
    return run(Scenario(trace, "static", {"max_batch_size": 1}, request_rate=LOAD * 1e9 / SERVICE, seed=3,
                        cost_model="constant:2.5"))


def test_the_simulator_is_the_recursion_to_the_nanosecond(simulated: Result) -> None:
    arrivals, at, begins = simulated.setup.trace.arrival.tolist(), 0, []
    for arrival in arrivals:
        begins.append(max(at, arrival))
        at = begins[-1] + SERVICE
    line = simulated.timeline
    assert line.queue_time.tolist() == [begin - arrival for begin, arrival in zip(begins, arrivals, strict=True)]
    assert set((line.e2el - line.queue_time).tolist()) == {SERVICE}
    gaps = np.diff(np.array([arrivals], float), prepend=0)
    assert np.allclose(waits(gaps, np.full(gaps.shape, float(SERVICE)))[0], line.queue_time, atol=1)


def test_its_mean_lies_in_its_own_interval(simulated: Result) -> None:
    series = simulated.timeline.queue_time / SERVICE
    left_out = warm_up(series)
    assert left_out is not None
    found = batch_means(series[left_out:])
    assert MEAN in found
    assert found.half_width < 0.1 * MEAN


def test_so_do_its_share_of_short_waits_and_its_p90(simulated: Result) -> None:
    series = simulated.timeline.queue_time / SERVICE
    short, p90 = batch_means(series <= LIMIT), batch_quantile(series, 0.9)
    assert share_below(LIMIT) in short
    assert share_below(p90.low) < 0.9 < share_below(p90.high)
    assert short.half_width < 0.02


def test_littles_law_holds_as_the_queue_is_seen_over_time(simulated: Result) -> None:
    """Those in the queue, summed over every nanosecond by walking through all events, are the waits, summed."""
    line = simulated.timeline
    events = sorted([(at, 1) for at in line.sent.tolist()] + [(at, -1) for at in line.admitted.tolist()])
    before, there, area = 0, 0, 0
    for at, change in events:
        area += there * (at - before)
        before, there = at, there + change
    assert area == int(line.queue_time.sum())
    assert there == 0


RUNS, CUSTOMERS = 1000, 4000


@pytest.fixture(scope="module")
def many() -> Floats:
    """A thousand runs; the first customers, who find it empty, are left out."""
    return waits_of(RUNS, CUSTOMERS + 200, seed=11)[:, 200:]


def coverage(intervals: list[Interval], truth: float) -> float:
    return float(np.mean([truth in found for found in intervals]))


def test_batches_of_one_run_cover_the_mean(many: Floats) -> None:
    assert 0.93 <= coverage([batch_means(row) for row in many], MEAN) <= 0.97


def test_they_cover_the_share_that_meets_an_objective(many: Floats) -> None:
    assert 0.93 <= coverage([batch_means(row <= LIMIT) for row in many], share_below(LIMIT)) <= 0.97


def test_they_cover_a_quantile(many: Floats) -> None:
    found = [batch_quantile(row, 0.9) for row in many]
    assert 0.93 <= np.mean([share_below(each.low) < 0.9 < share_below(each.high) for each in found]) <= 0.97


def test_ten_runs_cover_the_mean() -> None:
    means = waits_of(10_000, 700, seed=12)[:, 200:].mean(axis=1).reshape(RUNS, 10)
    assert 0.93 <= coverage([of_means(row) for row in means], MEAN) <= 0.97


def test_pairs_cover_a_difference_and_are_far_narrower() -> None:
    """A server 5 % faster on the same arrivals: both know a closed form."""
    rng = np.random.default_rng(13)
    gaps = rng.exponential(1 / LOAD, (5_000, 700))
    slow, fast = (waits(gaps, np.full(gaps.shape, service))[:, 200:].mean(axis=1).reshape(-1, 10)
                  for service in (1.0, 0.95))
    load = 0.95 * LOAD
    truth = MEAN - 0.95 * load / (2 * (1 - load))
    found = [paired(a, b) for a, b in zip(slow, fast, strict=True)]
    assert 0.93 <= coverage(found, truth) <= 0.97
    apart = [of_means(a).half_width + of_means(b).half_width for a, b in zip(slow, fast, strict=True)]
    assert np.mean([each.half_width for each in found]) < 0.25 * np.mean(apart)


def test_independent_values_cover_a_quantile_and_a_share_at_least() -> None:
    """One customer a run is independent of all others. These two are exact: they promise at least their level."""
    last = waits_of(100_000, 60, seed=14)[:, -1].reshape(RUNS, 100)
    quantiles = [quantile_interval(row, 0.9) for row in last]
    assert 0.945 <= np.mean([share_below(each.low) < 0.9 < share_below(each.high) for each in quantiles]) <= 0.99
    shares = [share_interval(int((row <= LIMIT).sum()), 100) for row in last]
    assert 0.945 <= coverage(shares, share_below(LIMIT)) <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.3, 0.8])
def test_batches_cover_the_mean_at_other_loads(load: float) -> None:
    """The busier the server, the longer a run must be for its batches to be independent."""
    customers = 2_000 if load < 0.5 else 60_000
    found = [batch_means(row) for seed in range(20) for row in waits_of(100, customers, seed, load)[:, 500:]]
    assert 0.93 <= coverage(found, load / (2 * (1 - load))) <= 0.97
