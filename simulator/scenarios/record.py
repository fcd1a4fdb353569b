"""The record of a scenario: plain values from which the same scenario can be read again. It reads and writes no file
but for the digests of those that are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from cost_models import MODELS, CostModel, CostModelError, ModelSpec, cost_model
from simulator.memory.base import UNLIMITED
from simulator.policies import Policy
from simulator.policies.making import make_policy, reference_of
from simulator.scenario import Scenario
from simulator.scenarios.named import digests
from traces import Trace

FILES, IN_MEMORY = "files", "in_memory"
"""What a record has beside the fields: digests of the files that they name, and the fields that no text can say."""


def record(scenario: Scenario) -> dict[str, Any]:
    """A scenario as plain values that `read_scenario` takes, with a digest of each file that it names."""
    fields, policy = scenario.to_dict(), scenario.policy
    fields["knobs"] = make_policy(policy, scenario.knobs).settings()
    if isinstance(policy, Policy):
        fields["policy"] = reference_of(policy) or policy.name
    if isinstance(model := scenario.model, ModelSpec) and MODELS.get(model.name) != model:
        fields["model"] = asdict(model)
    fields = {name: plain(value) for name, value in fields.items()}
    files = {path: digest for found in digests(fields).values() for path, digest in found.items()}
    unsaid = list(_unsaid(scenario))
    return fields | ({FILES: files} if files else {}) | ({IN_MEMORY: unsaid} if unsaid else {})


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
    name = getattr(scenario.cost_model, "name", "")
    try:
        return cost_model(name, model=scenario.model, gpu=scenario.gpu, dtype=scenario.dtype,
                          kv_dtype=scenario.kv_dtype, tensor_parallel_size=scenario.tensor_parallel_size)
    except CostModelError:
        return None


def plain(value: Any) -> Any:
    """The value in JSON's own kinds: no bound is "inf", a whole number has no point."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= UNLIMITED:
        return "inf"
    return value
