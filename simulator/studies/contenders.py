"""Contenders: the runs of a comparison - each policy under each load, and the pairs behind its ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.memory.base import UNLIMITED
from simulator.policies.base import Policy
from simulator.scenario import Load, Scenario
from simulator.setup import prepare
from simulator.studies.ratios import Pair, pairs

LOADS: tuple[Load, ...] = ("saturated", "trace")
ASSUMED_SLOTS = 32
"""Of a baseline that has no cap of its own."""

Runs = Mapping[tuple[str, Load], Scenario]
"""The runs that are shown, by label of the policy and load."""


def under(kind: Load, scenario: Scenario, policy: Policy) -> Scenario:
    """The scenario with this policy, saturated (every request queued at time 0) or at the trace's own times."""
    if kind == "saturated":
        return scenario.but(policy=policy, load=kind, max_concurrency=None)
    return scenario.but(policy=policy, load=kind)


def slots_of(baseline: Scenario) -> int:
    """The baseline's own cap on its slots, which runs with equal slots have as well."""
    slots = prepare(baseline).policy.slots
    return slots if slots < UNLIMITED else ASSUMED_SLOTS


def pairs_of(runs: Runs, contenders: Mapping[str, Policy]) -> list[tuple[str, Pair]]:
    """What each ratio of each policy to the baseline needs to have run."""
    baseline, *others = contenders
    base = runs[baseline, "saturated"]
    slots = slots_of(base)
    return [(label, pair) for label in others for pair in pairs(base, contenders[baseline], contenders[label], slots)]


def alike(wanted: Sequence[tuple[str, Pair]], baseline: str) -> dict[str, Scenario]:
    """By label, the runs with equal slots and no other bound."""
    pairs_alike = [(label, pair) for label, pair in wanted if pair.key == "scheduling"]
    return {baseline: pairs_alike[0][1].baseline, **{label: pair.continuous for label, pair in pairs_alike}}
