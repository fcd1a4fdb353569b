"""Question: what a plan is asked. It checks values by themselves and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cost_models import GPUS
from simulator import checks
from simulator.errors import InputError, choose
from simulator.mistaken import check_lists
from simulator.scenario import Scenario
from simulator.statistics import LEVEL
from simulator.studies.capacity.objectives import ATTAINMENT, Objective, objectives_of
from simulator.studies.capacity.traffic import is_random, refuse
from traces import Trace

FIND = {"replicas": "the fewest replicas for the trace's own traffic",
        "rate": "the highest rate that so many replicas carry"}
REPLICATIONS = 3
"""Seeds where something is drawn. Each run is cut into windows besides, so that few suffice."""


@dataclass(frozen=True)
class Question:
    """What is to be planned.

    Attributes:
        scenario: Traffic, model, engine and all else; its replicas count where the rate is sought.
        objectives: What is to be kept.
        level: How sure one wants to be: the level of the intervals.
        find: One of FIND.
        gpus: GPU types to choose from.
        sizes: Tensor-parallel sizes to choose from.
        max_gpus: The most GPUs there are; None: no bound.
        seeds: Runs of each kind: several where something is drawn, one of a recorded trace.
    """

    scenario: Scenario
    objectives: tuple[Objective, ...]
    level: float
    find: str
    gpus: tuple[str, ...]
    sizes: tuple[int, ...]
    max_gpus: int | None
    seeds: int

    def about(self, trace: Trace) -> Question:
        """The same without the objective of all other tenants where there are none. Raises InputError for a tenant
        who is not in the trace."""
        kept = tuple(one for one in self.objectives if one.concerns(trace).any())
        names = () if trace.tenant is None else tuple(dict.fromkeys(trace.tenant))
        for one in self.objectives:
            if one.tenant is not None and one not in kept:
                choose("tenant", one.tenant, names)
        return replace(self, objectives=kept)

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"find": self.find, "objectives": [objective.plain() for objective in self.objectives],
                "confidence": self.level, "max_gpus": self.max_gpus, "gpus": list(self.gpus),
                "tensor_parallel_sizes": list(self.sizes), "seeds": self.seeds}


def question_of(scenario: Scenario, *, attainment: float = ATTAINMENT, slo: Sequence[str] = (),
                confidence: float = LEVEL, find: str = "replicas", gpus: Sequence[str] = (),
                tensor_parallel_sizes: Sequence[int] = (), max_gpus: int | None = None,
                replications: int = REPLICATIONS) -> Question:
    """The question of these settings. Raises InputError for what cannot be asked."""
    choose("answer to find", find, FIND)
    refuse(scenario)
    check_lists(slo=slo, gpus=gpus, tensor_parallel_sizes=tensor_parallel_sizes)
    confidence = checks.positive("confidence", confidence)
    if confidence >= 1:
        raise InputError(f"confidence must be below 1, not {confidence}: 0.95 is usual")
    max_gpus, replications = checks.count("max_gpus", max_gpus), checks.whole("replications", replications)
    sizes = tuple(dict.fromkeys(checks.whole("tensor_parallel_sizes", size) for size in tensor_parallel_sizes))
    types = tuple(choose("GPU", gpu, GPUS) for gpu in dict.fromkeys(gpus)) or (scenario.gpu,)
    if scenario.prices and (missing := [gpu for gpu in types if gpu not in scenario.prices]):
        raise InputError(f"there is no price for {' and '.join(missing)}: give --prices "
                         f"{','.join(f'{gpu}=DOLLARS' for gpu in missing)}, or none at all")
    return Question(scenario, objectives_of(scenario, attainment, slo), confidence, find, types,
                    sizes or (scenario.tensor_parallel_size,), max_gpus,
                    replications if is_random(scenario) else 1)
