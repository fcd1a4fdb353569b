"""plan: how many replicas, or how much traffic, and why, how sure, and at what cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.account import Account
from simulator.display import account_card
from simulator.policies import Policy
from simulator.policies.making import make_policies
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios.held import held
from simulator.statistics import LEVEL
from simulator.studies.campaign import Backend
from simulator.studies.capacity.around import Around, around
from simulator.studies.capacity.crew import Crew, Told
from simulator.studies.capacity.layout import Layout, layouts_of, spent
from simulator.studies.capacity.objectives import ATTAINMENT
from simulator.studies.capacity.question import REPLICATIONS, Question, question_of
from simulator.studies.capacity.solving import solve
from simulator.studies.capacity.traffic import with_seeds
from simulator.tables import Table
from simulator.traffic import read_trace
from traces import Trace
from traces.sketch import dots

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Plan:
    """What `plan` found.

    Attributes:
        question: What was asked.
        layouts: All that were looked at, the cheapest that does first, those that do not last.
        around: What lies around the answer of the first one; None where no layout does.
        runs: Simulations that it took.
    """

    question: Question
    layouts: tuple[Layout, ...]
    around: Around | None
    runs: int

    @property
    def best(self) -> Layout:
        """The cheapest layout that does; where none does, the first one that was asked for."""
        return self.layouts[0]

    @property
    def feasible(self) -> bool:
        """Whether there is an answer."""
        return self.best.replicas is not None

    @property
    def replicas(self) -> int | None:
        """Of the answer; None where there is none."""
        return self.best.replicas

    @property
    def rate(self) -> float | None:
        """Requests a second that the answer carries; None where there is none."""
        return self.best.offered * self.best.scale if self.feasible else None

    def told(self) -> list[str]:
        """The answer in sentences."""
        from simulator.studies.capacity.story import story
        return story(self)

    def tables(self) -> list[Table]:
        """Everything that was measured, in the order in which a reader asks."""
        from simulator.studies.capacity.tables import tables
        return tables(self)

    def records(self) -> dict[str, Any]:
        """Everything as plain values."""
        from simulator.studies.capacity.records import records
        return records(self)

    def account(self) -> Account:
        """Question, answer, tables and facts, in words."""
        from simulator.studies.capacity.account import account
        return account(self)

    def findings(self) -> dict[str, Any]:
        """The plain values, and the account."""
        return self.records() | {"account": self.account().plain()}

    def to_json(self) -> str:
        """The plain values as a JSON document."""
        return json.dumps(self.records(), indent=1, allow_nan=False) + "\n"

    def frame(self) -> pd.DataFrame:
        """A row a simulation: what was run, and what it came to."""
        from simulator.studies.capacity.records import frame
        return frame(self)

    def curve(self) -> pd.DataFrame:
        """Goodput against rate, with the replicas of the answer; columns as in `records.CURVE`."""
        from simulator.studies.capacity.records import curve
        return curve(self)

    def __str__(self) -> str:
        return str(self.account())

    def __repr__(self) -> str:
        return f"<Plan: {self.told()[0]}>"

    def _repr_html_(self) -> str:
        account, rows = self.account(), self.records()["curve"]
        points = [(row["per_replica"], row["goodput"]) for row in rows]
        knees = ["knee" in row["mark"] for row in rows]
        sketch = dots(points, knees, "goodput against the rate a replica; orange: the knee") if points else ""
        return account_card(account, sketch, len(account.tables))


def plan(trace: Trace | str = "azure-conv-2023", policy: Policy | str = "vllm", *, attainment: float = ATTAINMENT,
         slo: Sequence[str] = (), confidence: float = LEVEL, find: str = "replicas", gpus: Sequence[str] = (),
         tensor_parallel_sizes: Sequence[int] = (), max_gpus: int | None = None, replications: int = REPLICATIONS,
         settings: Mapping[str, Any] | None = None, workers: int = 1, backend: Backend | None = None,
         told: Told | None = None, **options: Any) -> Plan:
    """Find the fewest replicas that keep the service objectives, or the highest rate, and say why.

    Args:
        trace: What is to be served, at its own times unless the options say otherwise.
        policy: The engine.
        attainment: Share of the requests that must meet all limits of `goodput`.
        slo: Percentiles to keep, such as "p99_ttft:500".
        confidence: Level of the intervals; an objective is kept if the lower end of its interval is.
        find: "replicas", or "rate": the most traffic that `replicas` of them carry.
        gpus, tensor_parallel_sizes: Layouts to choose from; the cheapest one is the answer.
        max_gpus: The most GPUs there are.
        replications: Seeds where something is drawn.
        settings: Knobs of a policy given by name: "knob" or "policy.knob" to a value.
        workers: Processes at once.
        backend: Where runs are made, in place of so many processes.
        told: Hears how far it has got.
        options: The other fields of Scenario.

    Example:
        >>> found = plan("azure-conv-2023", num_prompts=200, goodput={"ttft": 500}, replications=2)
        >>> found.feasible, found.replicas
        (True, 1)
    """
    scenario = held(scenario_of(**{"trace": trace, "policy": policy, "knobs": _knobs(policy, settings or {}),
                                   **options}))
    question = question_of(scenario, attainment=attainment, slo=slo, confidence=confidence, find=find, gpus=gpus,
                           tensor_parallel_sizes=tensor_parallel_sizes, max_gpus=max_gpus, replications=replications)
    crew = Crew(backend or Backend(workers=workers), told)
    scenarios = with_seeds(question.scenario, question.seeds)
    question = question.about(read_trace(scenarios[0]))
    layouts = layouts_of(question, scenarios, crew.measure)
    for layout in layouts:
        solve(layout, question)
    ranked = ranking(layouts, question)
    best = ranked[0]
    found = around(best, question.find, _bias(best, question.scenario)) if best.replicas is not None else None
    return Plan(question, tuple(ranked), found, crew.runs)


def _knobs(policy: Policy | str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without the policy's name. What is wrong with one is said before anything runs."""
    if not isinstance(policy, str) or not settings:
        return dict(settings)
    make_policies([policy], settings)
    return {key.rpartition(".")[2]: value for key, value in settings.items()}


def ranking(layouts: Sequence[Layout], question: Question) -> list[Layout]:
    """The layouts with an answer by what their traffic costs, those without one last."""
    return sorted(layouts, key=lambda layout: (layout.replicas is None, spent(layout, question.scenario) or 0.0))


def _bias(layout: Layout, scenario: Scenario) -> float | None:
    """By which share of a step the answer is to be tried shorter and longer; None where no error is stated."""
    if scenario.error_band in (None, "stated"):
        return layout.runs.traffic.setup.cost.stated_bias() or None
    return float(scenario.error_band) / 100
