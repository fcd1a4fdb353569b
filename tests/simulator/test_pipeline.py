"""Several batches in flight over pipeline stages: who runs when, and what the record makes of it.

A step lasts 10 ns, so with two stages a batch spends 5 ns in each.
"""

from __future__ import annotations

from itertools import pairwise

import invariants
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment
from worlds import STEP, Affine, World, deployment_of, play, trace_of

import simulator as sim
from cost_models import Constant
from simulator.clients import Client
from simulator.errors import PolicyError
from simulator.memory import Memory
from simulator.pipeline import PipelinedReplica
from simulator.policies import Orca
from simulator.pricing import Pricing
from simulator.request import Request
from simulator.step import Queue, Step

HOLD = (invariants.nobody_is_lost, invariants.each_token_is_emitted_once, invariants.tokens_add_up,
        invariants.memory_stays_within_bounds, invariants.the_clock_never_runs_backwards, invariants.lives_are_in_order,
        invariants.every_step_makes_progress, invariants.nobody_waits_at_an_idle_replica,
        invariants.the_client_keeps_its_limit)
"""Those that do not count a request in flight in another batch as one without a part in the step."""


def run(rows: list[tuple[int, ...]], stages: int, max_bs: int = 1, **options: object) -> World:
    return run_of(Orca(max_bs=max_bs, pipeline_stages=stages), rows, **options)


def run_of(policy: Orca, rows: list[tuple[int, ...]], **options: object) -> World:
    world = play(rows, policy, verify=False, **options)    # type: ignore[arg-type]
    for invariant in HOLD:
        invariant(world)
    return world


def test_a_batch_alone_takes_as_long_as_without_stages() -> None:
    for stages in (1, 2, 3, 7):
        world = run([(5, 4, 3)], stages)
        assert world.token_times(0) == [15, 25, 35]
        assert world.record.steps["start"].tolist() == [5, 15, 25]


def test_two_batches_share_the_stages_in_turn() -> None:
    world = run([(0, 4, 3), (0, 4, 3)], 2)
    #   stage 1: A 0-5, B 5-10, A 10-15, B 15-20, ...    stage 2: A 5-10, B 10-15, A 15-20, ...
    assert world.token_times(0) == [10, 20, 30]
    assert world.token_times(1) == [15, 25, 35]
    assert [(tick.now, tick.computing) for tick in world.ticks] == [
        (0, [(0, 4, 0)]), (0, [(1, 4, 0)]), (10, [(0, 1, 4)]), (15, [(1, 1, 4)]), (20, [(0, 1, 5)]), (25, [(1, 1, 5)])]
    assert world.record.steps["start"].tolist() == [0, 10, 15, 20, 25, 30], "end to end"
    assert world.record.ends.tolist() == [10, 15, 20, 25, 30, 35]


def test_requests_in_flight_cannot_be_selected() -> None:
    """Each batch is of one: the third waits until the first is done, not only until its batch returns."""
    world = run([(0, 4, 2), (0, 4, 2), (0, 4, 2)], 2)
    assert [world.stays(index)[0] for index in range(3)] == [(0, 20), (0, 25), (20, 40)]
    assert world.record.plan("decodes").tolist() == [0, 0, 1, 1, 0, 1]
    assert world.record.plan("running").tolist() == [1] * 6, "those of its own batch"


def test_who_arrives_while_a_stage_is_free_is_launched_at_once() -> None:
    world = run([(0, 4, 2), (3, 4, 1)], 2)
    assert world.stays(1) == [(3, 15)], "the first stage is free at 5, the second at 10"
    world = run([(0, 4, 2), (7, 4, 1)], 2)
    assert world.stays(1) == [(7, 17)], "both stages are free in time"


def test_who_arrives_as_a_batch_returns_is_seen_by_the_next_plan() -> None:
    world = run([(0, 4, 1), (0, 4, 1), (10, 4, 1)], 2)
    assert world.stays(2) == [(10, 20)]


def test_a_time_that_does_not_divide_is_kept_whole() -> None:
    world = run([(0, 4, 2)], 3, cost=Constant(11))
    assert world.token_times(0) == [11, 22]


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_full_pipeline_serves_as_many_times_more(stages: int) -> None:
    rows = [(0, 4, 40)] * (4 * stages)
    one, many = run(rows, 1), run(rows, stages, cost=Constant(12))
    fill = 12 - 12 // stages
    assert one.record.ends[-1] == 4 * stages * 40 * STEP
    assert many.record.ends[-1] == 4 * 40 * 12 + fill, "a batch leaves the last stage every 12 / stages ns"


def test_memory_is_reserved_for_all_batches_in_flight() -> None:
    world = run([(0, 4, 2)] * 4, 2, capacity=12)
    assert world.record.used.max() == 12
    world = run([(0, 4, 2)] * 4, 2, capacity=6)
    assert world.record.ends[-1] == 4 * 2 * STEP, "with room for one there is one in flight"


