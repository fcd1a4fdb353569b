"""Lab: runs what a plan asks for, each run once, and judges it. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import log
from typing import Any

from simulator.replication import MOST_REPLICAS
from simulator.scenario import Scenario
from simulator.statistics import Interval, paired
from simulator.studies.capacity.objectives import Objective
from simulator.studies.capacity.sample import Sample
from simulator.studies.capacity.search import fewest, highest
from simulator.studies.capacity.traffic import Probe, Traffic
from simulator.studies.capacity.verdict import Verdict, verdict_of
from simulator.studies.capacity.windows import merged

Measure = Callable[[Mapping[Any, Scenario], Sequence[Objective], str], Mapping[Any, Sample]]
"""Runs scenarios for the objectives, whatever for in words, and gives their samples by the same keys."""
NOTCH = 1.02
"""Traffic is made faster or slower in steps of this factor: it is the precision of every rate."""
MOST_NOTCHES = 350
"""A thousand times as much, or as little."""


def scale_of(notch: int) -> float:
    """How many times as fast the traffic is, so many notches up."""
    return float(f"{NOTCH ** notch:.6g}")


def notch_of(scale: float) -> int:
    """The notch nearest to a scale."""
    notch = round(log(scale) / log(NOTCH)) if scale > 0 else -MOST_NOTCHES
    return min(max(notch, -MOST_NOTCHES), MOST_NOTCHES)


def notch_below(scale: float) -> int:
    """The highest notch that is no faster than a scale."""
    notch = notch_of(scale)
    return notch if scale_of(notch) <= scale else notch - 1


class Lab:
    """The runs of one layout.

    Args:
        traffic: What it is asked to serve.
        objectives: What is to be kept.
        level: How sure one wants to be.
        measure: Runs scenarios.
    """

    def __init__(self, traffic: Traffic, objectives: Sequence[Objective], level: float, measure: Measure) -> None:
        self.traffic, self.objectives, self.level = traffic, tuple(objectives), level
        self.samples: dict[Probe, Sample] = {}
        self._measure = measure

    def need(self, probes: Iterable[Probe], why: str) -> None:
        """Have these runs made, as far as they are not, all at once."""
        missing = {probe: self.traffic.scenario_of(probe) for probe in dict.fromkeys(probes)
                   if probe not in self.samples}
        if missing:
            self.samples.update(self._measure(missing, self.objectives, why))

    def sample(self, probe: Probe, why: str = "") -> Sample:
        """What a run comes to."""
        self.need([probe], why)
        return self.samples[probe]

    def seeds(self, replicas: int, scale: float = 1.0, change: str = "") -> list[Probe]:
        """The same run with every seed."""
        return [Probe(replicas, scale, change, seed) for seed in range(self.traffic.seeds)]

    def verdict(self, replicas: int, scale: float = 1.0, change: str = "", why: str = "") -> Verdict:
        """The verdict over all seeds."""
        probes = self.seeds(replicas, scale, change)
        self.need(probes, why)
        return self._judged(probes)

    def hold(self, kinds: Sequence[tuple[int, float, str]], why: str, seeds: int | None = None) -> list[bool]:
        """Whether each kind of run (replicas, scale, change) keeps the objectives, over all or the first seeds."""
        runs = [self.seeds(*kind)[:seeds] for kind in kinds]
        self.need([probe for probes in runs for probe in probes], why)
        return [self._judged(probes).holds for probes in runs]

    def _judged(self, probes: Iterable[Probe]) -> Verdict:
        return verdict_of([self.samples[probe] for probe in probes], self.objectives, self.level,
                          fresh=self.traffic.fresh)

    def fewest_replicas(self, least: int, guess: int, most: int, *, change: str = "", why: str = "",
                        seeds: int | None = None) -> int | None:
        """The fewest replicas that keep the objectives; None if `most`, or MOST_REPLICAS, do not."""
        most = min(most, MOST_REPLICAS)
        if most < least:
            return None
        return fewest(lambda numbers: self.hold([(number, 1.0, change) for number in numbers], why, seeds), least,
                      guess, most)

    def fewest_sure(self, least: int, guess: int, most: int, why: str = "") -> int | None:
        """The same with every seed; the first one alone says where to look. Fewer than `least` are tried, too."""
        near = self.fewest_replicas(least, guess, most, why=why, seeds=1) or most
        found = self.fewest_replicas(least, near, most, why=why)
        while found is not None and found > 1 and self.verdict(found - 1, why="neighbours").holds:
            found -= 1
        return found

    def highest_notch(self, replicas: int, guess: int, *, least: int = -MOST_NOTCHES, most: int = MOST_NOTCHES,
                      change: str = "", why: str = "", seeds: int | None = None) -> int | None:
        """How many notches faster the traffic may be; None if it must be slower than `least`."""
        return highest(lambda notches: self.hold([(replicas, scale_of(notch), change) for notch in notches], why,
                                                  seeds), least, guess, most)

    def highest_sure(self, replicas: int, guess: int, *, least: int = -MOST_NOTCHES, most: int = MOST_NOTCHES,
                     change: str = "", why: str = "") -> int | None:
        """The same with every seed; the first one alone says where to look.

        Chance lets a rate do where a lower one does not. What is found does so at the notch below it as well.
        """
        told: dict[str, Any] = {"least": least, "change": change, "why": why}
        near = self.highest_notch(replicas, guess, most=most, seeds=1, **told)
        found = self.highest_notch(replicas, guess if near is None else near, most=most, **told)
        while found is not None and found > least and not self.verdict(replicas, scale_of(found - 1), change).holds:
            found = self.highest_notch(replicas, found - 2, most=max(found - 2, least), **told)
        return found

    def highest_followed(self, replicas: int, guess: int, most: int, why: str = "") -> int | None:
        """How many notches faster the traffic may be for completions to follow arrivals, with the first seed.

        A run that is too short to tell does not count.
        """
        def follow(notches: Sequence[int]) -> list[bool]:
            probes = [Probe(replicas, scale_of(notch)) for notch in notches]
            self.need(probes, why)
            return [bool(self.samples[probe].follows) for probe in probes]

        return highest(follow, -MOST_NOTCHES, guess, most)

    def gain(self, replicas: int, scale: float, change: str) -> Interval:
        """By how much the share that meets all objectives is larger with a change: the same requests in pairs."""
        pairs = list(zip(self.seeds(replicas, scale, change), self.seeds(replicas, scale), strict=True))
        self.need([probe for pair in pairs for probe in pair], "in pairs")
        sides = ([self.samples[probe].alike for probe in side] for side in zip(*pairs, strict=True))
        with_it, without = (list(chain(*side)) if self.traffic.fresh else merged(side) for side in sides)
        return paired(with_it, without, self.level)
