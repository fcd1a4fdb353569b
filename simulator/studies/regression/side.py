"""Side: what one run came to, by which definitions, under which conditions. It compares nothing.

`simulated` makes one of a run; `recorded` makes one of a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from cost_models import CapturedGraphs, CostModel, CostModelError, StepShape
from simulator.distribution import PERCENTILE_METHOD
from simulator.result import Result
from simulator.scenarios.recording import plain
from simulator.studies.regression.names import NAMES, metric_of

Kind = Literal["simulated", "measured"]
CONDITIONS = ("num_prompts", "request_rate", "burstiness", "max_concurrency")
"""What two runs as they stand must have in common, as well as the trace."""
DEFINITIONS = {"tpot": "the first token excluded", "itl": "between tokens", "percentiles": PERCENTILE_METHOD,
               "std": "population"}
"""How a simulated run measures what other tools measure otherwise."""
PROMISED = ("request_goodput", "jain_index")
"""Metrics that count who was served as promised, and so depend on the promises."""
NOT_STATED = "not stated"
SIZES = ("kv_capacity_tokens", "max_model_len")
"""What follows from the model and the GPU, if nobody sets it."""
DIGITS = 16
LARGEST = 1e300
"""What is not smaller is no measurement; infinities and what is no number are not."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison.

    Attributes:
        kind: A simulation, or an engine that was measured.
        metrics: By name of the JSON; None where nothing was measured.
        definitions: How it was measured, by what can be defined otherwise.
        conditions: What was asked of it, by the names in CONDITIONS.
        origin: What made it: versions, policy, cost model, and what was in force where the scenario says nothing.
        scenario: From which it can be run again; None for a measurement.
        spread: How far several measurements of a metric lie apart, as a share of their mean, by name of the JSON.
        notes: What a reader must know, one line each.
    """

    kind: Kind
    metrics: Mapping[str, float | None]
    definitions: Mapping[str, str]
    conditions: Mapping[str, Any]
    origin: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] | None = None
    spread: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def repeated(self) -> bool:
        """Whether it tells how far another run of the same lies apart; a simulation is the same each time."""
        return self.kind == "simulated" or bool(self.spread)

    @property
    def empty(self) -> bool:
        """Whether it says that nobody was served, so that it holds nothing."""
        return self.metrics.get("completed") == 0

    @property
    def effective(self) -> Mapping[str, Any]:
        """Knobs and sizes as they were in force, by name; nothing where nobody kept them."""
        return dict(self.origin.get("effective") or {})

    @property
    def step_error(self) -> float:
        """The scatter of the step times that the cost model states, as a share; 0 if it states none."""
        return float(self.origin.get("step_error") or 0.0)

    def refitted(self, other: Side) -> bool:
        """Whether both price steps by a cost model of the same name that has other times, and that states how far
        they scatter: what states nothing was calibrated by nobody, and has other times where something else is priced.
        """
        names, digests = ([side.origin.get(key) for side in (self, other)] for key in ("cost_model", "cost_digest"))
        stated = self.step_error or other.step_error
        return bool(stated) and names[0] == names[1] and None not in digests and digests[0] != digests[1]


def simulated(result: Result) -> Side:
    """What a run came to."""
    summary, cost = result.summary(), result.setup.cost
    origin = {"simulator_version": summary["simulator_version"], "policy_version": summary["policy_version"],
              "trace_digest": summary["trace_digest"], "cost_model": cost.name, "cost_digest": _digest(cost),
              "step_error": step_error(cost), "effective": _in_force(result, summary)}
    return Side("simulated", measured(summary), definitions(summary),
                {name: summary[name] for name in CONDITIONS}, origin, result.asked)


def _in_force(result: Result, summary: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: summary[name] for name in SIZES}, **{knob: plain(value) for knob, value
                                                          in result.policy.settings().items()}}


def measured(document: Mapping[str, Any]) -> dict[str, float | None]:
    """The metrics in a document, those first that a simulated run has."""
    own = [name for name in NAMES if name in document]
    return {name: number(document[name]) for name in [*own, *(name for name in document if name not in own)]
            if metric_of(name) and isinstance(document[name], int | float | None)}


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    plain = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
    return value if plain else None


def definitions(document: Mapping[str, Any]) -> dict[str, str]:
    """By which definitions a simulated run measures, as its JSON says."""
    told = {"percentiles": document.get("percentile_method"), "std": document.get("std_method")}
    objectives = " and ".join(str(document[name]) for name in ("goodput", "classes") if document.get(name))
    return {**DEFINITIONS, **{name: str(said) for name, said in told.items() if said},
            "goodput": objectives or NOT_STATED}


def defined_by(name: str) -> list[str]:
    """The definitions that a name of the JSON depends on."""
    metric = metric_of(name)
    found = [metric] if metric in ("tpot", "itl") else ["goodput"] if metric in PROMISED else []
    if name.startswith(("median_", "p")) and name.endswith("_ms"):
        found.append("percentiles")
    return [*found, "std"] if name.startswith("std_") else found


def step_error(cost: CostModel) -> float:
    """How far measured steps lie from the cost model on average, as a share, in the kind of step where it is most."""
    stated = (cost.residuals() or {}).values()
    return max((sum(abs(each - 1) for each in quantiles) / len(quantiles) for quantiles in stated if quantiles),
               default=cost.stated_bias() or 0.0)


def _digest(cost: CostModel) -> str | None:
    """Of the times of some steps of every kind; None for a model that does not price all of them. Graphs are a setting,
    so the times are those of the model inside.
    """
    cost = cost.cost if isinstance(cost, CapturedGraphs) else cost
    decodes = [(rows, rows * context) for rows, context in product((1, 7, 32, 200), (100, 1000, 5000))]
    chunks = [((new, prior),) for new, prior in product((16, 500, 3000), (0, 1024))]
    shapes = [StepShape(*each) for each in decodes] + [StepShape(0, 0, each) for each in chunks]
    shapes += [StepShape(*decode, chunk) for decode, chunk in zip(decodes, chunks, strict=False)]
    try:
        told = f"{[cost.time(shape) for shape in shapes]} {cost.request_overhead} {cost.residuals()}"
    except CostModelError:
        return None
    return hashlib.sha256(told.encode()).hexdigest()[:DIGITS]
