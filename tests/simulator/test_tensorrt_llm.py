"""The tensorrt_llm policy on worlds small enough to know every step of. A step lasts 10 ns unless said otherwise.

A log line reads `time: request+tokens ... | wait, preempt, emit, leave`; rows are (arrival, prompt, output, declared).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from trt_rules import Rules
from worlds import STEP, Affine, play, play_both, trace_of

from cost_models import Constant
from simulator.errors import InputError
from simulator.gate import VERDICTS
from simulator.memory import Memory, PagedAhead
from simulator.policies import POLICIES, Policy, TensorRtLlm, Vllm
from simulator.policies.tensorrt_llm.active import Active
from simulator.request import Request
from simulator.simulation import simulate
from simulator.step import Queue, Step

Row = tuple[int, int, int, int]


def test_defaults_are_the_engines() -> None:
    policy = TensorRtLlm()
    assert (policy.max_batch_size, policy.max_num_tokens, policy.tokens_per_block) == (2048, 8192, 32)
    assert (policy.capacity_scheduler_policy, policy.enable_chunked_prefill) == ("GUARANTEED_NO_EVICT", False)
    assert (policy.context_chunking_policy, policy.two_step_look_ahead) == ("FIRST_COME_FIRST_SERVED", False)
    assert POLICIES["tensorrt_llm"] is TensorRtLlm
    assert TensorRtLlm.evidence == "transcribed"


# Values that others have published

def test_the_toy_of_the_documentation() -> None:
    """max batch 4, max tokens 12, prompts of 5: two run and the third waits; with chunked context it gets 2.

    Blocks of 2 tokens, so that 2 is a whole chunk.
    """
    toy = [(0, 5, 3), (0, 5, 3), (0, 5, 3)]
    whole = play_both(toy, TensorRtLlm(max_batch_size=4, max_num_tokens=12, tokens_per_block=2))
    assert whole.log == [
        "0: 0+5 1+5 | wait 2 | emit 0 1",
        "10: 0+1 1+1 2+5 | emit 0 1 2",
        "20: 0+1 1+1 2+1 | emit 0 1 2 | leave 0 1",
        "30: 2+1 | emit 2 | leave 2",
    ]
    assert whole.ticks[0].blocked == "budget"
    chunked = play_both(toy, TensorRtLlm(max_batch_size=4, max_num_tokens=12, tokens_per_block=2,
                                         enable_chunked_prefill=True))
    assert chunked.log[:2] == ["0: 0+5 1+5 2+2 | emit 0 1", "10: 0+1 1+1 2+3 | emit 0 1 2"]


def test_declared_output_that_fills_the_pool_makes_requests_run_one_by_one() -> None:
    """A pool of 12,288 tokens, four prompts of 500 whose true output is 100; vllm runs four at a time in both cases."""
    for declared, at_once in ((11_776, 1), (200, 4)):
        rows = [(0, 500, 100, declared)] * 4
        world = play_both(rows, TensorRtLlm(), capacity=12_288)
        assert max(world.record.steps["running"]) == at_once
        assert len(world.record.ends) == 100 * 4 // at_once
        assert world.left_at == {who: STEP * 100 * (who + 1 if at_once == 1 else 1) for who in range(4)}
        other = play_both(rows, Vllm(enable_prefix_caching=False), capacity=12_288, max_model_len=12_288)
        assert max(other.record.steps["running"]) == 4
        assert len(other.record.ends) == 100


# GUARANTEED_NO_EVICT

def test_one_token_of_pool_too_few_keeps_the_second_out() -> None:
    rows = [(0, 8, 4, 8), (0, 8, 4, 8)]
    together = play_both(rows, TensorRtLlm(tokens_per_block=4), capacity=32)
    assert together.left_at == {0: 40, 1: 40}
    apart = play_both(rows, TensorRtLlm(tokens_per_block=4), capacity=31)
    assert apart.left_at == {0: 40, 1: 80}
    assert set(apart.record.steps["blocked"].tolist()[:4]) == {3}, "memory keeps the second out"


def test_what_a_request_holds_grows_although_all_is_pledged() -> None:
    """Blocks are taken as they are needed: a pledge is not a block."""
    world = play_both([(0, 4, 6, 12)], TensorRtLlm(tokens_per_block=4), capacity=16)
    assert world.record.used.tolist() == [1, 2, 2, 2, 2, 3]


# STATIC_BATCH and MAX_REQUESTS

def test_a_static_batch_keeps_all_out_until_nobody_generates() -> None:
    policy = TensorRtLlm(capacity_scheduler_policy="STATIC_BATCH", tokens_per_block=4)
    world = play_both([(0, 4, 3), (0, 4, 2), (1, 4, 1)], policy)
    assert world.log == [
        "0: 0+4 1+4 | emit 0 1",
        "10: 0+1 1+1 | wait 2 | emit 0 1 | leave 1",
        "20: 0+1 | wait 2 | emit 0 | leave 0",
        "30: 2+4 | emit 2 | leave 2",
    ]


def test_without_a_kv_cache_manager_only_requests_are_counted() -> None:
    policy = TensorRtLlm(capacity_scheduler_policy="MAX_REQUESTS", max_batch_size=2, tokens_per_block=4)
    world = play_both([(0, 40, 2), (0, 40, 2), (0, 40, 2)], policy, capacity=4)
    assert world.log[0] == "0: 0+40 1+40 | wait 2 | emit 0 1"
    assert world.left_at == {0: 20, 1: 20, 2: 40}


# MAX_UTILIZATION

def test_a_paused_request_comes_back_before_later_arrivals() -> None:
    """The pool has 4 blocks of 4. At 20 the second finds none, and is the last who has started; the third comes at 25.

    When the first leaves, the second comes back with its prompt and its output as one context. The third must not pass.
    """
    policy = TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", tokens_per_block=4)
    world = play_both([(0, 7, 5), (0, 7, 5), (25, 8, 1)], policy, capacity=16)
    assert world.log == [
        "0: 0+7 1+7 | emit 0 1",
        "10: 0+1 1+1 | emit 0 1",
        "20: 0+1 | wait 1 | preempt 1 | emit 0",
        "30: 0+1 | wait 1 2 | emit 0",
        "40: 0+1 | wait 1 2 | emit 0 | leave 0",
        "50: 1+9 | wait 2 | emit 1",
        "60: 1+1 | wait 2 | emit 1",
        "70: 1+1 | wait 2 | emit 1 | leave 1",
        "80: 2+8 | emit 2 | leave 2",
    ]


def test_looking_two_steps_ahead_pauses_one_step_earlier() -> None:
    rows = [(0, 7, 5), (0, 7, 5)]
    policy = TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", tokens_per_block=4)
    one = play_both(rows, policy, capacity=16)
    two = play_both(rows, TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", tokens_per_block=4,
                                      two_step_look_ahead=True), capacity=16)
    assert [[tick.now for tick in world.ticks if tick.preempted] for world in (one, two)] == [[20], [10]]


def test_a_resumed_context_longer_than_a_step_makes_the_rest_again() -> None:
    """It comes back with max_num_tokens tokens at most: 8 of the 9 it knows, and the ninth token after them."""
    policy = TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", tokens_per_block=4, max_num_tokens=8)
    world = play_both([(0, 4, 7), (0, 4, 8)], policy, capacity=16)
    assert world.log[5:] == [
        "50: 0+1 | wait 1 | preempt 1 | emit 0",
        "60: 0+1 | wait 1 | emit 0 | leave 0",
        "70: 1+8",
        "80: 1+1 | emit 1",
        "90: 1+1 | emit 1",
        "100: 1+1 | emit 1 | leave 1",
    ]


# Chunks

def test_first_come_first_served_leaves_a_rest_to_whom_it_suffices() -> None:
    """20 tokens in units of 8: 16 for the first of 24, none for the second of 9, and the third of 4 takes the rest."""
    policy = TensorRtLlm(enable_chunked_prefill=True, tokens_per_block=8, max_num_tokens=20)
    world = play_both([(0, 24, 1), (0, 9, 1), (0, 4, 1)], policy)
    assert world.log == [
        "0: 0+16 2+4 | wait 1 | emit 2 | leave 2",
        "10: 0+8 1+9 | emit 0 1 | leave 0 1",
    ]
    assert world.record.used.tolist() == [3 + 1, 3 + 2], "all blocks of a context come with its first chunk"


def test_equal_progress_goes_round_by_units() -> None:
    policy = TensorRtLlm(enable_chunked_prefill=True, tokens_per_block=4, max_num_tokens=20,
                         context_chunking_policy="EQUAL_PROGRESS")
    world = play_both([(0, 24, 1), (0, 9, 1), (0, 3, 1)], policy)
    assert world.log == [
        "0: 0+8 1+9 2+3 | emit 1 2 | leave 1 2",
        "10: 0+16 | emit 0 | leave 0",
    ]


def test_who_generates_is_charged_before_any_chunk() -> None:
    policy = TensorRtLlm(enable_chunked_prefill=True, tokens_per_block=4, max_num_tokens=9)
    world = play_both([(0, 5, 3), (0, 4, 3), (1, 40, 1)], policy)
    assert world.log[:4] == [
        "0: 0+5 1+4 | emit 0 1",
        "10: 0+1 1+1 2+4 | emit 0 1",
        "20: 0+1 1+1 2+4 | emit 0 1 | leave 0 1",
        "30: 2+8",
    ]


def test_more_who_generate_than_tokens_take_turns_by_their_places() -> None:
    policy = TensorRtLlm(tokens_per_block=4, max_num_tokens=2)
    world = play_both([(0, 1, 3), (0, 1, 3), (0, 1, 3)], policy)
    assert world.log == [
        "0: 0+1 1+1 | wait 2 | emit 0 1",
        "10: 0+1 1+1 | wait 2 | emit 0 1",
        "20: 0+1 1+1 | wait 2 | emit 0 1 | leave 0 1",
        "30: 2+1 | emit 2",
        "40: 2+1 | emit 2",
        "50: 2+1 | emit 2 | leave 2",
    ]


# What is refused

@pytest.mark.parametrize(("knobs", "message"), [
    ({"max_batch_size": 0}, "tensorrt_llm: max_batch_size must be a whole number of at least 1, not 0"),
    ({"max_num_tokens": 2.5}, "tensorrt_llm: max_num_tokens must be a whole number of at least 1, not 2.5"),
    ({"tokens_per_block": 1 << 21}, "tensorrt_llm: tokens_per_block must be at most 1048576, not 2097152"),
    ({"capacity_scheduler_policy": "NO_EVICT"}, "tensorrt_llm: capacity_scheduler_policy must be one of "
     "GUARANTEED_NO_EVICT, MAX_UTILIZATION, STATIC_BATCH, MAX_REQUESTS, not 'NO_EVICT'"),
    ({"context_chunking_policy": None}, "tensorrt_llm: context_chunking_policy must be one of "
     "FIRST_COME_FIRST_SERVED, EQUAL_PROGRESS, not None"),
    ({"enable_chunked_prefill": 1}, "tensorrt_llm: enable_chunked_prefill must be true or false, not 1"),
    ({"enable_chunked_prefill": True, "max_num_tokens": 31}, "tensorrt_llm: max_num_tokens (31) must be at least "
     "tokens_per_block (32), the unit of a chunk, when enable_chunked_prefill is true"),
])
def test_a_wrong_knob_is_refused_in_one_line(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        TensorRtLlm(**knobs)
    assert str(caught.value) == message


def test_the_gate_refuses_prompts_that_no_step_can_hold() -> None:
    rows = [(0, 100, 5, 5), (0, 101, 5, 5)]
    options: dict[str, Any] = {"cost_model": Constant(STEP), "max_tokens": "exact"}
    for chunked, verdicts in ((False, ["accepted", "prompt longer than the engine takes"]),
                              (True, ["accepted", "accepted"])):
        result = simulate(trace_of(rows), TensorRtLlm(max_num_tokens=100, enable_chunked_prefill=chunked), **options)
        assert [VERDICTS[code] for code in result.setup.verdict] == verdicts
        assert result.summary()["completed"] == verdicts.count("accepted")


def test_the_gate_refuses_what_the_capacity_rule_can_never_let_in() -> None:
    """No-evict needs room for all declared output; max-utilization for what is computed; two steps ahead, one more."""
    rows = [(0, 30, 3, 34), (0, 30, 3, 35)]
    options: dict[str, Any] = {"cost_model": Constant(STEP), "kv_capacity_tokens": 64}
    cases = ({}, [0, 3]), ({"capacity_scheduler_policy": "MAX_UTILIZATION"}, [0, 0])
    for knobs, verdict in cases:
        assert simulate(trace_of(rows), TensorRtLlm(**knobs), **options).setup.verdict.tolist() == verdict    # type: ignore[arg-type]
    for ahead, verdict in ((False, [0]), (True, [3])):
        policy = TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", two_step_look_ahead=ahead)
        assert simulate(trace_of([(0, 30, 35, 35)]), policy, **options).setup.verdict.tolist() == verdict


# Any world

@dataclass
class Audited(TensorRtLlm):
    """The policy, with its books checked before every plan, and after it who fits and gets no token."""

    steady: ClassVar[bool] = True

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        pool = cast(PagedAhead, memory)
        assert pool.used == sum(map(pool.held, queue.running.values()))
        assert pool.pledged == sum(map(pool.to_completion, queue.running.values()))
        assert set(pool._room) == {request.index for request in queue.running.values()}
        return super().plan(queue, memory, now)

    def _run(self, active: Active, step: Step, chunks: list[tuple[Request, int]]) -> None:
        super()._run(active, step, chunks)
        assert not self.pushed_out, "whoever generates took a token of an earlier budget"
        orders = [request.order or 0 for request, _ in step.chunks]
        assert orders == sorted(orders), "chunks are in running order"
        if len(chunks) < len(self.fitting):
            assert active.queue.waiting[0] in self.fitting, "it is the head of the queue that gets none"
            assert step.blocked == "budget"


@st.composite
def policies(draw: st.DrawFn) -> TensorRtLlm:
    size, chunked = draw(st.sampled_from([1, 2, 4, 8])), draw(st.booleans())
    least = size if chunked else 24
    return Audited(
        max_batch_size=draw(st.sampled_from([1, 2, 3, 5, 64])), tokens_per_block=size,
        max_num_tokens=draw(st.sampled_from([least, least + 1, least + 5, 40, 200])), enable_chunked_prefill=chunked,
        capacity_scheduler_policy=draw(st.sampled_from([
            "GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "MAX_UTILIZATION", "STATIC_BATCH", "MAX_REQUESTS"])),
        context_chunking_policy=draw(st.sampled_from(["FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"])),
        two_step_look_ahead=draw(st.booleans()))


@st.composite
def worlds(draw: st.DrawFn) -> list[Row]:
    lengths = st.tuples(st.sampled_from([0, 0, 0, 3, 10, 10, 47]), st.integers(1, 24), st.integers(1, 16),
                        st.integers(0, 6))
    at, rows = 0, []
    for gap, prompt, output, spare in draw(st.lists(lengths, min_size=1, max_size=9)):
        at += gap
        rows.append((at, prompt, output, output + spare))
    return rows


@given(data=st.data(), rows=worlds(), policy=policies(), limit=st.sampled_from([None, None, 2]),
       cost=st.sampled_from([Constant(STEP), Constant(1), Affine()]))
@settings(max_examples=400, deadline=None)
def test_any_world_keeps_the_invariants_and_is_as_the_rules_read(
        data: st.DataObject, rows: list[Row], policy: Policy, limit: int | None, cost: Any) -> None:
    """Fast, exact, and the two stages walked request by request, all decide the same."""
    size = policy.tokens_per_block    # type: ignore[attr-defined]
    need = max(-(-(prompt + declared) // size) for _, prompt, _, declared in rows)
    blocks = data.draw(st.sampled_from([need, need, need + 1, need + 3, 2 * need, 10**6]), "blocks")
    world = play_both(rows, policy, capacity=blocks * size, cost=cost, max_concurrency=limit)
    plain = play(rows, Rules(**policy.settings()), capacity=blocks * size, cost=cost, max_concurrency=limit, exact=True)
    assert plain.log == world.log
    assert plain.record.used.tolist() == world.record.used.tolist()
    event(f"paused: {any(tick.preempted for tick in world.ticks)}")


RARE: list[tuple[list[Row], dict[str, Any], int]] = [
    ([(0, 2, 8, 11), (10, 10, 9, 9)], {"tokens_per_block": 4, "max_num_tokens": 11}, 20),
    ([(0, 10, 8, 8), (0, 9, 10, 13), (10, 10, 8, 8)],
     {"tokens_per_block": 4, "max_num_tokens": 10, "max_batch_size": 2}, 24),
    ([(10, 2, 10, 10), (20, 7, 9, 12), (23, 10, 9, 9)],
     {"tokens_per_block": 2, "max_num_tokens": 11, "two_step_look_ahead": True}, 24),
    ([(0, 8, 6, 9), (0, 9, 10, 10), (0, 2, 8, 8), (47, 1, 8, 8)],
     {"tokens_per_block": 4, "max_num_tokens": 10, "enable_chunked_prefill": True, "max_batch_size": 3}, 20),
    ([(10, 1, 4, 4), (10, 2, 5, 5)], {"tokens_per_block": 1, "max_num_tokens": 20, "max_batch_size": 2}, 8),
    ([(3, 9, 8, 8), (3, 3, 3, 3), (3, 1, 4, 7), (3, 2, 4, 4)],
     {"tokens_per_block": 4, "max_num_tokens": 10, "enable_chunked_prefill": True, "two_step_look_ahead": True}, 28),
    ([(47, 7, 7, 7), (57, 9, 9, 12), (57, 5, 9, 12), (67, 2, 4, 4)],
     {"tokens_per_block": 4, "max_num_tokens": 10, "enable_chunked_prefill": True}, 28),
]
"""Worlds with pauses in which a rule decides that decides nothing in thousands of others; found by planting errors."""


@pytest.mark.parametrize(("rows", "knobs", "capacity"), RARE)
def test_where_a_rule_seldom_decides_it_is_as_the_rules_read(rows: list[Row], knobs: dict[str, Any],
                                                             capacity: int) -> None:
    policy = TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", **knobs)
    world = play_both(rows, policy, capacity=capacity)
    assert any(tick.preempted for tick in world.ticks)
    assert world.log == play(rows, Rules(**policy.settings()), capacity=capacity, exact=True).log


def test_fast_mode_asks_far_less_often() -> None:
    rows = [(0, 20, 60), (0, 20, 90), (500, 20, 70)]
    for rule in ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"):
        world = play_both(rows, TensorRtLlm(capacity_scheduler_policy=rule))
        assert len(world.record.ends) >= 120
        assert play(rows, TensorRtLlm(capacity_scheduler_policy=rule)).plans <= 7


def test_without_a_bound_on_memory_there_is_no_share_of_it() -> None:
    result = simulate(trace_of([(0, 30, 5)] * 4), "tensorrt_llm", load="saturated",
                      knobs={"capacity_scheduler_policy": "MAX_REQUESTS"})
    assert (result.summary()["completed"], result.summary()["kv_usage_mean"]) == (4, None)
