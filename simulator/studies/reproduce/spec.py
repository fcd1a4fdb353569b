"""A specification of a reproduction, as its YAML file holds it: what was published, and what we run to see it again.

The dataclasses are the file: field names are its keys. Numbers and sources are data there; this file checks that they
fit together. It runs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from cost_models import CostModelError, choose
from cost_models.strict import build, parse_yaml
from simulator.metrics import METRICS
from simulator.scenario import Scenario
from simulator.studies.reproduce.stated import Stated
from simulator.studies.reproduce.workloads import Workload

ORDER = ("anyscale", "vllm-memory", "orca", "sarathi", "tgi-v3", "slots")
"""The bundled specifications, in the order in which they are told."""
NAMED = re.compile(r"{([^}]*)}")
"""A claim in an answer."""


@dataclass(frozen=True)
class Search:
    """Not one run but many: the highest request rate at which all measures stay within their bounds.

    Attributes:
        within: The bound of each measure; measures that grow with the rate.
        lowest, highest: Rates between which the answer is looked for, requests a second.
        probes: Rates that are tried.
    """

    within: dict[str, float]
    lowest: float
    highest: float
    probes: int


@dataclass(frozen=True)
class Run:
    """One run: fields of Scenario, and where its trace and its costs come from.

    Attributes:
        workload: A workload of the specification; None: `scenario` names a bundled trace.
        cost: Costs of the specification; None: `scenario` names a cost model.
        scenario: Other fields of Scenario, over those of the specification's `scenario`.
        knobs: Of the policy.
        search: Look for a request rate instead of running once.
    """

    workload: str | None = None
    cost: str | None = None
    scenario: dict[str, Any] = field(default_factory=dict)
    knobs: dict[str, Any] = field(default_factory=dict)
    search: Search | None = None


@dataclass(frozen=True)
class Claim:
    """A number that was published, how we measure it, and how near we must come.

    Attributes:
        what: In words, with its unit.
        metric: The measure; see `measures`.
        of: The run.
        over: Divide by the same measure of this run.
        order: Instead of `of`: runs whose measure must rise from one to the next.
        published: The number; None where only a sign or a range was.
        percent: Tolerance, in percent of the published number.
        points: Tolerance, in the unit of the published number.
        factor: Tolerance: at most so many times more or less.
        between: Bounds of our number, instead of a tolerance.
        above: The same, without an upper bound; above 1 it is no more than a check of the sign of a gain.
        note: What a reader must know of it.
    """

    what: str
    metric: str
    of: str | None = None
    over: str | None = None
    order: tuple[str, ...] = ()
    published: float | None = None
    percent: float | None = None
    points: float | None = None
    factor: float | None = None
    between: tuple[float, ...] | None = None
    above: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if (self.of is None) == (len(self.order) < 2):
            raise CostModelError(f"'{self.what}': give 'of', or at least two runs in 'order'")
        stated = (self.percent, self.points, self.factor, self.between, self.above)
        if sum(each is not None for each in stated) > 1:
            raise CostModelError(f"'{self.what}': give one tolerance, not several")
        if self.between is not None and len(self.between) != 2:
            raise CostModelError(f"'{self.what}': between takes two numbers, the lowest and the highest")
        if self.published is None and (self.percent, self.points, self.factor) != (None, None, None):
            raise CostModelError(f"'{self.what}': a tolerance needs a published number")

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs that it needs."""
        return self.order or tuple(name for name in (self.of, self.over) if name)


@dataclass(frozen=True)
class Rung:
    """One step of a ladder: what changes, and the run in which it has changed."""

    what: str
    run: str


@dataclass(frozen=True)
class Spec:
    """What was published, and how we look for it.

    Attributes:
        name: On the command line.
        title: What it is about.
        source: Where it was published.
        answer: What comes out, in a sentence or two; {NAME OF A CLAIM} stands for our number of that claim.
        assumptions: All that the publication does not say, and we had to assume.
        claims: The numbers.
        runs: By name.
        workloads, costs: By name.
        scenario: Fields of Scenario that all runs share.
        ladder: Runs that follow one another by one change each; their factors multiply to the whole.
        ladder_metric: What the ladder measures.
        seed: Of everything drawn.
        beside: What our numbers stand beside.
    """

    name: str
    title: str
    source: str
    answer: str
    assumptions: tuple[str, ...]
    claims: tuple[Claim, ...]
    runs: dict[str, Run]
    workloads: dict[str, Workload] = field(default_factory=dict)
    costs: dict[str, Stated] = field(default_factory=dict)
    scenario: dict[str, Any] = field(default_factory=dict)
    ladder: tuple[Rung, ...] = ()
    ladder_metric: str = "output_throughput"
    seed: int = 0
    beside: str = "published"

    def __post_init__(self) -> None:
        for claim in self.claims:
            for name in claim.runs:
                choose(f"run of '{claim.what}'", name, self.runs)
        for name in NAMED.findall(self.answer):
            choose("claim in the answer", name, [claim.what for claim in self.claims])
        choose("ladder metric", self.ladder_metric, METRICS)
        for rung in self.ladder:
            choose("run of the ladder", rung.run, self.runs)
        for name, run in self.runs.items():
            if run.workload is not None:
                choose(f"workload of run {name}", run.workload, self.workloads)
            if run.cost is not None:
                choose(f"costs of run {name}", run.cost, self.costs)
            for key in (*self.scenario, *run.scenario):
                choose(f"field of run {name}", key, Scenario.__dataclass_fields__)


@cache
def bundled_specs() -> dict[str, Spec]:
    """The specifications that come with the package, by name."""
    return {name: read_spec(name) for name in ORDER}


def read_spec(name: str) -> Spec:
    """A bundled specification; what is wrong with it is one line."""
    return build(Spec, read_file(name), f"{name}.yaml")


def read_file(name: str) -> object:
    """What a bundled file holds."""
    file = files("simulator.studies.reproduce").joinpath("specs", f"{name}.yaml")
    return parse_yaml(file.read_text(encoding="utf-8"), file.name)
