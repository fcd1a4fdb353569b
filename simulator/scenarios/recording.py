"""The record of a scenario: plain values from which the same scenario can be read again. It reads and writes no file
but for the digests of those that are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from math import inf
from typing import Any

from cost_models import MODELS, Constant, CostModel, CostModelError, ModelSpec, cost_model
from simulator.frozen import of_python
from simulator.memory.base import UNLIMITED
from simulator.policies import Policy
from simulator.policies.making import make_policy, reference_of
from simulator.scenario import Scenario
from simulator.scenarios.held import held, named_policy
from traces import Trace

FILES, IN_MEMORY = "files", "in_memory"
"""What a record has beside the fields: digests of the files that they name, and the fields that no text can say."""


def record(scenario: Scenario, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A scenario as plain values that `read_scenario` takes, with a digest of each file that it names.

    `files` are those digests, where the scenario does not hold them; without them they are taken now.
    """
    scenario = held(replace(scenario, files={**(files or {}), **scenario.files}), large=True)
    fields, unsaid = _fields(scenario), list(_unsaid(scenario))
    return fields | ({FILES: scenario.files} if scenario.files else {}) | ({IN_MEMORY: unsaid} if unsaid else {})


def _fields(scenario: Scenario) -> dict[str, Any]:
    fields = scenario.to_dict()
    del fields["exact"]    # it changes no answer, so it must change no bytes
    fields["policy"] = named_policy(scenario)
    fields["knobs"] = make_policy(scenario.policy, scenario.knobs, scenario.files).settings()
    if isinstance(model := scenario.model, ModelSpec) and MODELS.get(model.name) != model:
        fields["model"] = model
    if isinstance(scenario.cost_model, Constant):
        fields["cost_model"] = _exactly(scenario.cost_model)
    return {name: value if name == "seed" else plain(value) for name, value in fields.items()}    # any number is a seed


def _exactly(cost: Constant) -> str:
    """Its name, with all digits."""
    return f"constant:{cost.step_ns / 1e6!r}"


def _unsaid(scenario: Scenario) -> Iterator[str]:
    """Fields whose object was made by a program, so that its name does not bring it back."""
    if isinstance(scenario.trace, Trace):
        yield "trace"
    if isinstance(scenario.policy, Policy) and reference_of(scenario.policy) is None:
        yield "policy"
    if isinstance(scenario.cost_model, CostModel) and _named(scenario) != scenario.cost_model:
        yield "cost_model"


def _named(scenario: Scenario) -> CostModel | None:
    """What the name of the scenario's cost model stands for; None if for nothing."""
    cost = scenario.cost_model
    name = _exactly(cost) if isinstance(cost, Constant) else getattr(cost, "name", "")
    try:
        return cost_model(name, model=scenario.model, gpu=scenario.gpu, dtype=scenario.dtype,
                          kv_dtype=scenario.kv_dtype, tensor_parallel_size=scenario.tensor_parallel_size)
    except CostModelError:
        return None


def plain(value: Any) -> Any:
    """The value in JSON's own kinds: no bound is "inf", a shape is its keys, and what is numpy's is Python's."""
    value = of_python(value)
    if isinstance(value, ModelSpec):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if value == inf or (value == UNLIMITED and isinstance(value, int)):
        return "inf"
    return value
