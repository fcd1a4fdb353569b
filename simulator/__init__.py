"""batchsim: what continuous batching is worth on your traffic, and why.

    >>> import simulator as sim
    >>> {key: round(ratio, 2) for key, ratio in sim.compare("azure-conv-2023", num_prompts=100).speedup().items()}
    {'scheduling': 1.73, 'paged': 1.95, 'deployed': 3.59}
    >>> policy = sim.policies.StaticBatching(max_batch_size=16)
    >>> result = sim.simulate("azure-conv-2023", policy, num_prompts=100, load="saturated")
    >>> result
    <Result static on azure-conv-2023, saturated: 100 of 100 requests in 35.485 s, 4018 steps>
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
    simulate       the wiring: setup before it, clients beside it, recorder behind it
    serving        one replica, or a router and a fleet of them: router, routing, overflow, fleet, autoscaler
    result         what a run comes to: timeline, ledgers, metrics
    statistics     how sure a figure is
    studies        several runs, one answer

Traces and costs are packages of their own, `traces` and `cost_models`, and know nothing of this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator import guard

guard.check()

# `simulate` names a module and a function of it: the function must be bound after the module, so it cannot be lazy.
from simulator import memory, policies  # noqa: E402
from simulator.errors import InputError, PolicyError, StalledError  # noqa: E402
from simulator.policies.base import Policy  # noqa: E402
from simulator.result import Result  # noqa: E402
from simulator.scenario import Scenario  # noqa: E402
from simulator.scenarios import read_scenario  # noqa: E402
from simulator.simulate import run, simulate  # noqa: E402
from simulator.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from simulator import plots
    from simulator.studies.attribution import attribute
    from simulator.studies.capacity import plan
    from simulator.studies.compare import compare
    from simulator.studies.explain import explain
    from simulator.studies.sweep import sweep
    from simulator.studies.whatif import what_if

__all__ = ["InputError", "Policy", "PolicyError", "Result", "Scenario", "StalledError", "__version__",
           "attribute", "compare", "explain", "memory", "plan", "plots", "policies", "read_scenario", "run", "simulate",
           "sweep", "what_if"]


def __getattr__(name: str) -> Any:
    """Load what not everybody needs when it is asked for."""
    if name == "compare":
        from simulator.studies.compare import compare
        return compare
    if name == "attribute":
        from simulator.studies.attribution import attribute
        return attribute
    if name == "explain":
        from simulator.studies.explain import explain
        return explain
    if name == "plan":
        from simulator.studies.capacity import plan
        return plan
    if name == "sweep":
        from simulator.studies.sweep import sweep
        return sweep
    if name == "what_if":
        from simulator.studies.whatif import what_if
        return what_if
    if name in ("plots", "statistics", "studies"):
        from importlib import import_module
        return import_module(f"simulator.{name}")
    raise AttributeError(f"module 'simulator' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