DRAWN = st.lists(st.tuples(st.sampled_from([0, 0, 3, 5, STEP, 80]), st.integers(1, 20), st.integers(1, 9)), min_size=1,
                 max_size=20)


def rows_of(gaps: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    at = np.cumsum([gap for gap, _, _ in gaps]).tolist()
    return [(when, prompt, output) for when, (_, prompt, output) in zip(at, gaps, strict=True)]


@given(DRAWN, st.integers(2, 4), st.integers(1, 4), st.sampled_from([None, 2, 5]))
@settings(max_examples=100)
def test_what_is_true_of_every_pipeline(gaps: list[tuple[int, int, int]], stages: int, cap: int,
                                        limit: int | None) -> None:
    rows = rows_of(gaps)
    world = run(rows, stages, cap, capacity=90, cost=Affine(), max_concurrency=limit)
    launched = [tick.now for tick in world.ticks]
    ends = world.record.ends.tolist()
    for at, end in zip(launched, ends, strict=True):
        assert sum(since <= at < until for since, until in zip(launched, ends, strict=True)) <= stages + (at in ends)
        assert end - at >= Affine().base // stages
    for index in range(len(rows)):    # its iterations do not overlap
        mine = [(tick.now, end) for tick, end in zip(world.ticks, ends, strict=True)
                if index in {who for who, _, _ in tick.computing}]
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    assert all(len(tick.computing) <= cap for tick in world.ticks)


@given(DRAWN, st.integers(1, 4))
@settings(max_examples=100)
def test_a_pipeline_of_one_stage_is_a_replica(gaps: list[tuple[int, int, int]], cap: int) -> None:
    rows = rows_of(gaps)
    plain = play(rows, Orca(max_bs=cap), capacity=90, cost=Affine(), exact=True)
    deployment = deployment_of([(*row, row[2]) for row in rows], 90, 4096)
    outputs = [row[2] for row in rows]
    env, policy = Environment(initial_time=0), Orca(max_bs=cap).resolve(deployment)
    client = Client(env, (Request(index, *row) for index, row in enumerate(rows)))
    replica = PipelinedReplica(env, policy, policy.memory(deployment, np.array(outputs)), Pricing(Affine()), outputs,
                               on_finish=client.finished)
    client.send_to(replica)
    env.run()
    record = replica.record.freeze()
    assert record.ends.tolist() == plain.record.ends.tolist()
    assert record.plans.tolist() == plain.record.plans.tolist()
    assert record.stays.tolist() == plain.record.stays.tolist()
    assert int(record.tokens_of(record.spans).sum()) == sum(outputs)


def test_the_ledgers_of_a_pipeline_add_up_and_a_full_one_is_all_used() -> None:
    trace = trace_of([(0, 4, 50)] * 12)
    result = sim.simulate(trace, Orca(max_bs=3, pipeline_stages=4), cost_model=Constant(20), kv_capacity_tokens=1000)
    summary = result.summary()
    assert summary["completed"] == 12
    assert summary["slot_utilization"] == pytest.approx(1)
    assert summary["mean_batch_size"] == pytest.approx(3)
    assert summary["duration"] == pytest.approx((50 * 20 + 15) / 1e9)
    assert summary["mean_itl_ms"] == pytest.approx(20e-6)


def test_the_decisions_do_not_depend_on_the_mode() -> None:
    trace = trace_of(rows_of([(3, 9, 7), (0, 2, 3), (20, 30, 5), (0, 8, 8), (1, 5, 2)] * 6))
    policy = Orca(max_bs=2, pipeline_stages=3)
    found = [sim.simulate(trace, policy, cost_model=Affine(), kv_capacity_tokens=150, exact=exact)
             for exact in (False, True)]
    assert found[0].record.plans.tolist() == found[1].record.plans.tolist()
    assert found[0].record.spans.tolist() == found[1].record.spans.tolist()


class Chunked(Orca):
    """Prompts come in chunks of two tokens, one request a batch. `greedy`: who is in flight is asked again."""

    greedy = False

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        if self.greedy and queue.in_flight:
            return Step([(request, 1) for request in queue.in_flight.values()])
        if not queue.catching_up and queue.waiting and memory.grow(queue.waiting[0], queue.waiting[0].prompt):
            queue.admit()
        return Step([(one, min(2, one.lacking)) for one in queue.catching_up.values()]) if queue.catching_up else None


def test_a_chunk_that_is_not_the_last_of_its_prompt_emits_nothing() -> None:
    world = run_of(Chunked(pipeline_stages=2), [(0, 5, 2)])
    assert world.log == ["0: 0+2", "10: 0+2", "20: 0+1 | emit 0", "30: 0+1 | emit 0 | leave 0"]
    assert world.token_times(0) == [30, 40]


def test_who_is_in_flight_cannot_be_selected() -> None:
    greedy = type("Greedy", (Chunked,), {"greedy": True})
    with pytest.raises(PolicyError, match="runs request 0, which is in a batch that has not returned"):
        run_of(greedy(pipeline_stages=2), [(0, 5, 2)])
