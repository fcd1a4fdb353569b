"""Queues whose truth is known, played by Lindley's recursion, and what every interval says of them.

One server, Poisson arrivals, services that are fixed (M/D/1) or exponential (M/M/1); times in mean services. A row is a
run. The table of tests/tables/intervals.py and the tests beside this file share the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import exp, factorial, floor

import numpy as np
from numpy.typing import NDArray

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
from simulator.studies.capacity.following import warm_from
from simulator.studies.capacity.verdict import share_of
from simulator.studies.capacity.windows import shares
from simulator.studies.differences import difference
from simulator.timeline import Timeline

Floats = NDArray[np.float64]
RUNS, EMPTY = 1000, 200
"""Runs of a case, and the first customers of each, who find it empty and are left out."""
LIMIT = 2.0
"""A wait that is short."""


def waits(gaps: Floats, services: Floats, start: float = 0.0) -> Floats:
    """Lindley: a customer waits as long as the work before it exceeds the gap, in each row by itself.

    That is the random walk of work less gaps, above the lowest it has been. The first one finds so much work.
    """
    steps = np.concatenate([np.full((len(gaps), 1), start), services[:, :-1] - gaps[:, 1:]], axis=1)
    walk = np.cumsum(steps, axis=1)
    return walk - np.minimum(np.minimum.accumulate(walk, axis=1), 0.0)


@dataclass(frozen=True)
class Queue:
    """One server at a load below 1; `random` services are exponential."""

    load: float
    random: bool = False

    def __str__(self) -> str:
        return f"{'M/M/1' if self.random else 'M/D/1'} at {self.load:g}"

    def waits(self, runs: int, customers: int, seed: int, start: float = 0.0) -> Floats:
        """Waits of so many runs; each starts empty, or with so much work."""
        rng = np.random.default_rng(seed)
        gaps = rng.exponential(1 / self.load, (runs, customers))
        return waits(gaps, rng.exponential(1, gaps.shape) if self.random else np.ones(gaps.shape), start)

    @property
    def mean(self) -> float:
        """The mean wait (Pollaczek and Khinchine)."""
        return self.load / (1 - self.load) / (1 if self.random else 2)

    def below(self, x: float) -> float:
        """The share of customers who wait at most x (Erlang, 1909)."""
        load = self.load
        if self.random:
            return 1 - load * exp(-(1 - load) * x)
        terms = (exp(load * (x - k)) * (load * (k - x)) ** k / factorial(k) for k in range(floor(x) + 1))
        return (1 - load) * sum(terms)

    def quantile(self, share: float) -> float:
        """The wait that so many customers do not exceed, by halving, up to 40: beyond, Erlang's sum has no digits."""
        low, high = 0.0, 40.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.below(middle) < share else (low, middle)
        return high


@dataclass(frozen=True)
class Case:
    """An interval, the queue that it is tried on, and the intervals that come of it with the truth of each."""

    interval: str
    queue: Queue
    found: Callable[[Queue], Iterable[tuple[Interval, float]]]

    def outcomes(self) -> tuple[list[bool], list[float]]:
        """Of each interval whether it holds the truth, and how far its estimate is off."""
        found = list(self.found(self.queue))
        return [truth in each for each, truth in found], [each.mean - truth for each, truth in found]


