"""Points: what a run comes to where only its total counts, in whole numbers, so that ratios are exact.

Runs that nobody has asked for twice, as a campaign: in processes of their own where there are cores for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, TypeVar

import numpy as np

from simulator.errors import InputError
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.studies.campaign import Backend, Failure, Found, campaign
from simulator.throughput import SECOND, whole_run

Key = TypeVar("Key")
Told = Callable[[int, int], None]
"""Called with (runs done, runs in all)."""

METRICS = {"throughput": "output tokens/s", "goodput": "good requests/s",
           "cost": "GPU-seconds per million output tokens"}
"""What can be taken apart, and its unit."""
FEW = 50_000
"""Requests, over all runs, that are served before other processes have started and imported what they need."""


@dataclass(frozen=True)
class Point:
    """The totals of a run.

    Attributes:
        completed, good: Requests answered, and how many of them met every objective (0 without one).
        tokens: Output tokens of those answered.
        duration: Nanoseconds from the first request sent to the last token delivered.
        steps: Forward passes.
        gpus: That the replicas take.
        sequences: Most requests that held a slot at once.
        slots: The cap on them.
        preemptions: How often a request lost its slot.
        longest: The longest answers of all sets of requests that entered together, summed.
    """

    completed: int
    good: int
    tokens: int
    duration: int
    steps: int
    gpus: int
    sequences: int
    slots: int
    preemptions: int
    longest: int

    @classmethod
    def of(cls, result: Result) -> Self:
        """The totals of this run."""
        line, record, scenario = result.timeline, result.record, result.scenario
        window = whole_run(line)
        good = 0 if result.met is None else int(result.met.sum())
        return cls(window.requests, good, window.output_tokens, window.duration, len(record.ends),
                   scenario.tensor_parallel_size * scenario.replicas, int(record.plan("running").max(initial=0)),
                   result.policy.slots, int(line.preemptions.sum()), _longest(result))

    def worth(self, metric: str) -> Fraction:
        """What more of is better, a second; 0 where nothing was served."""
        count = self.good if metric == "goodput" else self.tokens
        return Fraction(count * SECOND, self.duration) if self.duration else Fraction(0)

    def value(self, metric: str) -> Fraction | None:
        """The metric in its unit; None where nothing was served."""
        worth = self.worth(metric)
        if metric == "cost":
            return self.gpus * 1_000_000 / worth if worth else None
        return worth if self.completed else None

    @property
    def tokens_per_step(self) -> Fraction:
        """What it would be worth if every step cost the same."""
        return Fraction(self.tokens, self.steps) if self.steps else Fraction(0)


def _longest(result: Result) -> int:
    stays = result.record.stays
    _, group = np.unique(stays[:, 1], return_inverse=True)
    longest = np.zeros(len(stays), np.int64)
    np.maximum.at(longest, group, result.setup.output[stays[:, 0]])
    return int(longest.sum())


def point(scenario: Scenario) -> Point:
    """Run a scenario and keep its totals."""
    return Point.of(run(scenario))


def measure(scenarios: Mapping[Key, Scenario], workers: int = 1, told: Told | None = None) -> dict[Key, Point]:
    """The points of all scenarios by the same keys, in up to `workers` processes at once; few requests stay here."""
    keys = {str(number): key for number, key in enumerate(scenarios)}
    points = {name: scenarios[key] for name, key in keys.items()}
    found = campaign(points, point, backend=Backend(workers=_worth_it(points, workers)), retries=0, told=told)
    return {keys[name]: _point(outcome) for name, outcome in found.items()}


def _worth_it(points: Mapping[str, Scenario], workers: int) -> int:
    """Processes to start; only this one where the traces are at hand, and so short that a start would take longer."""
    requests = [len(scenario.read) if scenario.read is not None else FEW for scenario in points.values()]
    return workers if sum(requests) >= FEW else min(workers, 1)


def _point(outcome: Found[Point] | Failure) -> Point:
    if isinstance(outcome, Found):
        return outcome.value
    raise (InputError if outcome.hopeless else RuntimeError)(outcome.reason)
