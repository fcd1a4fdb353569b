"""Ratios: what the switch from one policy to another is worth, in three steps and never as one number.

- scheduling: both with the same number of slots, no bound on memory or on tokens a step.
- paged: each with its own memory rule over one KV pool; static batching reserves each request's declared length.
- deployed: the same, with the baseline's prompts and contexts padded to the longest of the batch. Static batching alone
  has such a form; any other baseline is deployed as in `paged`.

Beside `deployed` stands `model_length`: the padded baseline that reserves the model's whole length for each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from simulator.policies.base import Policy
from simulator.policies.static import StaticBatching
from simulator.scenario import Scenario

RATIOS = {
    "scheduling": "scheduling alone: equal slots, no other bound",
    "paged": "each with its own memory rule: equal KV pool",
    "deployed": "as deployed: the same, and the baseline padded",
    "model_length": "(padded, and reserving the whole model length)",
}
"""The ratios by key, in words."""


@dataclass(frozen=True)
class Pair:
    """Two saturated runs to set against each other."""

    key: str
    baseline: Scenario
    continuous: Scenario

    @property
    def sides(self) -> tuple[Scenario, Scenario]:
        """Both runs."""
        return self.baseline, self.continuous


def pairs(saturated: Scenario, baseline: Policy, policy: Policy, slots: int) -> Iterator[Pair]:
    """The runs behind each ratio of `policy` to `baseline`, where `slots` is the baseline's own cap."""
    free = saturated.but(kv_capacity_tokens=inf)
    yield Pair("scheduling", free.but(policy=baseline.bounded_by(slots)), free.but(policy=policy.bounded_by(slots)))
    for key, variant in _deployments(baseline).items():
        yield Pair(key, saturated.but(policy=variant), saturated.but(policy=policy))


def has_padded_form(baseline: Policy) -> bool:
    """Whether the baseline can be padded, or left ragged, as one pleases."""
    return isinstance(baseline, StaticBatching)


def deployed(baseline: StaticBatching) -> StaticBatching:
    """Static batching as a padded server runs it."""
    return replace(baseline, reserve="declared", padded=True)


def _deployments(baseline: Policy) -> dict[str, Policy]:
    """How the baseline holds memory and pads, from the kindest to the harshest; only static batching has a choice."""
    if not isinstance(baseline, StaticBatching):
        return {"paged": baseline, "deployed": baseline}
    return {
        "paged": replace(baseline, reserve="declared", padded=False),
        "deployed": deployed(baseline),
        "model_length": replace(baseline, reserve="model", padded=True),
    }
