"""How much work a simulation does, in counts: plans, events, calls. Clocks are reported, never asserted."""

from __future__ import annotations

import resource
import time
from collections import Counter
from typing import Any

import pytest
from simpy import Environment
from worlds import Trace, play

from cost_models import Constant, CostModel, StepShape, cost_model
from simulator.bench.made import uniform
from simulator.clients import Client
from simulator.deployment import Deployment
from simulator.policies import StaticBatching, Vllm
from simulator.pricing import Pricing
from simulator.replica import Replica
from simulator.request import Request
from simulator.simulation import simulate

REQUESTS = 10_000


VLLM = Vllm(max_num_seqs=128, max_num_batched_tokens=4096)
LLAMA = {"model": "llama-2-7b", "gpu": "a100-80"}
FLAT = Constant(10_000_000)


class Counting(CostModel):
    """Counts what a cost model is asked for."""

    def __init__(self, cost: CostModel) -> None:
        self.cost, self.counts = cost, Counter()

    name = property(lambda self: self.cost.name)
    origin = property(lambda self: self.cost.origin)

    def time(self, shape: StepShape) -> int:
        self.counts["time"] += 1
        return self.cost.time(shape)

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        self.counts["stretches"] += 1
        self.counts["durations"] += k
        return self.cost.decode_times(shape, k)


def counted(trace: Trace, policy: Any, cost: CostModel, exact: bool = False) -> tuple[Counter, Replica]:
    """The counts of a run: requests, steps, plans, SimPy events, and what the cost model was asked."""
    deployment = Deployment(500_000)
    env, policy, asked = Environment(initial_time=0), policy.resolve(deployment), Counting(cost)
    memory = policy.memory(deployment, trace.output)
    columns = zip(trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist(), strict=True)
    client = Client(env, (Request(index, at, prompt, output) for index, (at, prompt, output) in enumerate(columns)))
    replica = Replica(env, policy, memory, Pricing(asked), trace.output.tolist(), exact=exact,
                      on_finish=client.finished)
    client.send_to(replica)
    counts = asked.counts
    while env._queue:
        env.step()
        counts["events"] += 1
    assert replica.finished == len(trace)
    counts.update(requests=len(trace), steps=len(replica.record.ends), plans=len(replica.record.freeze().plans))
    return counts, replica


@pytest.fixture(scope="module")
def usual() -> Counter:
    return counted(uniform(REQUESTS), VLLM, cost_model("auto", **LLAMA))[0]    # type: ignore[arg-type]


def test_a_request_costs_a_few_plans_whatever_its_length(usual: Counter) -> None:
    """One to let it in and one when it ends, for about 200 tokens each."""
    assert usual["plans"] <= 2 * usual["requests"]


def test_a_plan_costs_one_event_and_a_request_one(usual: Counter) -> None:
    assert usual["events"] <= usual["plans"] + 1.1 * usual["requests"]


def test_the_cost_model_is_asked_once_a_plan_and_once_more_a_stretch(usual: Counter) -> None:
    assert usual["time"] == usual["plans"] > usual["stretches"]


def test_a_saturated_run_plans_once_a_finish() -> None:
    counts, _ = counted(uniform(3000).saturated(), VLLM, FLAT)
    assert counts["plans"] <= 1.2 * counts["requests"]


def test_static_plans_at_finishes_only() -> None:
    counts, _ = counted(uniform(2000).saturated(), StaticBatching(max_batch_size=32), FLAT)
    assert counts["plans"] <= counts["requests"] + 2 * counts["requests"] / 32
    assert counts["steps"] >= 5 * counts["plans"]


def test_arrivals_during_a_static_batch_cost_nothing() -> None:
    saturated, _ = counted(uniform(2000).saturated(), StaticBatching(max_batch_size=32), FLAT)
    open_loop, _ = counted(uniform(2000), StaticBatching(max_batch_size=32), FLAT)
    assert open_loop["plans"] <= 1.5 * saturated["plans"]


def test_a_stretch_is_not_priced_far_beyond_its_end(usual: Counter) -> None:
    assert usual["durations"] <= 1.5 * usual["steps"]


def test_overload_with_preemptions_stays_linear() -> None:
    """125 blocks, requests of 24 blocks, at several times what can be served."""
    for load in (2, 5, 10):
        rows = [(at * 40_000 // load, 200, 185) for at in range(200)]
        world = play(rows, Vllm(max_num_seqs=256, max_num_batched_tokens=2048), capacity=16 * 126, keep=False)
        preemptions = len(world.record.stays) - len(rows)
        assert len(world.record.plans) <= 4 * (len(rows) + preemptions) + len(rows)
        assert preemptions <= 12 * len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("cost", ["auto", "constant"])
def test_report_what_the_usual_workload_takes(cost: str, record_property: Any, capsys: Any) -> None:
    start = time.process_time()
    result = simulate(uniform(REQUESTS), VLLM, cost_model=cost, **LLAMA)
    seconds, kib = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    steps, plans = len(result.record.ends), len(result.record.plans)
    assert result.summary()["completed"] == REQUESTS
    record_property("cpu_s", seconds)
    with capsys.disabled():
        print(f"\n{cost}: {seconds:.2f} s CPU, {kib / 1024:.0f} MiB peak, {steps} steps, {plans} plans")
