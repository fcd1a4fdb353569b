"""Steps in which the decoding set pauses: who prefills alone, where its tokens are, and what the pause costs whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from worlds import STEP, Affine, World, differences, play, play_both, trace_of

from cost_models import Constant
from simulator.deployment import Deployment
from simulator.gaps import gap_lists, spans_of, token_gaps, tokens_per_step
from simulator.memory import Memory, Paged
from simulator.plots import KINDS, timeline_frame
from simulator.policies import Policy
from simulator.request import Request
from simulator.simulation import simulate
from simulator.step import Queue, Step


@dataclass
class Alone(Policy):
    """Prompts are computed before anything else and alone, up to `budget` tokens a step; meanwhile decodes wait.

    If memory runs short the youngest goes back to the queue. Blocks hold 4 tokens.
    """

    name: ClassVar[str] = "alone"
    steady: ClassVar[bool] = True
    max_num_seqs: int = 8
    budget: int = 8

    def memory(self, deployment: Deployment, outputs: Any) -> Memory:
        return Paged(deployment.kv_capacity_tokens // 4, 4)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = self.prefill(queue, memory)
        step.decodes = self.joined(now) or not step.chunks
        while step.decodes and not memory.take(queue.decoding, []):
            self.preempt(queue, memory, step)
        return step if queue.running or step.preempted else None

    @staticmethod
    def preempt(queue: Queue, memory: Memory, step: Step) -> None:
        victim = queue.youngest
        step.drop(queue.preempt(victim, memory, dict(step.chunks).get(victim, 0)))

    def joined(self, now: int) -> bool:
        """Whether decodes take part in a step with prompts."""
        return False

    def prefill(self, queue: Queue, memory: Memory) -> Step:
        step, budget = Step(), self.budget
        for request in list(queue.catching_up.values()):
            tokens = min(request.lacking, budget)
            while tokens and request.order is not None and not memory.grow(request, tokens):
                self.preempt(queue, memory, step)
            if tokens and request.order is not None:
                step.chunks.append((request, tokens))
                budget -= tokens
        while queue.waiting and not step.preempted and budget and len(queue.running) < self.slots:
            tokens = min(queue.waiting[0].known, budget)
            if memory.demand(queue.waiting[0], queue.waiting[0].known + 1) > memory.free:
                break
            head = queue.admit()
            memory.grow(head, tokens)
            step.chunks.append((head, tokens))
            budget -= tokens
        return step


@dataclass
class Sometimes(Alone):
    """The same, but whether the decodes join in changes from step to step."""

    steady: ClassVar[bool] = False
    moods: tuple[bool, ...] = (True, False)

    def joined(self, now: int) -> bool:
        return self.moods[now // STEP % len(self.moods)]


ROWS = [(0, 4, 5), (15, 12, 2), (25, 3, 1)]


def test_prompts_run_alone_and_decodes_wait() -> None:
    world = play_both(ROWS, Alone(), capacity=400)
    assert world.log == [
        "0: 0+4 | emit 0",
        "10: 0+1 | emit 0",
        "20: 1+8",
        "30: 1+4 2+3 | emit 1 2 | leave 2",
        "40: 0+1 1+1 | emit 0 1 | leave 1",
        "50: 0+1 | emit 0",
        "60: 0+1 | emit 0 | leave 0",
    ]
    assert [sorted(tick.decoding) for tick in world.ticks if tick.paused] == [[], [0], [0]]
    assert world.record.steps["paused"].tolist() == [1, 0, 1, 1, 0, 0, 0]
    assert world.record.steps["decodes"].tolist() == [0, 1, 0, 0, 2, 1, 1]
    assert world.record.steps["context"].tolist() == [0, 4, 0, 0, 5 + 12, 6, 7]
    assert world.record.steps["resident"].tolist() == [0, 4, 5, 13, 5 + 12, 6, 7], "who waits keeps its KV"
    assert world.record.pauses.tolist() == [0, 2, 3]
    assert world.record.spans.tolist() == [[2, 3, 3], [1, 3, 4], [0, 0, 6]], "a pause does not end a span"
    assert world.record.tokens_of(world.record.spans).tolist() == [1, 2, 5]
    assert world.token_times(0) == [10, 20, 50, 60, 70]


class Bundled(Alone):
    """Passes for one of ours, so that no stretch is cut to see whether it keeps its word."""

    __module__ = "simulator.policies.alone"


def test_a_stretch_ends_with_the_arrival_that_pauses_it() -> None:
    fast = play([(0, 4, 9), (35, 3, 1)], Bundled(), capacity=400)
    assert [(tick.now, tick.steps, tick.paused) for tick in fast.ticks] == [
        (0, 1, True), (10, 3, False), (40, 1, True), (50, 5, False)]


def test_only_its_own_rows_are_paid_for() -> None:
    cost = Affine(0, 100, 1, 1)    # 100 a decode, 1 a token, 1 a token of context
    world = play_both(ROWS[:2], Alone(budget=64), capacity=400, cost=cost)
    starts = world.record.steps["start"]
    assert (world.record.ends - starts).tolist() == [4, 100 + 4, 12, 200 + 5 + 12, 100 + 6, 100 + 7]


def test_who_is_preempted_in_a_pause_or_after_it_has_its_tokens() -> None:
    """Eight blocks of four; request 1 grows until nothing is left, and the youngest loses its place."""
    world = play_both([(0, 4, 12), (5, 8, 12), (12, 6, 6)], Alone(), capacity=4 * 8)
    assert any(tick.preempted for tick in world.ticks)
    assert all(len(world.tokens(index)) == world.output[index] for index in range(3))


def test_a_pause_is_stalled_slot_time() -> None:
    result = simulate(trace_of(ROWS), Alone(max_num_seqs=3), kv_capacity_tokens=400, cost_model=Constant(STEP))
    parts = {name: amount for name, amount in result.slot_ledger.parts.items() if amount}
    assert parts == {"prefill": 10 + 10 + 20, "decode": 10 + 20 + 10 + 10, "behind_prefill": 20,
                     "no_queue": 20 + 20 + 10 + 0 + 10 + 20 + 20}
    assert result.token_ledger.total == sum(prompt + output - 1 for _, prompt, output in ROWS)
    assert result.summary()["mean_itl_ms"] == pytest.approx((10 + 30 + 10 + 10 + 10) / 5 / 1e6)


def bars(result: Any) -> list[tuple[int, int, int, str]]:
    """(request, start, end, kind) of each bar, in ns."""
    frame = timeline_frame(result)
    return sorted((request, round(start * 1e9), round(end * 1e9), kind)
                  for _, start, end, kind, request in frame.itertuples(index=False))


def test_a_pause_is_a_stalled_bar() -> None:
    result = simulate(trace_of(ROWS), Alone(), kv_capacity_tokens=400, cost_model=Constant(STEP))
    assert bars(result) == [
        (0, 0, 10, "prefill"), (0, 10, 20, "decode"), (0, 20, 40, "stalled"), (0, 40, 70, "decode"),
        (1, 20, 40, "prefill"), (1, 40, 50, "decode"),
        (2, 30, 40, "prefill")]


@dataclass
class Spins(Alone):
    """Who has finished stays, and its row once computes alone, `times` over, while the others wait."""

    steady: ClassVar[bool] = True
    times: int = 3
    seen: bool = field(default=False, init=False)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        if queue.held and not self.seen:
            self.seen = True
            return Step(decodes=False, spent=len(queue.held), times=self.times)
        return super().plan(queue, memory, now)

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        return [] if queue.decoding.size else list(queue.held.values())


@pytest.mark.parametrize("times", [1, 5])
def test_a_paused_step_may_repeat_and_nobody_moves(times: int) -> None:
    world = play_both([(0, 4, 2), (0, 4, 4)], Spins(times=times), capacity=400)
    repeated = "" if times == 1 else f" x{times}"
    assert world.log[:3] == ["0: 0+4 1+4 | emit 0 1", "10: 0+1 1+1 | emit 0 1", f"20{repeated}: spent 1 | held 0"]
    assert world.tokens(0) == [0, 1]
    assert world.tokens(1) == [0, 1, 2 + times, 3 + times]
    assert world.record.used.tolist() == [2, 4, *[4] * times, 4, 4]


def drawn(most: int = 9) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    row = st.tuples(st.sampled_from([0, 5, 10, 13, 20, 40, 75, 120]), st.integers(1, 14), st.integers(1, 12))
    return st.lists(row, min_size=1, max_size=most).map(sorted)


POLICIES = st.one_of(
    st.builds(Alone, max_num_seqs=st.sampled_from([1, 2, 4, 8]), budget=st.integers(1, 20)),
    st.builds(Sometimes, max_num_seqs=st.sampled_from([2, 4, 8]), budget=st.integers(1, 6),
              moods=st.lists(st.booleans(), min_size=1, max_size=5).map(tuple)))


@given(rows=drawn(), policy=POLICIES, spare=st.sampled_from([0, 1, 3, 99]),
       cost=st.sampled_from([Constant(STEP), Affine()]))
@settings(max_examples=200)
def test_fast_equals_exact_and_gaps_equal_the_expanded_ones(rows: list[Any], policy: Alone, spare: int,
                                                            cost: Any) -> None:
    capacity = 4 * (max(-(-(prompt + output) // 4) for _, prompt, output in rows) + spare)
    fast, exact = (play(rows, policy, capacity=capacity, cost=cost, exact=exact) for exact in (False, True))
    assert differences(exact, fast) == []
    for world in (fast, exact):
        assert_gaps_are_those_of_the_log(world)
    pauses = [tick for tick in exact.ticks if tick.paused and tick.decoding]
    event(f"somebody decodes and waits: {bool(pauses)}")
    event(f"preempted: {any(tick.preempted for tick in exact.ticks)}")


def assert_gaps_are_those_of_the_log(world: World) -> None:
    """Token instants are taken from what the log says is emitted when, not from the spans."""
    record, requests = world.record, np.arange(len(world.rows))
    times: list[list[int]] = [[] for _ in requests]
    emitted = [0] * len(record.ends)
    for tick in world.ticks:
        for step in range(tick.first, tick.first + tick.steps):
            emitted[step] += len(tick.sampled)
            for who in tick.sampled:
                times[who].append(int(record.ends[step]))
    spans, lists = spans_of(record, requests), [np.diff(each).tolist() for each in times]
    assert list(gap_lists(record, spans, requests)) == lists
    found = token_gaps(record, spans)
    assert np.repeat(found.values, found.weights).tolist() == sorted(gap for gaps in lists for gap in gaps)
    assert tokens_per_step(record, spans).tolist() == emitted


@given(rows=drawn(), policy=POLICIES)
def test_bars_of_each_kind_add_up_to_the_slot_ledger(rows: list[Any], policy: Alone) -> None:
    result = simulate(trace_of(rows), policy, kv_capacity_tokens=4000, cost_model=Constant(STEP))
    taken = dict.fromkeys(KINDS, 0)
    for _, start, end, kind in bars(result):
        taken[kind] += end - start
    parts = result.slot_ledger.parts
    stalled = parts["stalled"] + parts["behind_prefill"]    # a bar does not say for whom it waits
    assert taken == {kind: parts[kind] for kind in KINDS} | {"stalled": stalled}
