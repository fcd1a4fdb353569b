"""Certainty: how far chance moves the differences of a comparison. Both sides of a pair have the same traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from simulator.metrics import METRICS
from simulator.policies.base import Policy
from simulator.scenario import Load, Scenario
from simulator.statistics import Interval, of_means, paired
from simulator.studies.contenders import LOADS, Runs, pairs_of, under
from simulator.studies.ratios import RATIOS, Pair
from simulator.studies.replications import replications
from simulator.studies.runner import Runner

FELT = {"request_throughput": "requests/s", "request_goodput": "good requests/s",
        **{f"{stem}_{name}_ms": f"{METRICS[name].label}, {word}, ms" for name in ("ttft", "tpot", "e2el")
           for stem, word in (("median", "median"), ("p99", "p99"))}}
"""What is compared at the trace's own times, by its name in the JSON, in words."""

Sides = tuple[Sequence[float | None], Sequence[float | None]]
"""A figure of the baseline and of the other policy, replication by replication."""


@dataclass(frozen=True)
class Difference:
    """A figure of the baseline beside that of another policy, over all replications.

    Attributes:
        figure: Its name in the JSON, or the key of a ratio, whose figure is output tokens/s.
        load: Under which.
        policy: The other one.
        baseline, other: The mean of each side.
        difference: The mean of other - baseline, in pairs.
        ratio: The geometric mean of other / baseline, in pairs; None where a side is 0 at times.
    """

    figure: str
    load: Load
    policy: str
    baseline: Interval
    other: Interval
    difference: Interval
    ratio: Interval | None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        found = {name: getattr(self, name) for name in ("baseline", "other", "difference", "ratio")}
        return {"figure": self.figure, "load": self.load, "policy": self.policy,
                **{name: each and each.plain() for name, each in found.items()}}


@dataclass(frozen=True)
class Certainty:
    """All differences of a comparison.

    Attributes:
        count: Replications.
        words: By load, in what they differ.
        differences: In the order in which a reader asks.
    """

    count: int
    words: Mapping[Load, str]
    differences: tuple[Difference, ...]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"replications": self.count, "replicated_by": dict(self.words),
                "differences": [each.plain() for each in self.differences]}


@dataclass(frozen=True)
class Repeated:
    """The runs of a comparison, once for each replication."""

    contenders: Mapping[str, Policy]
    words: Mapping[Load, str]
    runs: Sequence[Runs]

    @classmethod
    def of(cls, scenario: Scenario, contenders: Mapping[str, Policy], count: int) -> Repeated:
        """Of a scenario whose trace may not have been read yet."""
        plain = scenario.but(error_band=None)
        found = {kind: replications(plain.but(load=kind), count) for kind in LOADS}
        runs = [{(label, kind): under(kind, found[kind].scenarios[at], policy) for kind in LOADS
                 for label, policy in contenders.items()} for at in range(count)]
        return cls(contenders, {kind: each.words for kind, each in found.items()}, runs)

    def scenarios(self) -> Iterator[Scenario]:
        """All that is to be run."""
        for runs in self.runs:
            yield from (scenario for (_, kind), scenario in runs.items() if kind == "trace")
            yield from (side for _, pair in self._pairs(runs) for side in pair.sides)

    def measured(self, runner: Runner) -> Certainty:
        """The differences, once everything has run."""
        return Certainty(len(self.runs), self.words, (*self._served(runner), *self._felt(runner)))

    def _served(self, runner: Runner) -> Iterator[Difference]:
        """The saturated pairs, ratio by ratio."""
        wanted = [self._pairs(runs) for runs in self.runs]
        for again in zip(*wanted, strict=True):
            label, pair = again[0]
            baseline, other = ([runner.measure(getattr(pair, side))["output_throughput"] for _, pair in again]
                               for side in ("baseline", "continuous"))
            yield from _difference(pair.key, "saturated", label, (baseline, other))

    def _pairs(self, runs: Runs) -> list[tuple[str, Pair]]:
        """Those of the three ratios; the harshest baseline only stands beside them."""
        return [(label, pair) for label, pair in pairs_of(runs, self.contenders) if pair.key != "model_length"]

    def _felt(self, runner: Runner) -> Iterator[Difference]:
        """At the trace's own times, figure by figure."""
        baseline, *others = self.contenders
        summaries = {label: [runner.measure(runs[label, "trace"]) for runs in self.runs] for label in self.contenders}
        for label in others:
            for figure in FELT:
                sides = ([summary[figure] for summary in summaries[side]] for side in (baseline, label))
                yield from _difference(figure, "trace", label, (next(sides), next(sides)))


def _difference(figure: str, load: Load, policy: str, sides: Sides) -> Iterator[Difference]:
    """The difference; none where a replication did not measure the figure on both sides."""
    if any(value is None for side in sides for value in side):
        return
    baseline, other = ([float(value or 0) for value in side] for side in sides)
    yield Difference(figure, load, policy, of_means(baseline), of_means(other), paired(other, baseline),
                     _ratio(other, baseline))


def _ratio(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """The interval of the factor between them: that of the mean difference of logarithms."""
    if min(*above, *below) <= 0:
        return None
    found = paired([log(value) for value in above], [log(value) for value in below])
    return Interval(exp(found.low), exp(found.mean), exp(found.high), found.level)


def words_of(difference: Difference) -> str:
    """The figure in a few words."""
    return RATIOS[difference.figure].partition(":")[0] if difference.figure in RATIOS else FELT[difference.figure]
