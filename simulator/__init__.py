"""batchsim: what continuous batching is worth on your traffic, and why.

    >>> import simulator as sim
    >>> {key: round(ratio, 2) for key, ratio in sim.compare("azure-conv-2023", num_prompts=100).speedup().items()}
    {'scheduling': 1.73, 'paged': 1.95, 'deployed': 3.59}
    >>> policy = sim.policies.StaticBatching(max_batch_size=16)
    >>> result = sim.simulate("azure-conv-2023", policy, num_prompts=100, load="saturated")
    >>> result
    <Result static on azure-conv-2023, saturated: 100 of 100 requests in 35.485 s, 4,018 steps>
    >>> len(result.requests), len(result.steps), round(result.summary()["output_throughput"])
    (100, 4018, 637)
    >>> sim.run(result.scenario).summary() == result.summary()
    True

`simulate` answers one question, `compare` several at once, `attribute` says where a difference comes from, `explain`
follows one request through its batch, `sweep` runs a grid of settings, `plan` says how many replicas it takes,
`what_if` asks the same requests again under other settings, and `run` answers a Scenario, which every Result carries.

How to read the code, in this order:

    request        one line of a trace and how far it has got
    step           Queue, Step, Wait: the words a policy speaks
    memory/base    how KV cache is asked for
    policies/static, policies/vllm      the two ideas, side by side
    replica        plan, time, commit: the clock
    passes         what a step comes to while it runs
    stretch        how often a step repeats: the only place that fast-forwards
    batch          why a thousand decoding requests cost no more than one
    pricing        what a step costs, and how long it lasts
    simulation     the wiring: setup before it, clients beside it, recorder behind it
    serving        one replica, or a router and a fleet of them: router, routing, overflow, fleet, autoscaler
    result         what a run comes to: timeline, ledgers, metrics
    statistics     how sure a figure is
    studies        several runs, one answer

Traces and costs are packages of their own, `traces` and `cost_models`, and know nothing of this one.
"""

from __future__ import annotations

from simulator import starting

starting.begin()

from simulator import guard  # noqa: E402

guard.check()

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from simulator.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from simulator import memory, plots, policies
    from simulator.errors import InputError, PolicyError, StalledError
    from simulator.policies.base import Policy
    from simulator.result import Result
    from simulator.scenario import Scenario
    from simulator.scenarios import read_scenario
    from simulator.simulation import run, simulate
    from simulator.studies.attribution import attribute
    from simulator.studies.capacity import plan
    from simulator.studies.compare import compare
    from simulator.studies.explain import explain
    from simulator.studies.sweep import sweep
    from simulator.studies.whatif import what_if

__all__ = ["InputError", "Policy", "PolicyError", "Result", "Scenario", "StalledError", "__version__",
           "attribute", "compare", "explain", "memory", "plan", "plots", "policies", "read_scenario", "run", "simulate",
           "sweep", "what_if"]

_HOMES = {
    "InputError": "errors", "PolicyError": "errors", "StalledError": "errors", "Policy": "policies.base",
    "Result": "result", "Scenario": "scenario", "read_scenario": "scenarios", "run": "simulation",
    "simulate": "simulation", "attribute": "studies.attribution", "plan": "studies.capacity",
    "compare": "studies.compare", "explain": "studies.explain", "sweep": "studies.sweep", "what_if": "studies.whatif"}
"""Where each name lives. It is imported when it is asked for, so that who asks for little waits for little."""
_ROOMS = ("memory", "plots", "policies", "statistics", "studies")


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name in _HOMES:
        return getattr(import_module(f"simulator.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return import_module(f"simulator.{name}")
    raise AttributeError(f"module 'simulator' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to ask for; the modules beside it are for its readers."""
    return sorted({*__all__, *_ROOMS})
