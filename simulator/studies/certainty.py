"""Certainty: how far chance moves the differences of a comparison, under both loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.policies.base import Policy
from simulator.scenario import Load, Scenario
from simulator.studies.contenders import LOADS, Runs, pairs_of, under
from simulator.studies.differences import Difference, difference, differences
from simulator.studies.ratios import Pair
from simulator.studies.replications import replications
from simulator.studies.runner import Runner


@dataclass(frozen=True)
class Certainty:
    """All differences of a comparison.

    Attributes:
        count: Replications.
        words: By load, in what they differ.
        differences: By load; saturated, the figures are the keys of the ratios, and mean output tokens/s.
    """

    count: int
    words: Mapping[Load, str]
    differences: Mapping[Load, tuple[Difference, ...]]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"replications": self.count, "replicated_by": dict(self.words),
                "differences": {load: [each.plain() for each in found] for load, found in self.differences.items()}}


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
        felt = {label: [runner.measure(runs[label, "trace"]) for runs in self.runs] for label in self.contenders}
        return Certainty(len(self.runs), self.words, {"saturated": tuple(filter(None, self._served(runner))),
                                                      "trace": tuple(differences(felt))})

    def _served(self, runner: Runner) -> Iterator[Difference | None]:
        """The saturated pairs, ratio by ratio."""
        for again in zip(*(self._pairs(runs) for runs in self.runs), strict=True):
            label, pair = again[0]
            baseline, other = ([runner.measure(each.sides[at])["output_throughput"] for _, each in again]
                               for at in (0, 1))
            yield difference(pair.key, label, baseline, other)

    def _pairs(self, runs: Runs) -> list[tuple[str, Pair]]:
        """Those of the three ratios; the harshest baseline only stands beside them."""
        return [(label, pair) for label, pair in pairs_of(runs, self.contenders) if pair.key != "model_length"]
