"""Verdict: whether runs of the same kind keep every objective, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, log

from simulator.statistics import Interval, of_means, share_interval
from simulator.studies.capacity.objectives import Objective
from simulator.studies.capacity.sample import Sample
from simulator.studies.capacity.windows import merged


@dataclass(frozen=True)
class Verdict:
    """What the runs of one kind, one a seed, say of the objectives.

    Attributes:
        shares: For each objective, the share of requests that meet its limits, with its interval.
        wanted: For each objective, the share that must.
        follows: Whether completions follow arrivals, in every run; None where one is too short to tell.
    """

    shares: tuple[Interval, ...]
    wanted: tuple[float, ...]
    follows: bool | None

    @property
    def holds(self) -> bool:
        """Whether every objective is kept for sure: the lower end of its interval does not lie below it."""
        return self.follows is not False and all(found.low >= wanted for found, wanted in zip(
            self.shares, self.wanted, strict=True))

    @property
    def holds_on_the_mean(self) -> bool:
        """Whether every objective is kept in what was seen, sure or not."""
        return self.follows is not False and all(found.mean >= wanted for found, wanted in zip(
            self.shares, self.wanted, strict=True))

    @property
    def tightest(self) -> tuple[Interval, float]:
        """The share that is kept by least or missed by most, and what is wanted of it."""
        return min(zip(self.shares, self.wanted, strict=True), key=lambda pair: pair[0].low - pair[1])

    @property
    def fails(self) -> bool:
        """Whether some objective is missed for sure, or the backlog grows."""
        return self.follows is False or any(found.high < wanted for found, wanted in zip(
            self.shares, self.wanted, strict=True))


def verdict_of(samples: Sequence[Sample], objectives: Sequence[Objective], level: float, *,
               fresh: bool = True) -> Verdict:
    """The verdict of runs with seeds of their own; `fresh`: each of them has requests of its own, too."""
    shares = tuple(_share(samples, at, level, fresh) for at in range(len(objectives)))
    return Verdict(shares, tuple(objective.share for objective in objectives),
                   _in_every([sample.follows for sample in samples]))


def _in_every(told: Sequence[bool | None]) -> bool | None:
    """Whether all say so; None where none denies it, and one cannot tell."""
    return False if False in told else None if None in told else True


def _share(samples: Sequence[Sample], at: int, level: float, fresh: bool) -> Interval:
    """The share over all runs. Requests that all of them have count once."""
    met, asked = sum(sample.met[at] for sample in samples), sum(sample.asked[at] for sample in samples)
    windows = [sample.windows[at] for sample in samples]
    told = list(chain(*windows)) if fresh else merged(windows)
    return share_of(met, asked, told, level, distinct(samples, at, fresh))


def distinct(samples: Sequence[Sample], at: int, fresh: bool) -> int:
    """How many requests of their own an objective is about, over all runs."""
    return (sum if fresh else max)(sample.distinct[at] for sample in samples)


def share_of(met: int, asked: int, windows: Sequence[float], level: float, distinct: int | None = None) -> Interval:
    """The share of requests that meet their limits, given that of each window. Its interval is the wider one of two.

    One takes the windows of all runs as values: requests depend on those beside them, windows hardly do (batch means,
    replicated where there are several seeds). The other takes each request by itself (Clopper and Pearson), which
    also bounds what so many requests can show where none of them misses. Requests that are asked again, in another
    round of the trace or with another seed, are no new ones: then only so many are `distinct`.
    """
    if not asked:    # nobody misses, and nothing is known
        return Interval(0.0, 1.0, 1.0, level)
    mean, requests = met / asked, share_interval(_of(met, asked, distinct or asked), distinct or asked, level)
    half = of_means(windows, level).half_width if len(windows) > 1 else 0.0
    return Interval(max(0.0, min(requests.low, mean - half)), mean, min(1.0, max(requests.high, mean + half)), level)


def _of(met: int, asked: int, distinct: int) -> float:
    """So many requests of their own meet their limits, on the mean of their copies."""
    return met if asked == distinct else met * distinct / asked


def fewest_requests(share: float, level: float) -> int:
    """Requests that it takes to show that so large a share meets its limits, if not one of them misses.

    `requests` of them without a miss bound the share by ((1 - level) / 2) ** (1 / requests) from below.
    """
    return ceil(log((1 - level) / 2) / log(share) - 1e-9)
