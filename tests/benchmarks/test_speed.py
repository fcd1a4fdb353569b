"""Speed of the parts, by the clock: run `pytest tests/benchmarks`. Whole workloads are measured by `batchsim bench`.

Not part of the default run: a clock proves nothing on a busy machine. pytest-benchmark shows the times, saves them
(`--benchmark-autosave`) and compares them with saved ones (`--benchmark-compare`).
"""

from __future__ import annotations

from typing import Any

import pytest
from simpy import Environment

import simulator as sim
from simulator.bench.workloads import Case, planning, saturated
from simulator.clients import Client
from simulator.pipeline import replica_for
from simulator.policies import POLICIES, Policy, Sglang, Tgi, Vllm
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.scenario import Scenario
from simulator.sending import sending
from simulator.setup import prepare

pytest.importorskip("pytest_benchmark", reason="needs pip install 'batchsim[bench]'")

SLOTS = 256
EVENTS = 1000
"""Plans that are timed together."""
STRETCH = 15


def midway(scenario: Scenario) -> tuple[Environment, Replica]:
    """A simulation that has gone so far that all slots are taken and requests end all the time."""
    setup, env = prepare(scenario), Environment(initial_time=0)
    client = Client(env, sending(setup)[0], setup.policy.max_outstanding)
    memory = setup.policy.memory(setup.deployment, setup.output)
    replica = replica_for(env, setup.policy, memory, Pricing(setup.cost), setup.output.tolist(),
                          on_finish=client.finished)
    client.send_to(replica)
    while replica.finished < SLOTS:
        env.step()
    return env, replica


def crowd(name: str) -> Scenario:
    budget = 8192 if name == "vllm" else None
    return saturated(Case("policies", name, 12 * SLOTS), SLOTS, budget)


def some_plans(env: Environment) -> None:
    for _ in range(EVENTS):
        env.step()


@pytest.mark.parametrize("name", POLICIES)
def test_a_thousand_plans_and_their_commits(benchmark: Any, name: str) -> None:
    """With 256 running. Each event is a plan, the step or stretch that it stands for, and the commit."""
    benchmark.pedantic(some_plans, setup=lambda: ((midway(crowd(name))[0],), {}), rounds=5)


MEMORIES: dict[str, Policy] = {
    "paged": Vllm(enable_prefix_caching=False),
    "paged-prefix": Vllm(),
    "radix": Sglang(),
    "prompts": Tgi(),
    "reserved": Tgi(prefix_caching=False),
    "paged, room ahead": POLICIES["tensorrt_llm"](),
    "contiguous": POLICIES["orca"](),
}


@pytest.mark.parametrize("policy", MEMORIES.values(), ids=MEMORIES)
def test_a_step_and_a_stretch_of_a_memory(benchmark: Any, policy: Policy) -> None:
    """`take` for one step of 256 decodes; `foresee` and `extend` for the 15 that follow."""
    scenario = crowd("vllm").but(policy=policy.bounded_by(SLOTS), knobs={})
    _, replica = midway(scenario)
    memory, decoding = replica.memory, replica.decoding

    def step_and_stretch() -> None:
        assert memory.take(decoding, [])
        memory.extend(memory.foresee(decoding, STRETCH)[-1] - memory.used)
        decoding.advance(1 + STRETCH)

    benchmark.pedantic(step_and_stretch, iterations=10, rounds=100)


def test_the_planning_workload(benchmark: Any) -> None:
    scenario = planning(Case("planning", "vllm", 10_000))
    result = benchmark.pedantic(sim.run, (scenario,), rounds=3, warmup_rounds=1)
    assert len(result.timeline.request) == 10_000


def test_the_summary_of_the_planning_workload(benchmark: Any) -> None:
    scenario = planning(Case("planning", "vllm", 10_000))
    summary = benchmark.pedantic(sim.Result.summary, setup=lambda: ((sim.run(scenario),), {}), rounds=3)
    assert summary["completed"] == 10_000
