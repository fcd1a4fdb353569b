"""Idle settings: what a scenario says that decides nothing in it, and why. It knows no trace."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from simulator.policies import POLICIES, Policy
from traces import shape_of

if TYPE_CHECKING:
    from simulator.scenario import Scenario

SCALING = ("min_replicas", "max_replicas", "startup_delay", "cooldown")


def idle(scenario: Scenario) -> dict[str, str]:
    """Names of fields that change nothing, whatever they say, each with the reason and what would give it a say.

    Example:
        >>> from simulator.scenario import Scenario
        >>> list(idle(Scenario(load="saturated")))[:2]
        ['rate_scale', 'request_rate']
    """
    return dict([*_times(scenario), *_tries(scenario), *_replicas(scenario), *_costs(scenario)])


def _times(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """When the requests come."""
    if scenario.load == "saturated":
        for name in ("rate_scale", "request_rate", "burstiness"):
            yield name, "with load saturated every request comes at 0: give load trace"
    elif not _new_arrivals(scenario):
        yield "burstiness", ("it spaces new arrivals, and these are the trace's own: give request_rate, or a ramp or "
                             "a stage of shape")


def _new_arrivals(scenario: Scenario) -> bool:
    shaped = scenario.shape is not None and shape_of(scenario.shape).replaces
    return shaped or scenario.request_rate not in (None, inf)


def _tries(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """How patient the client is."""
    if scenario.load == "saturated":
        for name in ("ttft_timeout", "request_timeout", "max_retries", "retry_backoff"):
            yield name, "a client that saturates waits for ever: give load trace"
    elif not scenario.max_retries:
        yield "retry_backoff", "nothing is sent again: give max_retries"


def _replicas(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Who serves."""
    if scenario.autoscale is None:
        for name in SCALING:
            yield name, "without autoscale there are as many replicas as replicas says"
        if scenario.replicas == 1:
            yield "router", "there is one replica to choose from: give replicas"


def _costs(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """How large the memory is, what a step takes, and what an hour costs."""
    if scenario.kv_capacity_tokens is not None:
        yield "gpu_memory_utilization", "kv_capacity_tokens says how large the KV cache is: give one of them"
    name = scenario.policy.name if isinstance(scenario.policy, Policy) else scenario.policy
    overheads, prices = scenario.scheduler_overhead, scenario.prices
    if overheads and name not in overheads and set(overheads) <= set(POLICIES):
        yield "scheduler_overhead", f"it is that of {', '.join(overheads)}, and the policy is {name}"
    if prices and scenario.gpu not in prices:
        yield "prices", f"there is none of {scenario.gpu}, the GPU of this run: give --prices {scenario.gpu}=DOLLARS"
