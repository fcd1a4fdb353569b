"""Changes: what is relaxed to see whether it binds, one constraint at a time, all else as it was. They run nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from cost_models import Biased, CostModel, StepShape
from cost_models.around import Around
from simulator.memory.base import UNLIMITED
from simulator.policies import Policy
from simulator.policies.base import CAPS
from simulator.scenario import Scenario
from simulator.setup import Setup, prepare
from simulator.throughput import offered_rate

BUDGETS = ("max_num_batched_tokens", "max_num_tokens", "max_batch_prefill_tokens", "max_prefill_tokens",
           "chunked_prefill_size")
"""Knobs that bound the tokens of a step, by the engines' names."""
POOLS = ("max_batch_total_tokens",)
"""Knobs that bound the tokens of all who run."""
RELAXED = {
    "cap": ("batch cap", "no cap on sequences"),
    "budget": ("token budget", "no bound on the tokens of a step"),
    "kv": ("KV cache", "KV cache without a bound"),
    "prefill": ("prefill", "prompts that cost no more than a single token"),
    "bursts": ("bursts", "the same requests, evenly spaced"),
    "routing": ("routing", "each request to the replica with the fewest outstanding"),
}
"""By key: the constraint, and what is put in its place."""
TRIED = {"small-steps": ("smaller steps", "a quarter of the token budget")}
"""By key: settings that are no relaxation, and may be better or worse."""
SMALLER = 4
STEPS = "steps x"
"""Begins the key of a change that makes every step so many times as long."""


@dataclass(frozen=True)
class ShortPrompts(Around):
    """Steps priced as if every prompt chunk were one sequence that decodes: prompts take time no more."""

    cost: CostModel

    @property
    def name(self) -> str:
        """That of the model inside, and what is left out."""
        return f"{self.cost.name}, prompts free"

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        rows = len(shape.chunks)
        return self.cost.time(StepShape(shape.decodes + rows, shape.context + rows) if rows else shape)

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row."""
        return self.cost.decode_times(shape, k, growth)


def faster(factor: float) -> str:
    """The key of the change that makes every step `factor` times as long."""
    return f"{STEPS}{factor:.6g}"


def words(key: str) -> str:
    """The change in words."""
    if key.startswith(STEPS):
        percent = 100 * (float(key.removeprefix(STEPS)) - 1)
        return f"every step {abs(percent):.3g}% {'shorter' if percent < 0 else 'longer'}"
    return (RELAXED | TRIED)[key][1]


def relaxable(setup: Setup, replicas: int) -> list[str]:
    """The changes that are there to be made, in the order of RELAXED and TRIED."""
    scenario, policy = setup.scenario, setup.policy
    budget = _bounded(policy, BUDGETS)
    there = {"cap": _bounded(policy, CAPS), "budget": budget,
             "kv": setup.deployment.kv_capacity_tokens < UNLIMITED or _bounded(policy, POOLS), "prefill": True,
             "bursts": scenario.request_rate is None or scenario.burstiness != inf,
             "routing": replicas > 1 and scenario.router != "least-outstanding", "small-steps": budget}
    return [key for key, is_there in there.items() if is_there]


def _bounded(policy: Policy, names: Sequence[str]) -> bool:
    return any((policy.settings().get(name) or UNLIMITED) < UNLIMITED for name in names)


def changed(scenario: Scenario, key: str) -> Scenario:
    """The scenario with this change; the same one for no key."""
    if not key:
        return scenario
    if key == "routing":
        return scenario.but(router="least-outstanding")
    setup = prepare(scenario)
    if key.startswith(STEPS):
        return scenario.but(cost_model=Biased(setup.cost, float(key.removeprefix(STEPS))), cuda_graph_sizes="none")
    return scenario.but(**_fields(key, setup))


def _fields(key: str, setup: Setup) -> dict[str, Any]:
    """The fields that change. The policy keeps the knobs that it has now, those that follow from others included."""
    match key:
        case "prefill":
            return {"cost_model": ShortPrompts(setup.cost), "cuda_graph_sizes": "none"}
        case "bursts":
            return {"request_rate": offered_rate(setup.trace.arrival), "burstiness": inf, "rate_scale": 1.0,
                    "cap_gaps": None, "shape": None}
        case "kv":
            return _without(setup, POOLS) | {"kv_capacity_tokens": inf}
        case "small-steps":
            slots = setup.policy.slots if setup.policy.slots < UNLIMITED else 1
            return _with(setup, BUDGETS, lambda tokens: max(tokens // SMALLER, slots, 1))
        case _:
            return _without(setup, CAPS if key == "cap" else BUDGETS)


def _without(setup: Setup, names: Sequence[str]) -> dict[str, Any]:
    return _with(setup, names, lambda bound: UNLIMITED)


def _with(setup: Setup, names: Sequence[str], bound: Callable[[int], int]) -> dict[str, Any]:
    """The policy with other values of those of these knobs that it has and that bound something."""
    policy, given = setup.policy, setup.scenario.policy
    there = {name: bound(value) for name, value in policy.settings().items()
             if name in names and (value or UNLIMITED) < UNLIMITED}
    if isinstance(given, str):    # other processes find a class of one's own by its name only
        return {"knobs": policy.settings() | there}
    return {"policy": replace(policy, **there)}
