"""The tgi policy on worlds small enough to know every step of. A step lasts 10 ns, a block holds a token."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Affine, World, play, play_both, trace_of

from simulator.batch import LockstepSet
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.prompts import PromptCached
from simulator.memory.reserved import Reserved
from simulator.policies import Tgi
from simulator.policies.tgi.batching import Bounds, next_batch, room_left
from simulator.policies.tgi.chunked import chunk_plan
from simulator.remarks import remarks
from simulator.request import Request
from simulator.simulation import simulate
from simulator.step import Queue
from traces import Trace

WHOLE = {"support_chunking": False, "prefix_caching": False}


def tgi(**knobs: object) -> Tgi:
    return Tgi(**({"max_batch_prefill_tokens": 64, "prefix_caching": False} | knobs))    # type: ignore[arg-type]


def prefills(world: World) -> list[tuple[int, int]]:
    """When somebody was let in, and how many."""
    return [(tick.now, len(tick.admitted)) for tick in world.ticks if tick.admitted]


# What a batch must keep to

def queue_of(*prompts: int) -> Queue:
    """A queue in which requests of these prompts run, each with 10 tokens of output declared."""
    queue = Queue(LockstepSet(4, lambda *_: None))
    for index, prompt in enumerate(prompts):
        queue.wait(Request(index, 0, prompt, 10))
        queue.admit()
    return queue


@pytest.mark.parametrize(("bounds", "blocked"), [
    (Bounds(1, 1, most=0), "cap"), (Bounds(0, 0), "budget"), (Bounds(0, 1), "budget"), (Bounds(1, 0), "memory"),
    (Bounds(1, 1), None)])
def test_nothing_left_of_one_of_its_bounds_keeps_everybody_out(bounds: Bounds, blocked: str | None) -> None:
    queue = queue_of()
    queue.wait(Request(0, 0, 1, 1))
    batch = next_batch(queue, Reserved(9, 4), bounds)
    assert (batch.blocked, len(batch.rows)) == (blocked, blocked is None)


def test_what_the_running_leave_of_the_total() -> None:
    queue, memory = queue_of(5, 9), Reserved(20, 4)
    for request in queue.running.values():
        memory.grow(request, request.prompt)    # 14 tokens in 4 blocks, 18 in 5
    assert room_left(100, queue, memory) == 100 - 9 * 4
    assert room_left(100, queue, memory, padded=True) == 100 - 2 * 9 - 2 * 10
    assert room_left(100, queue_of(), Reserved(20, 4), padded=True) == 100


# Chunks

def test_a_prompt_is_computed_beside_decodes_and_the_next_forward_lets_nobody_in() -> None:
    world = play_both([(0, 4, 6), (5, 20, 2), (15, 3, 1)], tgi(max_batch_prefill_tokens=9))
    assert world.log == [
        "0: 0+4 | emit 0",
        "10: 0+1 1+8 | emit 0",             # 9 less the decode
        "20: 0+1 1+8 | wait 2 | emit 0",    # a forward that does not look
        "30: 0+1 1+4 2+3 | emit 0 1 2 | leave 2",
        "40: 0+1 1+1 | emit 0 1 | leave 1",
        "50: 0+1 | emit 0 | leave 0",
    ]


def test_at_most_every_second_forward_lets_somebody_in_but_for_the_one_after_a_fresh_start() -> None:
    rows = [(0, 2, 30), *((at, 2, 30) for at in (5, 15, 25, 35, 45))]
    assert prefills(play_both(rows, tgi())) == [(0, 1), (10, 1), (30, 2), (50, 2)]


def test_the_chunk_plan_gives_to_the_latest_first_and_to_everybody_a_token() -> None:
    old, new, done = Request(0, 0, 50, 1), Request(1, 0, 30, 1), Request(2, 0, 5, 1)
    chunks = [(old, 10), (done, 5), (new, 10)]
    assert chunk_plan(chunks, 5, 30) == [(old, 6), (new, 20)]    # 30 less 4 others
    assert chunk_plan(chunks, 5, 14) == [(old, 1), (new, 10)]
    assert chunk_plan(chunks, 5, 3) == [(old, 1), (new, 1)]
    assert chunk_plan([(done, 5)], 1, 30) == []


def test_no_budget_is_left_beside_as_many_decodes() -> None:
    world = play_both([(0, 1, 9), (0, 1, 4), (5, 1, 1)], tgi(max_batch_prefill_tokens=2))
    assert prefills(world) == [(0, 2), (40, 1)]    # after the second has left
    assert world.record.steps["blocked"][1:4].tolist() == [2, 2, 2]


# Whole prompts

def test_a_prefill_runs_alone_while_the_others_wait_and_a_decode_follows() -> None:
    world = play_both([(0, 4, 4), (5, 5, 2), (15, 6, 1)], tgi(**WHOLE))
    assert world.log == [
        "0: 0+4 | emit 0",
        "10: 1+5 | emit 1",
        "20: 0+1 1+1 | wait 2 | emit 0 1 | leave 1",
        "30: 2+6 | emit 2 | leave 2",
        "40: 0+1 | emit 0",
        "50: 0+1 | emit 0 | leave 0",
    ]
    assert world.record.steps["paused"].tolist() == [1, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(("waiting", "at"), [(11, 200), (12, 20)])
def test_ratio_1_2_with_10_running_needs_12_waiting(waiting: int, at: int) -> None:
    """11 must wait until 20 tokens have passed. The prefill gave the first of them, so that is 19 decodes."""
    rows = [(0, 2, 100)] * 10 + [(15, 2, 100)] * waiting
    world = play_both(rows, tgi(waiting_served_ratio=1.2, max_waiting_tokens=20, **WHOLE))
    assert prefills(world) == [(0, 10), (at, waiting)]


def test_without_a_ratio_one_is_worth_a_prefill_at_once_and_none_is_cut() -> None:
    policy = tgi(**WHOLE, max_batch_prefill_tokens=8, waiting_served_ratio=0)
    world = play_both([(0, 5, 4), (5, 5, 1), (5, 5, 1)], policy)
    assert world.log == [
        "0: 0+5 | emit 0", "10: 1+5 | wait 2 | emit 1 | leave 1", "20: 0+1 | wait 2 | emit 0",
        "30: 2+5 | emit 2 | leave 2", "40: 0+1 | emit 0", "50: 0+1 | emit 0 | leave 0"]


def test_few_that_fit_are_sent_back_if_they_are_too_few() -> None:
    """Four run, so four must be let in, but memory takes two; after the patience the two will do."""
    rows = [(0, 2, 12)] * 4 + [(5, 10, 2)] * 4
    world = play_both(rows, tgi(waiting_served_ratio=1.0, max_waiting_tokens=5, **WHOLE), capacity=4 * 13 + 23)
    assert prefills(world) == [(0, 4), (50, 2), (100, 2)]
    assert world.memory.free == 4 * 13 + 22


def test_who_is_sent_back_leaves_no_prompt_behind() -> None:
    rows, prefixes = [(0, 2, 12)] * 4 + [(5, 10, 2)] * 4, [()] * 4 + [(("p", 10),)] * 4
    policy = tgi(waiting_served_ratio=1.0, max_waiting_tokens=5, support_chunking=False, prefix_caching=True)
    world = play_both(rows, policy, capacity=4 * 13 + 23, prefixes=prefixes)
    assert [tick.computing for tick in world.ticks if tick.now == 50] == [[(4, 10, 0), (5, 10, 0)]]


def test_a_batch_has_at_most_max_batch_size_requests() -> None:
    world = play_both([(0, 2, 3)] * 5, tgi(max_batch_size=2, **WHOLE))
    assert prefills(world) == [(0, 2), (30, 2), (60, 1)]
    assert world.record.steps["blocked"].tolist() == [1, 1, 1] * 2 + [0] * 3


# Memory

@pytest.mark.parametrize(("block", "let_in", "used"), [(16, 1, 10), (1, 3, 2 * 149 + 9)])
def test_blocks_are_reserved_for_the_whole_life_and_the_first_that_does_not_fit_stops_the_scan(
        block: int, let_in: int, used: int) -> None:
    """Prompt 100 and 50 declared take 10 blocks of 16, and 320 tokens have 19: one goes in, and the last, which would
    fit, waits behind the second. Not rounded up to blocks, all three fit.
    """
    rows = [(0, 100, 3, 50), (0, 100, 3, 50), (0, 5, 1, 5)]
    first = play_both(rows, tgi(max_batch_prefill_tokens=4096, block_size=block), capacity=320).ticks[0]
    assert (first.running, first.waiting) == (list(range(let_in)), list(range(let_in, 3)))
    assert first.used == used


def test_nothing_is_ever_preempted() -> None:
    world = play_both([(0, 8, 30)] * 20, tgi(), capacity=100)
    assert not any(tick.preempted for tick in world.ticks)
    assert world.record.plan("redone").sum() == 0


def test_a_prompt_is_found_again_once_its_request_has_left() -> None:
    rows = [(0, 9, 2), (0, 9, 2), (25, 9, 2), (25, 12, 1)]
    prefixes = [(("same", 9),)] * 3 + [(("same", 6),)]
    world = play_both(rows, tgi(prefix_caching=True), prefixes=prefixes, capacity=60)
    assert [tick.computing for tick in world.ticks] == [
        [(0, 9, 0), (1, 9, 0)],              # side by side they share nothing
        [(0, 1, 9), (1, 1, 9)],
        [(2, 1, 8), (3, 6, 6)],              # of a whole prompt the last token is computed again
        [(2, 1, 9)],
    ]
    # The found prompt is held once, but counts for both: 9 + 1 more token of the one, 6 more of the other.
    assert world.record.used.tolist() == [20, 20, 16, 10]
    assert world.memory.evictable == 9 + 6


def test_shared_blocks_count_once_for_each_holder_against_the_total() -> None:
    """Two who share 20 tokens come to 44 of 40, so the third waits for one of them, although 15 tokens are free."""
    rows = [(0, 20, 1, 3), (15, 20, 3), (25, 20, 3), (45, 20, 1, 3)]
    world = play_both(rows, tgi(prefix_caching=True), capacity=40, prefixes=[(("same", 20),)] * 4)
    assert world.log[1:] == [
        "15: 1+1 | emit 1",
        "25: 1+1 2+1 | emit 1 2",
        "35: 1+1 2+1 | emit 1 2 | leave 1",
        "45: 2+1 3+1 | emit 2 3 | leave 2 3",
    ]
    late = [(0, 20, 1, 3), (15, 20, 9), (25, 20, 3), (45, 20, 1, 3)]
    world = play_both(late, tgi(prefix_caching=True), capacity=40, prefixes=[(("same", 20),)] * 4)
    assert prefills(world) == [(0, 1), (15, 1), (25, 1), (55, 1)]


def test_the_quirk_leaves_prompts_behind_that_were_never_computed() -> None:
    rows = [(0, 32, 4), (0, 20, 4)]
    first = [play(rows, tgi(max_batch_prefill_tokens=32, prefix_caching=True, quirk_phantom_prefix=quirk),
                  exact=True, verify=not quirk).ticks[1].computing for quirk in (False, True)]
    assert first == [[(0, 1, 32), (1, 20, 0)], [(0, 1, 32), (1, 1, 19)]]


# Devices that pad

def test_a_padded_batch_is_a_rectangle() -> None:
    world = play_both([(0, 10, 4), (0, 30, 6), (0, 20, 3)], tgi(requires_padding=True), capacity=400)
    assert world.log == [
        "0: 0+10 1+30 | wait 2 | emit 0 1 | pad 30",     # three times 30 are more than 64
        "10: 2+20 | emit 2 | pad 20",
        "20: 0+1 1+1 2+1 | emit 0 1 2 | pad 30",
        "30: 0+1 1+1 2+1 | emit 0 1 2 | leave 2 | pad 31",
        "40: 0+1 1+1 | emit 0 1 | leave 0 | pad 32",
        "50: 1+1 | emit 1 | pad 33",
        "60: 1+1 | emit 1 | leave 1 | pad 34",
    ]


def test_a_padded_batch_keeps_its_rectangle_and_all_declared_answers_within_the_total() -> None:
    """30 x 2 prompt tokens and 20 declared fit in 80, not in 79."""
    for capacity, let_in in ((80, 2), (79, 1)):
        world = play_both([(0, 30, 2, 10), (0, 10, 2, 10)], tgi(requires_padding=True), capacity=capacity)
        assert len(world.ticks[0].running) == let_in


def test_what_a_padded_batch_has_still_to_come_leaves_with_each_token() -> None:
    """One of 10 + 10 takes 20 for its whole life, so 28 have room for 5 + 3, and 27 have not."""
    for capacity, let_in in ((28, 30), (27, 100)):
        world = play_both([(0, 10, 10), (25, 5, 3)], tgi(requires_padding=True), capacity=capacity)
        assert prefills(world) == [(0, 1), (let_in, 1)]


# The front end

def burst(count: int, output: int = 10) -> Trace:
    return trace_of([(0, 4, output)] * count)


@pytest.mark.parametrize("exact", [False, True])
def test_the_router_refuses_whoever_comes_when_it_has_its_hands_full(exact: bool) -> None:
    trace = trace_of([(0, 4, 10)] * 5 + [(35, 4, 10)] + [(200_000_000, 4, 10)])
    result = simulate(trace, Tgi(max_concurrent_requests=3), cost_model="constant", exact=exact)
    summary = result.summary()
    assert (summary["completed"], summary["failed"], summary["rejected"]) == (4, 3, 0)
    assert result.requests["status"].tolist() == ["finished"] * 3 + ["failed"] * 3 + ["finished"]
    reason = "refused: the engine had as many requests as its front end takes (429)"
    assert result.requests["reason"].dropna().to_dict() == dict.fromkeys((3, 4, 5), reason)
    assert result.requests["sent"].notna().all()
    assert result.steps["waiting"].max() == 0, "whoever is refused does not wait"
    assert json.loads(result.to_json(detailed=True))["errors"] == [""] * 3 + [reason] * 3 + [""]
    assert remarks(result)[0] == f"failed: {reason}: 3"


def test_a_saturated_client_keeps_below_the_router() -> None:
    result = simulate(burst(10), Tgi(max_concurrent_requests=3), cost_model="constant", load="saturated")
    assert result.summary()["completed"] == 10
    assert result.steps["running"].max() == 3
    assert result.requests["sent"].nunique() == 4    # three at once, as soon as three have left


def test_a_client_with_a_limit_of_its_own_above_the_routers_loses_requests() -> None:
    result = simulate(burst(10), Tgi(max_concurrent_requests=3), cost_model="constant", max_concurrency=4)
    assert result.summary()["failed"] == 7
    result = simulate(burst(10), Tgi(max_concurrent_requests=3), cost_model="constant", max_concurrency=3)
    assert result.summary()["failed"] == 0


# Knobs

def test_a_cap_on_the_batch_counts_where_prompts_are_computed_whole() -> None:
    assert Tgi(max_batch_size=7).slots == 128
    assert Tgi(max_batch_size=7, requires_padding=True).slots == 7
    assert Tgi(max_batch_size=7, support_chunking=False).slots == 7
    assert Tgi(max_batch_size=7, support_chunking=False, max_concurrent_requests=5).slots == 5


def test_defaults_come_from_the_deployment() -> None:
    chunking = Tgi().resolve(Deployment(kv_capacity_tokens=50_000))
    assert chunking.settings() == {
        "max_concurrent_requests": 128, "max_batch_prefill_tokens": 4096, "max_batch_total_tokens": 50_000,
        "max_input_tokens": None, "max_batch_size": None, "waiting_served_ratio": 0.3, "max_waiting_tokens": 20,
        "support_chunking": True, "prefix_caching": True, "block_size": 1, "requires_padding": False,
        "quirk_phantom_prefix": False}
    padded = Tgi(requires_padding=True).resolve(Deployment(kv_capacity_tokens=50_000, max_model_len=2000))
    assert not padded.support_chunking
    assert not padded.prefix_caching
    assert (padded.max_batch_prefill_tokens, padded.max_input_tokens) == (2000, 2000)


def test_memory_keeps_block_0_where_there_are_blocks() -> None:
    deployment = Deployment(kv_capacity_tokens=100)
    kinds = {PromptCached: Tgi(block_size=16), Reserved: Tgi(block_size=16, prefix_caching=False)}
    for kind, policy in kinds.items():
        memory = policy.resolve(deployment).memory(deployment, None)    # type: ignore[arg-type]
        assert (type(memory), memory.capacity) == (kind, 5)
    small = Tgi(block_size=16, max_batch_total_tokens=15).resolve(deployment)
    assert small.memory(deployment, None).capacity == 0    # type: ignore[arg-type]
    padded = Tgi(requires_padding=True).resolve(deployment)
    assert padded.memory(deployment, None).capacity == 100    # type: ignore[arg-type]


@pytest.mark.parametrize(("knobs", "said"), [
    ({"max_concurrent_requests": 0}, "max_concurrent_requests must be a whole number of at least 1, not 0"),
    ({"waiting_served_ratio": -1}, "waiting_served_ratio must be at least 0, not -1"),
    ({"waiting_served_ratio": "much"}, "waiting_served_ratio must be at least 0, not 'much'"),
    ({"requires_padding": 1}, "requires_padding must be true or false, not 1"),
    ({"quirk_phantom_prefix": "yes"}, "quirk_phantom_prefix must be true or false, not 'yes'"),
    ({"max_waiting_tokens": 0.5}, "max_waiting_tokens must be a whole number of at least 1, not 0.5"),
    ({"support_chunking": 1}, "support_chunking must be true or false, not 1"),
    ({"requires_padding": True, "support_chunking": True}, "support_chunking must be false where requires_padding"),
    ({"requires_padding": True, "prefix_caching": True}, "prefix_caching must be false where requires_padding"),
    ({"max_batch_total_tokens": 200}, "max_batch_total_tokens (200) must be at most the KV pool's 100 tokens"),
    ({"max_input_tokens": 5000, "support_chunking": False}, "max_input_tokens (5000) must be at most "
                                                            "max_batch_prefill_tokens (4096)"),
])
def test_knobs_that_cannot_be_are_refused_in_one_line(knobs: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Tgi(**knobs).resolve(Deployment(kv_capacity_tokens=100))    # type: ignore[arg-type]
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prompts_that_never_fit_a_forward_are_rejected_where_they_are_computed_whole() -> None:
    trace = trace_of([(0, 64, 1), (0, 65, 1)])
    result = simulate(trace, tgi(**WHOLE), cost_model="constant")
    assert result.requests["reason"].dropna().to_dict() == {1: "prompt longer than the engine takes"}
    assert simulate(trace, tgi(), cost_model="constant").summary()["rejected"] == 0


def test_who_comes_to_more_tokens_than_a_padded_batch_may_have_is_rejected() -> None:
    """A rectangle counts the last token of an answer, too; memory in blocks does not need it."""
    trace, options = trace_of([(0, 9, 4), (0, 9, 3)]), {"cost_model": "constant", "max_tokens": "exact"}
    padded = simulate(trace, tgi(requires_padding=True), kv_capacity_tokens=12, **options)
    assert padded.requests["reason"].dropna().to_dict() == {0: "never fits the KV pool"}
    assert simulate(trace, tgi(), kv_capacity_tokens=13, **options).summary()["completed"] == 2


# Fast and exact

ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 12), st.integers(0, 9)), max_size=14)


@settings(max_examples=80)
@given(ROWS, st.sampled_from([
    {}, {"prefix_caching": True, "block_size": 4}, {"prefix_caching": True, "quirk_phantom_prefix": True},
    {"support_chunking": False}, {"support_chunking": False, "waiting_served_ratio": 1.2, "max_waiting_tokens": 4},
    {"support_chunking": False, "max_batch_size": 3, "prefix_caching": True},
    {"requires_padding": True, "waiting_served_ratio": 0.8, "max_waiting_tokens": 3},
]), st.integers(32, 90))
def test_fast_equals_exact_and_every_invariant_holds(rows: list[tuple[int, ...]], knobs: dict[str, object],
                                                     budget: int) -> None:
    rows = [(at, prompt, output, output + more) for at, prompt, output, more in sorted(rows)]
    prefixes = [((index % 2, min(prompt, 7 * (1 + index % 3))),) for index, (_, prompt, _, _) in enumerate(rows)]
    play_both(rows, tgi(**{"max_batch_prefill_tokens": budget} | knobs), capacity=120, cost=Affine(), prefixes=prefixes)


def test_fast_mode_asks_far_less_often() -> None:
    for knobs in ({}, WHOLE):
        world = play([(0, 3, 400), (0, 3, 300), (5, 50, 200)], tgi(**knobs), capacity=620)
        assert len(world.record.ends) > 400
        assert world.plans < 20


def test_equal_slots_leave_no_other_bound() -> None:
    policy = Tgi(max_batch_size=9, max_batch_total_tokens=50).bounded_by(5).resolve(Deployment())
    assert policy.slots == policy.max_outstanding == 5
    world = play([(0, 3, 9)] * 5, policy)
    assert len(world.ticks[0].running) == 5