def one_run(make: Callable[[Floats], Interval], truth: Callable[[Queue], float], customers: int = 4000,
            ) -> Callable[[Queue], Iterable[tuple[Interval, float]]]:
    """Intervals of one run each."""
    def found(queue: Queue) -> Iterable[tuple[Interval, float]]:
        for part in range(RUNS // 100):
            for row in queue.waits(100, customers + EMPTY, 11 + part)[:, EMPTY:]:
                yield make(row), truth(queue)
    return found


def replications(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """Ten runs of 500 customers for each interval."""
    means = queue.waits(10 * RUNS, 500 + EMPTY, 12)[:, EMPTY:].mean(axis=1).reshape(RUNS, 10)
    return ((of_means(row), queue.mean) for row in means)


def sides(queue: Queue) -> tuple[Floats, Floats, float]:
    """Means of runs with a server and with one 5 % faster on the same arrivals, ten a row, and their true ratio."""
    gaps = np.random.default_rng(13).exponential(1 / queue.load, (10 * RUNS, 500 + EMPTY))
    slow, fast = (waits(gaps, np.full(gaps.shape, service))[:, EMPTY:].mean(axis=1).reshape(RUNS, 10)
                  for service in (1.0, 0.95))
    return slow, fast, 0.95 * Queue(0.95 * queue.load).mean / queue.mean


def pairs(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """The difference that a server 5 % faster makes."""
    slow, fast, ratio = sides(queue)
    return ((paired(a, b), queue.mean * (ratio - 1)) for a, b in zip(fast, slow, strict=True))


def compared(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """The same as `compare --replications 10` and a replicated sweep have it."""
    slow, fast, ratio = sides(queue)
    for a, b in zip(slow, fast, strict=True):
        found = difference("wait", "fast", a.tolist(), b.tolist())
        assert found
        yield found.difference, queue.mean * (ratio - 1)


def ordered(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """p90 of 100 customers of runs of their own."""
    last = queue.waits(100 * RUNS, 60, 14)[:, -1].reshape(RUNS, 100)
    return ((quantile_interval(row, 0.9), queue.quantile(0.9)) for row in last)


def trials(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """The share of short waits among 100 customers of runs of their own."""
    last = queue.waits(100 * RUNS, 60, 14)[:, -1].reshape(RUNS, 100)
    return ((share_interval(int((row <= LIMIT).sum()), 100), queue.below(LIMIT)) for row in last)


def planned(queue: Queue) -> Iterable[tuple[Interval, float]]:
    """As `plan` has it: three seeds of 1,500 requests, each cut into 20 windows."""
    met = queue.waits(3 * RUNS, 1500 + EMPTY, 15)[:, EMPTY:] <= LIMIT
    for seeds in met.reshape(RUNS, 3, 1500):
        windows = [share for seed in seeds for share in shares(seed)]
        yield share_of(int(seeds.sum()), seeds.size, windows, 0.95), queue.below(LIMIT)


def rounds(queue: Queue, *, told: bool = True) -> Iterable[tuple[Interval, float]]:
    """As `plan` has it of a trace of 3,000 requests gone through ten times, `told` of the copies or not."""
    customers, again = 3000, 10
    gaps = np.random.default_rng(17).exponential(1 / queue.load, (RUNS // 2, customers))
    copies = np.tile(np.arange(customers), again)
    for row in gaps:
        whole = np.tile(row, (1, again))
        met = waits(whole, np.ones(whole.shape))[0] <= LIMIT
        own, number = (copies, customers) if told else (None, None)
        yield share_of(int(met.sum()), met.size, shares(met, own), 0.95, number), queue.below(LIMIT)


def short(queue: Queue, customers: int) -> Iterable[tuple[Interval, float]]:
    """As `plan` has it of one run of so few requests."""
    for met in queue.waits(RUNS, customers + EMPTY, 18)[:, EMPTY:] <= LIMIT:
        yield share_of(int(met.sum()), met.size, shares(met), 0.95), queue.below(LIMIT)


def share_of_one(row: Floats) -> Interval:
    return batch_means(row <= LIMIT)


HALF, BUSY, RANDOM = Queue(0.6), Queue(0.8), Queue(0.6, random=True)
CASES = (
    Case("mean of 10 replications", HALF, replications),
    Case("mean of 10 replications", RANDOM, replications),
    Case("mean, batches of one run of 4,000", HALF, one_run(batch_means, lambda queue: queue.mean)),
    Case("mean, batches of one run of 10,000", RANDOM, one_run(batch_means, lambda queue: queue.mean, 10_000)),
    Case("mean, batches of one run of 40,000", BUSY, one_run(batch_means, lambda queue: queue.mean, 40_000)),
    Case("share, batches of one run of 4,000", HALF, one_run(share_of_one, lambda queue: queue.below(LIMIT))),
    Case("p90, batches of one run of 4,000", HALF,
         one_run(lambda row: batch_quantile(row, 0.9), lambda queue: queue.quantile(0.9))),
    Case("p90, batches of one run of 10,000", RANDOM,
         one_run(lambda row: batch_quantile(row, 0.9), lambda queue: queue.quantile(0.9), 10_000)),
    Case("difference of 10 pairs", HALF, pairs),
    Case("difference, as compare and sweep tell it", HALF, compared),
    Case("p90 of 100 independent values", HALF, ordered),
    Case("share of 100 independent values", HALF, trials),
    Case("share of 3 x 1,500, as plan tells it", HALF, planned),
    Case("share of 3 x 1,500, as plan tells it", RANDOM, planned),
)
"""Those of independent values promise at least 95 %, and that of a plan is the wider one of two."""

STARTS = {"empty": 0.0, "full: 60 services of work": 60.0}
"""Work that the first customer finds."""
Rule = Callable[[Floats, Floats], "int | None"]


def mser(sent: Floats, row: Floats) -> int | None:
    """`statistics.warm_up`: where the series itself settles."""
    return warm_up(row)


def of_plan(sent: Floats, row: Floats) -> int | None:
    """What `plan` leaves out: all sent before as many are there as on the mean; see `capacity.following`."""
    scale = 1e6
    at, done = ((instants * scale).astype(np.int64) for instants in (sent, sent + row + 1))
    one, none = np.ones(len(at), np.int64), np.zeros(len(at), np.int64)
    line = Timeline(none, one, one, at, at, at, done, done, done, done, done, none, streams=True)
    return int(np.searchsorted(at, warm_from(line)))


RULES: dict[str, Rule] = {"MSER-5": mser, "that of a plan": of_plan}


def left_out(rule: Rule, start: float, values: int, runs: int = 1000) -> tuple[Floats, Floats, Floats, int]:
    """Errors of the mean wait with all values and with the warm-up left out, how much that is, and who never settles.

    Of a run that does not settle nothing is left out, as there is no better place to begin.
    """
    gaps = np.random.default_rng(16).exponential(1 / HALF.load, (runs, values))
    rows, sent = waits(gaps, np.ones(gaps.shape), start), np.cumsum(gaps, axis=1)
    cut = [rule(times, row) for times, row in zip(sent, rows, strict=True)]
    means = np.array([row[at or 0:].mean() for row, at in zip(rows, cut, strict=True)])
    return rows.mean(axis=1) - HALF.mean, means - HALF.mean, np.array([at or 0 for at in cut], float), cut.count(None)


def bias_of(rule: str, start: str, values: int) -> tuple[object, ...]:
    """A row of the table of warm-ups: with and without, each with its standard error."""
    plain, cut, skipped, unsettled = left_out(RULES[rule], STARTS[start], values)
    told = (f"{errors.mean():+.3f} ± {errors.std() / len(errors) ** 0.5:.3f}" for errors in (plain, cut))
    return rule, start, f"{values:,}", *told, f"{skipped.mean():,.0f}", f"{unsettled:,}"
