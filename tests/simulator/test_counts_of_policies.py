"""How much work a request is under every policy, in counts: plans, events, heap operations, lines of Python.

A slowdown in kind shows here without a clock: a policy that is asked too often, an event or a heap entry too many, a
walk over everybody who runs. The workloads are those of `batchsim bench`, cut short.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
from simpy import Environment

import simulator as sim
from simulator.bench.workloads import Case, planning, saturated
from simulator.memory import Memory
from simulator.policies import POLICIES, Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.step import Queue, Step

SLACK = 10
"""Events and heap entries of a run that no request is to blame for."""
ASKED_AT_EVERY_STEP = ("ft",)
REQUESTS = {name: 200 if name in ASKED_AT_EVERY_STEP else 1000 for name in POLICIES}
IN_HEAPS = {"tgi": 2, "sglang": 4}
"""Heap entries a request: its last step; leaves of a tree of prompts, again whenever they are used."""
ALIKE = 1.13
"""Lines a plan or request with four times the slots, where nothing is walked over: it is a little more or less."""
WALK = ("static", "ft", "dynamic", "sglang")
"""Their rules look at everybody who runs, whose place is held, or who may be in the next batch."""
SCENARIOS: dict[str, Callable[[str], Scenario]] = {
    "planning": lambda name: planning(Case("planning", name, REQUESTS[name])),
    "saturated": lambda name: saturated(Case("policies", name, REQUESTS[name]), 256, None),
}
EVERY = pytest.mark.parametrize("name", POLICIES)
BOTH = pytest.mark.parametrize("workload", SCENARIOS)


class Counted(Environment):
    """Counts the events that come about."""

    events = 0

    def step(self) -> None:
        self.events += 1
        super().step()


@pytest.fixture
def heap(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the heap operations of SimPy and the simulator, wherever they are."""
    counts: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            counts[name] += 1
            return getattr(heapq, name)(*args)

        return counted

    operations = {getattr(heapq, name): name for name in heapq.__all__ if name.startswith("heap")}
    for full, module in list(sys.modules.items()):
        if full.partition(".")[0] in ("simpy", "simulator"):
            for name, value in list(vars(module).items()):
                if callable(value) and type(value) is type(len) and value in operations:
                    monkeypatch.setattr(module, name, counting(operations[value]))
    return counts


@BOTH
@EVERY
def test_a_request_takes_few_plans(name: str, workload: str) -> None:
    """One when it comes and one when it goes, each at most; with everybody there from the start, one is enough."""
    result = sim.run(SCENARIOS[workload](name))
    plans, steps = len(result.record.plans), len(result.record.ends)
    if name in ASKED_AT_EVERY_STEP:
        assert plans == steps
    else:
        assert plans <= (2.6 if workload == "planning" else 1.25) * REQUESTS[name]
        assert steps >= 1.5 * plans


@BOTH
@EVERY
def test_a_plan_takes_one_event_and_an_arrival_one(name: str, workload: str) -> None:
    env = Counted(initial_time=0)
    result = sim.run(SCENARIOS[workload](name), env=env)
    arrivals = REQUESTS[name] if workload == "planning" else 0
    assert env.events <= len(result.record.plans) + arrivals + SLACK


@BOTH
@EVERY
def test_a_request_takes_few_heap_operations_beside_the_events(name: str, workload: str, heap: Counter[str]) -> None:
    env = Counted(initial_time=0)
    sim.run(SCENARIOS[workload](name), env=env)
    assert env.events <= heap["heappush"] <= env.events + IN_HEAPS.get(name, 1) * REQUESTS[name] + SLACK
    assert heap["heappop"] <= heap["heappush"] + SLACK
    assert sum(heap.values()) - heap["heappush"] - heap["heappop"] <= SLACK


def test_preemptions_cost_a_heap_entry_each(heap: Counter[str]) -> None:
    env = Counted(initial_time=0)
    tight = replace(SCENARIOS["saturated"]("vllm"), kv_capacity_tokens=40_000)
    preemptions = sim.run(tight, env=env).summary()["preemptions"]
    assert preemptions > 100
    assert heap["heappush"] <= env.events + REQUESTS["vllm"] + preemptions + SLACK


def lines(scenario: Scenario) -> tuple[int, Result]:
    """Lines of Python that a simulation runs, each turn of a loop by itself."""
    count = 0

    def count_line(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(lambda *call: count_line)
    try:
        result = sim.run(scenario)
    finally:
        sys.settrace(before)
    return count, result


def growth(scenario_of: Callable[[int], Scenario]) -> float:
    """How many times as many lines a plan or a request is with 256 slots as with 64."""
    sim.run(scenario_of(64))    # whatever is read once is read now
    cost = []
    for slots in (64, 256):
        count, result = lines(scenario_of(slots))
        cost.append(count / (len(result.record.plans) + len(result.setup.output)))
    return cost[1] / cost[0]


@EVERY
def test_a_plan_does_not_walk_over_those_who_decode(name: str) -> None:
    """Four times the slots make no more lines; where the rule itself walks, they make four times as many at most."""
    grown = growth(lambda slots: saturated(Case("policies", name, REQUESTS[name]), slots, None))
    assert grown <= (4 if name in WALK else ALIKE)


@dataclass
class Walking(Vllm):
    """Looks at everybody who runs whenever it is asked."""

    steady: ClassVar[bool] = True

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        assert all(request.prompt for request in queue.running.values())
        return super().plan(queue, memory, now)


Walking.__module__ = Vllm.__module__    # as a bundled one, of whose lines no others are an inspection


def test_a_walk_is_caught() -> None:
    scenario = SCENARIOS["saturated"]("vllm")
    assert growth(lambda slots: replace(scenario, policy=Walking().bounded_by(slots))) > ALIKE
