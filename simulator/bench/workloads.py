"""Workloads: what the benchmark runs, as data. They know neither the clock nor how an answer is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from simulator.bench.made import conversations, lognormal, uniform
from simulator.bench.work import Attempt, commanding, reading, simulating, written
from simulator.policies import POLICIES, Policy, Vllm
from simulator.policies.making import make_policy
from simulator.scenario import Scenario

AMPLE = 10_000_000
"""KV pool in tokens in which nobody is ever preempted."""
CONVERSATION_CAPACITY = 24.49
"""Requests a second that `vllm` serves of the conversation stand-in, queued whole at time 0, on the default GPU."""
CONVERSATION_RATE = 5.530
"""Requests a second at which they come by their own times."""


class Case(NamedTuple):
    """One line of the benchmark: a workload, the policy that runs it ("" if none does), its rows and its seed."""

    workload: str
    policy: str
    rows: int
    seed: int = 0


@dataclass(frozen=True)
class Workload:
    """Something to measure, at one or several sizes.

    Attributes:
        about: What it is, in a few words.
        rows: Requests, one number a size.
        quick: The same where no more than a look is wanted.
        prepare: Makes of a case, and a folder to write in, what is measured. It is not measured itself.
        policies: Which run it if nobody says otherwise; empty where no choice is offered.
    """

    about: str
    rows: tuple[int, ...]
    quick: tuple[int, ...]
    prepare: Callable[[Case, Path], Attempt]
    policies: tuple[str, ...] = ("vllm",)


def contender(name: str, slots: int, budget: int | None) -> Policy:
    """The policy of that name with so many slots and no other bound; `vllm` also with a budget of tokens a step."""
    policy = make_policy(name).bounded_by(slots)
    if isinstance(policy, Vllm) and budget is not None:
        return replace(policy, max_num_batched_tokens=budget)
    return policy


LLAMA: dict[str, Any] = {"model": "llama-2-7b", "gpu": "a100-80"}


def planning(case: Case, folder: Path | None = None) -> Scenario:
    """What a planner asks again and again: ten requests a second, at most 128 sequences, a budget of 4,096 tokens."""
    return Scenario(uniform(case.rows, case.seed), contender(case.policy, 128, 4096), **LLAMA)


def saturated(case: Case, slots: int, budget: int | None = 8192) -> Scenario:
    """Every request at time 0, memory for all of them."""
    return Scenario(lognormal(case.rows, case.seed), contender(case.policy, slots, budget), load="saturated",
                    kv_capacity_tokens=AMPLE, max_model_len=32_768)


def million(case: Case) -> Scenario:
    """Conversations hour after hour, at 0.9 of what can be served."""
    scale = 0.9 * CONVERSATION_CAPACITY / CONVERSATION_RATE
    return Scenario(conversations(case.rows, case.seed), make_policy(case.policy), rate_scale=scale)


def _command(case: Case, folder: Path) -> Attempt:
    knobs = ("--set", "max_num_seqs=128", "--set", "max_num_batched_tokens=4096")
    trace = written(uniform(case.rows, case.seed), folder)
    shape = (word for name, value in LLAMA.items() for word in (f"--{name}", value))
    return commanding(["run", "--trace", str(trace), "--unit", "ns", "--quiet", *knobs, *shape])


def _simulated(scenario_of: Callable[..., Scenario], *args: Any) -> Callable[[Case, Path], Attempt]:
    return lambda case, folder: simulating(scenario_of(case, *args))


WORKLOADS: dict[str, Workload] = {
    "planning": Workload("10 requests/s, 128 sequences, llama-2-7b on a100-80", (10_000,), (1_000,),
                         _simulated(planning)),
    "command": Workload("the same as a whole command, from a file", (10_000,), (1_000,), _command, ()),
    "saturated-256": Workload("all at time 0, 256 sequences", (100_000,), (5_000,), _simulated(saturated, 256)),
    "saturated-128": Workload("all at time 0, 128 sequences", (100_000,), (5_000,), _simulated(saturated, 128)),
    "million": Workload("conversations at 0.9 of capacity", (10_000, 100_000, 1_000_000), (1_000, 10_000),
                        _simulated(million)),
    "read": Workload("a CSV file", (1_000_000,), (20_000,),
                     lambda case, folder: reading(uniform(case.rows, case.seed), folder), ()),
    "policies": Workload("all at time 0, 256 slots and no other bound", (20_000,), (500,),
                         _simulated(saturated, 256, None), tuple(POLICIES)),
}
"""All workloads by name, in the order in which they are run."""
