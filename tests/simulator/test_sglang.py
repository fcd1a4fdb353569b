"""SGLang's rule in tiny worlds: logs worked out by hand, its numbers, its orders, and random worlds in both modes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from worlds import SHARED, Affine, World, play, play_both, trace_of

import simulator as sim
from cost_models import StepShape
from simulator.batch import LockstepSet
from simulator.deployment import Deployment
from simulator.errors import InputError, StalledError
from simulator.memory import UNLIMITED, Paged
from simulator.memory.radix import Radix
from simulator.policies import Sglang
from simulator.policies.sglang.adder import PrefillAdder
from simulator.policies.sglang.completions import Completions
from simulator.policies.sglang.ratio import NewTokenRatio, after_a_retraction
from simulator.policies.sglang.retraction import retract
from simulator.request import Request
from simulator.step import Queue, Step

GIB = 1 << 30
WHOLE = {"chunked_prefill_size": UNLIMITED}
BOLD = {"schedule_conservativeness": 0.01}


def log(rows: list[tuple[int, ...]], capacity: int = 100, prefixes: Any = (), **knobs: Any) -> list[str]:
    return play_both(rows, Sglang(**knobs), capacity=capacity, prefixes=prefixes).log


# The order of a step

def test_prompts_run_first_and_alone() -> None:
    assert log([(0, 4, 3), (5, 6, 2)]) == [
        "0: 0+4 | emit 0", "10: 1+6 | emit 1", "20: 0+1 1+1 | emit 0 1 | leave 1", "30: 0+1 | emit 0 | leave 0"]


def test_decodes_pause_for_every_chunk() -> None:
    assert log([(0, 4, 3), (5, 10, 2)], chunked_prefill_size=4) == [
        "0: 0+4 | emit 0", "10: 1+4", "20: 1+4", "30: 1+2 | emit 1", "40: 0+1 1+1 | emit 0 1 | leave 1",
        "50: 0+1 | emit 0 | leave 0"]


def test_mixed_chunks_make_room_for_the_decodes_and_go_before_them() -> None:
    assert log([(0, 4, 6), (5, 10, 2)], chunked_prefill_size=4, enable_mixed_chunk=True) == [
        "0: 0+4 | emit 0", "10: 1+3 0+1 | emit 0", "20: 1+3 0+1 | emit 0", "30: 1+3 0+1 | emit 0",
        "40: 1+1 0+1 | emit 1 0", "50: 1+1 0+1 | emit 1 0 | leave 1 0"]


def test_without_chunks_nothing_is_mixed() -> None:
    rows = [(0, 4, 6), (5, 10, 2)]
    assert log(rows, enable_mixed_chunk=True, **WHOLE) == log(rows, **WHOLE)


def test_where_mixing_lacks_memory_the_decodes_sit_out() -> None:
    # 16 tokens of room for a chunk of 16, whatever the ratio says: none is left for the decode.
    world = play_both([(0, 3, 6), (5, 14, 2, 2)], Sglang(enable_mixed_chunk=True, chunked_prefill_size=15, **BOLD),
                      capacity=18)
    assert world.log[:3] == ["0: 0+3 | emit 0", "10: 0+1 | wait 1 | emit 0", "20: 0+1 | wait 1 | emit 0"]


def test_an_interval_keeps_prefill_batches_apart() -> None:
    assert log([(0, 4, 4), (5, 6, 2)], chunked_prefill_size=4, prefill_decode_interval=1) == [
        "0: 0+4 | emit 0", "10: 0+1 | wait 1 | emit 0", "20: 1+4", "30: 0+1 | emit 0", "40: 1+2 | emit 1",
        "50: 0+1 1+1 | emit 0 1 | leave 0 1"]


def test_after_a_mixed_batch_an_interval_begins_anew() -> None:
    assert log([(0, 4, 5), (5, 7, 1)], chunked_prefill_size=4, enable_mixed_chunk=True, prefill_decode_interval=1) == [
        "0: 0+4 | emit 0", "10: 0+1 | wait 1 | emit 0", "20: 1+3 0+1 | emit 0", "30: 0+1 | emit 0",
        "40: 1+3 0+1 | emit 0 | leave 0", "50: 1+1 | emit 1 | leave 1"]


# Admission

def test_a_whole_output_must_fit_strictly() -> None:
    assert log([(0, 4, 3, 14)], capacity=20)[0] == "0: 0+4 | emit 0"    # 4 + 14 + 1 < 20
    stuck = play([(0, 4, 3, 15)], Sglang(), capacity=20, verify=False)
    assert (stuck.log, len(stuck.replica.queue.waiting)) == ([], 1)


def test_it_is_charged_whole_in_its_pass_and_by_the_ratio_from_the_next() -> None:
    # 13 of 25 tokens go to the first; 15 are asked for by the second, which fits only when the first is discounted.
    assert log([(0, 2, 2, 10), (0, 4, 2, 10)], capacity=25, **BOLD)[:2] == [
        "0: 0+2 | wait 1 | emit 0", "10: 1+4 | emit 1"]


def test_full_stays_full_until_somebody_leaves() -> None:
    # The third would fit when the second is discounted, too, but nobody asks before the first two leave.
    assert log([(0, 2, 4, 10), (0, 4, 4, 10), (0, 3, 1, 10)], capacity=28, **BOLD) == [
        "0: 0+2 | wait 1 2 | emit 0", "10: 1+4 | wait 2 | emit 1", "20: 0+1 1+1 | wait 2 | emit 0 1",
        "30: 0+1 1+1 | wait 2 | emit 0 1", "40: 0+1 1+1 | wait 2 | emit 0 1 | leave 0 1", "50: 2+3 | emit 2 | leave 2"]


def test_nobody_passes_a_head_that_does_not_fit() -> None:
    assert log([(0, 4, 2, 10), (0, 4, 2, 10), (0, 1, 1, 1)], capacity=20)[0] == "0: 0+4 | wait 1 2 | emit 0"


def test_whole_prompts_stop_at_the_cap_but_the_first_may_exceed_it() -> None:
    assert log([(0, 2, 1), (0, 9, 1), (0, 2, 1)], max_prefill_tokens=8, **WHOLE) == [
        "0: 0+2 | wait 1 2 | emit 0 | leave 0", "10: 1+9 | wait 2 | emit 1 | leave 1", "20: 2+2 | emit 2 | leave 2"]


def test_a_prompt_that_meets_the_cap_exactly_waits() -> None:
    assert log([(0, 2, 1), (0, 6, 1)], max_prefill_tokens=8, **WHOLE)[0] == "0: 0+2 | wait 1 | emit 0 | leave 0"


def test_a_prompt_in_the_middle_counts_twice_against_the_slots() -> None:
    # Its row is taken already, and it is among those of this pass: one slot less than there is.
    assert log([(0, 12, 3), (0, 2, 3), (0, 2, 3)], max_running_requests=3, chunked_prefill_size=8)[:3] == [
        "0: 0+8 | wait 1 2", "10: 0+4 1+2 | wait 2 | emit 0 1", "20: 2+2 | emit 2"]


def test_requests_a_batch_can_be_bounded() -> None:
    assert log([(0, 2, 1), (0, 2, 1)], prefill_max_requests=1) == [
        "0: 0+2 | wait 1 | emit 0 | leave 0", "10: 1+2 | emit 1 | leave 1"]


def test_known_ends_admit_more() -> None:
    # 17 of 26 tokens go to the first, 9 are left. The second asks for exactly 9, too many; but the pool lasts.
    rows = [(0, 4, 12), (0, 4, 4)]
    assert log(rows, capacity=26, ignore_eos=True)[0] == "0: 0+4 | wait 1 | emit 0"
    assert log(rows, capacity=26, ignore_eos=True, disable_radix_cache=True)[0] == "0: 0+4 1+4 | emit 0 1"


def test_completions_are_played_in_the_order_in_which_they_come() -> None:
    long, short = Request(0, 0, 4, 10), Request(1, 0, 4, 2)
    # The short one ends after 2 steps of 2 rows and frees 4; then the long one needs 10, and 1 to spare.
    assert Completions([long]).fit(short, 7 + 1)
    assert not Completions([long]).fit(short, 7)


def test_who_ends_last_is_counted_before_the_last() -> None:
    # In order, 4 to go and then 12 would need 11 tokens; the engine lets 12 come first, and needs 27.
    for left, fits in ((26, False), (27, True)):
        alive = Completions([])
        assert alive.fit(Request(0, 0, 4, 4), 100)
        assert alive.fit(Request(1, 0, 4, 12), left) is fits


def test_who_is_let_in_is_counted_where_it_ends() -> None:
    """In the order of their ends, 3 rows go 2 steps, and a token each is left: 10 tokens do, and 9 do not."""
    for left, fits in ((9, False), (10, True)):
        alive = Completions([])
        assert alive.fit(Request(0, 0, 4, 8), 100)
        assert alive.fit(Request(1, 0, 6, 2), 100)
        assert alive.fit(Request(2, 0, 1, 5), left) is fits


def test_who_ends_last_is_counted_before_one_alone() -> None:
    """After the first has ended, 12 steps of 2 rows, and a token each is left: 27 tokens, 6 of them the first's."""
    for left, fits in ((20, False), (21, True)):
        alive = Completions([])
        assert alive.fit(Request(0, 0, 4, 8), 100)
        assert alive.fit(Request(1, 0, 6, 2), 100)
        assert alive.fit(Request(2, 0, 1, 12), left) is fits


def test_who_ends_frees_what_it_has_generated_too() -> None:
    ending = Request(0, 0, 4, 5)
    ending._generated = 3
    for left, fits in ((14, False), (15, True)):
        assert Completions([ending]).fit(Request(1, 0, 4, 20), left) is fits


def adder_of(free: int, ratio: float, decoding: list[Request]) -> tuple[PrefillAdder, Request]:
    """A pass in chunks of 8, with so many tokens free, and a prompt that lacks 20."""
    queue, memory, unfinished = Queue(LockstepSet(1, lambda *_: None)), Paged(free, 1), Request(9, 0, 20, 5)
    generated = [(request, request.generated) for request in decoding]
    return PrefillAdder(queue, memory, ratio, generated, mixed=0, input_tokens=100, chunk_tokens=8, page=1), unfinished


@pytest.mark.parametrize(("free", "promised", "tokens"), [(30, 10, 8), (16, 10, 6), (16, 16, 8), (5, 16, 5)])
def test_a_chunk_takes_what_is_set_aside_for_nobody_or_else_what_there_is(free: int, promised: int,
                                                                          tokens: int) -> None:
    adder, unfinished = adder_of(free, 1.0, [Request(0, 0, 4, promised)])
    adder.go_on(unfinished)
    assert (adder.chunks, adder.cut) == ([(unfinished, tokens)], unfinished)


def test_a_chunk_for_which_nothing_is_there_is_none() -> None:
    adder, unfinished = adder_of(0, 1.0, [Request(0, 0, 4, 16)])
    adder.go_on(unfinished)
    assert (adder.chunks, adder.cut) == ([], None)


@pytest.mark.parametrize(("max_tokens", "verdict"), [(11, "continue"), (12, "no token")])
def test_a_pass_ends_when_all_that_is_left_is_promised(max_tokens: int, verdict: str) -> None:
    """Of 24 tokens, 8 are taken and 4 are kept for a prompt of 5."""
    queue = Queue(LockstepSet(4, lambda *_: None))
    queue.wait(Request(0, 0, 5, max_tokens))
    adder = PrefillAdder(queue, Paged(6, 4), 1.0, [], mixed=0, input_tokens=100, chunk_tokens=16, page=4)
    assert adder.add(queue.waiting[0]) == verdict
    assert (adder.total_left, adder.now_left) == (12 - max_tokens, 12)


def test_a_pass_takes_the_last_token_of_its_budgets_and_no_more() -> None:
    rows = [(0, 8, 1), (0, 1, 1)]
    assert log(rows, max_prefill_tokens=9)[0] == "0: 0+8 1+1 | emit 0 1 | leave 0 1"
    assert log(rows, max_prefill_tokens=8)[0] == "0: 0+8 | wait 1 | emit 0 | leave 0"
    assert log([(0, 8, 1), (0, 5, 1)], chunked_prefill_size=9)[0] == "0: 0+8 1+1 | emit 0 | leave 0"


def test_a_pass_whose_chunk_is_full_does_not_look_for_memory() -> None:
    world = play([(0, 8, 2), (0, 50, 1)], Sglang(chunked_prefill_size=8), capacity=60)
    assert [tick.blocked for tick in world.ticks[:2]] == ["budget", "memory"]


def test_a_prompt_in_the_middle_is_among_those_whose_ends_are_played() -> None:
    """Both have 6 tokens to go, 12 in all, and one each to spare: 3 tokens more than the 12 must be free."""
    rows = [(0, 12, 6), (0, 4, 6)]
    for capacity, first in ((33, "10: 0+4 1+4 | emit 0 1"), (32, "10: 0+4 | wait 1 | emit 0")):
        assert log(rows, capacity, chunked_prefill_size=8, ignore_eos=True, disable_radix_cache=True)[1] == first


def test_never_more_than_4096_tokens_are_set_aside() -> None:
    adder, _ = adder_of(10_000, 0.5, [Request(0, 0, 4, 9000), Request(1, 0, 4, 100)])
    assert adder.total_left == 10_000 - 2048 - 50


# Memory

def test_the_fewest_generated_go_back_to_the_tail_and_the_longest_prompt_of_these() -> None:
    assert log([(0, 2, 10), (0, 4, 10), (0, 3, 2)], capacity=19, **BOLD)[7:13] == [
        "70: 0+1 1+1 | wait 2 | emit 0 1", "80: 0+1 | wait 2 1 | preempt 1 | emit 0", "90: 2+3 | wait 1 | emit 2",
        "100: 0+1 2+1 | wait 1 | emit 0 2 | leave 2", "110: 0+1 | wait 1 | emit 0 | leave 0", "120: 1+11 | emit 1"]


def test_the_longest_waiting_keep_what_they_generated() -> None:
    world = play_both([(0, 2, 10), (0, 4, 10), (0, 3, 2)], Sglang(**BOLD), capacity=19)
    assert len(world.tokens(1)) == 10
    assert world.record.steps["redone"].sum() == 10    # its prompt was evicted, too


def test_after_a_retraction_there_is_room_for_20_steps_of_those_who_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Radix, "evict", lambda memory, blocks, usual=Radix.evict: (
        asked.append(blocks), usual(memory, blocks))[1])
    world = play([(0, 2, 10), (0, 4, 10), (0, 3, 2)], Sglang(page_size=2, **BOLD), capacity=20)
    assert [tick.preempted for tick in world.ticks if tick.preempted] == [[1]]
    assert max(asked) == 20 // 2


def test_others_prompts_are_found() -> None:
    prefix = (("p", 40),)
    assert log([(0, 41, 1), (15, 45, 1)], prefixes=[prefix, prefix]) == [
        "0: 0+41 | emit 0 | leave 0", "15: 1+5 | emit 1 | leave 1"]
    assert log([(0, 41, 1), (15, 45, 1)], prefixes=[prefix, prefix], disable_radix_cache=True)[1] == (
        "15: 1+45 | emit 1 | leave 1")


# The ratio

def test_the_ratio_decays_to_its_floor_in_600_steps() -> None:
    ratio = NewTokenRatio()
    assert [round(ratio.after(steps), 9) for steps in (0, 300, 600, 10_000)] == [0.7, 0.399, 0.098, 0.098]
    ratio.decay(300)
    ratio.decay(300)
    assert ratio.value == NewTokenRatio().after(600)
    ratio.reset()
    assert ratio.value == 0.7


def test_the_start_follows_the_conservativeness_and_is_at_most_1() -> None:
    assert NewTokenRatio(0.3).value == pytest.approx(0.21)
    assert (NewTokenRatio(2.0).value, NewTokenRatio(2.0).after(10_000)) == (1.0, pytest.approx(0.14))


def test_a_retraction_makes_the_ratio_jump_but_never_above_1() -> None:
    def kept(generated: int, most: int) -> Request:
        request = Request(0, 0, 5, most)
        request._generated = generated
        return request

    assert after_a_retraction([kept(5, 99)]) == 25 / 100
    assert after_a_retraction([kept(5, 99), kept(30, 100)]) == 75 / 200
    assert after_a_retraction([kept(30, 40)]) == 1.0


def ratio_of(rows: list[tuple[int, ...]], **knobs: Any) -> float:
    world = play_both(rows, Sglang(**knobs), capacity=1000)
    return world.policy.ratio.value    # type: ignore[attr-defined]


def test_only_decode_steps_make_it_smaller_and_idling_resets_it() -> None:
    step = 0.7 * 0.86 / 600
    assert ratio_of([(0, 4, 5)]) == pytest.approx(0.7 - 4 * step)
    assert ratio_of([(0, 4, 5), (5, 4, 5)]) == pytest.approx(0.7 - 4 * step)
    assert ratio_of([(0, 4, 5), (45, 4, 1)]) == pytest.approx(0.7 - 4 * step)
    assert ratio_of([(0, 4, 5), (50, 4, 3)]) == pytest.approx(0.7 - 6 * step)    # seen when the first leaves
    assert ratio_of([(0, 4, 5), (51, 4, 3)]) == pytest.approx(0.7 - 2 * step)


# Who is asked first

def admitted(rows: list[tuple[int, ...]], prefixes: Any = (), capacity: int = 1000, **knobs: Any) -> list[int]:
    world = play_both(rows, Sglang(**knobs), capacity=capacity, prefixes=prefixes)
    return [who for tick in world.ticks for who in tick.admitted]


def test_the_longest_output_first() -> None:
    assert admitted([(0, 2, 2), (0, 2, 9), (0, 2, 5), (0, 2, 9)], schedule_policy="lof") == [1, 3, 2, 0]


def test_nobody_is_put_into_order_while_all_slots_are_taken() -> None:
    assert log([(0, 4, 2), (5, 4, 1, 2), (5, 4, 1, 9)], schedule_policy="lof", max_running_requests=1) == [
        "0: 0+4 | emit 0", "10: 0+1 | wait 1 2 | emit 0 | leave 0", "20: 2+4 | wait 1 | emit 2 | leave 2",
        "30: 1+4 | emit 1 | leave 1"]


def test_the_longest_match_first() -> None:
    rows = [(0, 50, 1), (15, 60, 1), (15, 60, 1), (15, 60, 1)]
    prefixes = [(("p", 20), ("q", 50)), (), (("p", 20), ("r", 30)), (("p", 20), ("q", 50))]
    assert admitted(rows, prefixes, schedule_policy="lpm") == [0, 3, 2, 1]
    assert admitted(rows, prefixes, schedule_policy="lpm", disable_radix_cache=True) == [0, 1, 2, 3]


def test_who_would_share_a_prompt_that_waits_lets_the_others_go_first() -> None:
    rows = [(0, 41, 1), (0, 41, 1), (0, 3, 1)]
    for shared, order in ((32, [0, 2, 1]), (31, [0, 1, 2])):
        prefix = (("p", shared),)
        assert admitted(rows, [prefix, prefix, ()], schedule_policy="lpm") == order


def test_who_finds_32_tokens_still_waits_for_more() -> None:
    rows = [(0, 34, 1), (15, 60, 1), (15, 60, 1), (15, 60, 1)]
    for found, order in ((32, [0, 1, 2, 3]), (33, [0, 1, 3, 2])):
        stem = (("p", found),)
        prefixes = [stem, (*stem, ("q", 50)), (), (*stem, ("q", 50))]
        assert admitted(rows, prefixes, schedule_policy="lpm") == order


def test_matches_are_not_sought_for_a_long_queue() -> None:
    prefix = (("p", 40),)
    for waiting in (127, 128):
        rows = [(0, 50, 1), *[(15, 3, 1)] * waiting, (15, 50, 1)]
        prefixes = [prefix, *[()] * waiting, prefix]
        place = admitted(rows, prefixes, 100_000, schedule_policy="lpm").index(waiting + 1)
        assert place == (1 if waiting == 127 else waiting + 1)


def test_heavy_branches_first() -> None:
    rows = [(0, 20, 1), (0, 20, 1), (15, 30, 1), (15, 30, 1), (15, 30, 1)]
    a, b = (("a", 20),), (("b", 20),)
    assert admitted(rows, [a, b, a, b, b], schedule_policy="dfs-weight") == [0, 1, 3, 4, 2]


def test_random_is_seeded() -> None:
    rows = [(0, 2, 1)] * 12
    orders = [admitted(rows, schedule_policy="random", random_seed=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(12))


# What is set where nothing is said

def test_the_knobs_where_nobody_sets_them() -> None:
    assert Sglang().settings() == {
        "schedule_policy": "fcfs", "schedule_conservativeness": 1.0, "max_running_requests": None,
        "max_prefill_tokens": 16384, "chunked_prefill_size": None, "enable_mixed_chunk": False, "page_size": 1,
        "disable_radix_cache": False, "init_new_token_ratio": None, "context_length": None, "ignore_eos": False,
        "prefill_max_requests": None, "prefill_decode_interval": 0, "random_seed": 0}


@pytest.mark.parametrize(("gib", "tokens"), [(16, 2048), (20, 4096), (48, 4096), (60, 8192), (141, 8192), (160, 16384)])
def test_chunks_follow_the_gpus_memory(gib: int, tokens: int) -> None:
    assert Sglang().resolve(Deployment(gpu_bytes=gib * GIB)).chunked_prefill_size == tokens


@pytest.mark.parametrize(("capacity", "length", "most"), [
    (400_000, 131_072, 2048), (400_000, 65_536, 3125), (4_000_000, 8192, 4096), (3000, 8192, 1500), (1, 8192, 1)])
def test_the_cap_on_running_requests_follows_the_pool(capacity: int, length: int, most: int) -> None:
    assert Sglang().resolve(Deployment(capacity, length)).max_running_requests == most


def test_the_cache_is_a_tree_unless_it_is_switched_off() -> None:
    deployment, nothing = Deployment(1000), np.array([], np.int64)
    assert isinstance(Sglang().memory(deployment, nothing), Radix)
    paged = Sglang(disable_radix_cache=True, page_size=16).memory(deployment, nothing)
    assert (type(paged), paged.capacity, paged.block_size) == (Paged, 62, 16)


@pytest.mark.parametrize(("page", "prompt", "room"), [(1, 10, 100 - 10 - 2), (1, 97, 1), (1, 98, 0),
                                                      (16, 10, 96 - 16 - 17)])
def test_the_pool_bounds_an_output(page: int, prompt: int, room: int) -> None:
    assert Sglang(page_size=page).room(np.array([prompt]), Deployment(100, 4096)) == [room]


def test_the_context_bounds_an_output() -> None:
    assert Sglang(context_length=50).room(np.array([10]), Deployment(1000, 4096)) == [50 - 1 - 10 - 1]


@pytest.mark.parametrize("page", [1, 4, 16])
@pytest.mark.parametrize("prompt", range(1, 21))
def test_whoever_is_let_through_fits_alone_where_every_end_is_known(prompt: int, page: int) -> None:
    """Also when it comes back with some of its answer, and of its new page only the first token is there."""
    knobs = {"ignore_eos": True, "disable_radix_cache": True, "page_size": page}
    room = int(Sglang(**knobs).room(np.array([prompt]), Deployment(80, 4096))[0])
    for generated in range(room):
        request = Request(0, 0, prompt, room)
        request._generated = generated
        free = 80 - -(-(prompt + generated) // page) * page - page
        assert Completions([]).fit(request, free), f"after {generated} of {room} tokens"
    found = sim.simulate(trace_of([(0, prompt, 79)]), Sglang(**knobs), kv_capacity_tokens=80, max_model_len=1000)
    assert found.summary()["total_output_tokens"] == room


def test_outputs_are_clipped_on_arrival_so_that_nobody_waits_for_ever() -> None:
    rows = [(0, 10, 60), (0, 20, 95), (0, 99, 1)]
    result = sim.simulate(trace_of(rows), "sglang", kv_capacity_tokens=100, max_model_len=1000)
    assert result.setup.output.tolist()[:2] == [60, 78]
    assert (result.summary()["completed"], result.summary()["rejected"]) == (2, 1)


def test_what_nobody_clips_stalls() -> None:
    class Unclipped(Sglang):
        def room(self, prompt: Any, deployment: Deployment) -> None:
            return None

    with pytest.raises(StalledError, match="1 waiting"):
        sim.simulate(trace_of([(0, 20, 79)]), Unclipped(), kv_capacity_tokens=100, max_model_len=1000)


@pytest.mark.parametrize("knobs", [
    {"schedule_policy": "lmp"}, {"page_size": 0}, {"max_running_requests": -1}, {"chunked_prefill_size": -1},
    {"max_prefill_tokens": 1.5}, {"enable_mixed_chunk": "yes"}, {"schedule_conservativeness": 0},
    {"schedule_conservativeness": UNLIMITED},
    {"init_new_token_ratio": -0.1}, {"init_new_token_ratio": float("nan")}, {"prefill_decode_interval": -1},
    {"random_seed": True}, {"prefill_max_requests": 0}, {"context_length": 0}])
def test_wrong_knobs(knobs: dict[str, Any]) -> None:
    [name] = knobs
    with pytest.raises(InputError, match=f"sglang: {name} must be") as caught:
        Sglang(**knobs)
    assert "\n" not in str(caught.value)


# At large

@dataclass(frozen=True)
class Slow(Affine):
    """20 ms a step, and 37 us a prompt token: 8192 of them take 0.32 s."""

    def time(self, shape: StepShape) -> int:
        return 20_000_000 + 37_000 * sum(new for new, _ in shape.chunks)


def decodes_a_prefill(rate: float, **knobs: Any) -> float:
    """Decode steps for each prefill batch, in the second half of an open loop of prompts of 3000 to 6000 tokens."""
    rng, n = np.random.default_rng(0), 900
    arrivals = np.cumsum(rng.exponential(1e9 / rate, n)).astype(int).tolist()
    rows = [(at, prompt, 200) for at, prompt in zip(arrivals, rng.integers(3000, 6001, n).tolist(), strict=True)]
    world = play(rows, Sglang(chunked_prefill_size=8192, **knobs), capacity=40_000_000, max_model_len=8192,
                 cost=Slow(), verify=False, keep=False)
    steps = world.record.steps
    inside = (steps["start"] > arrivals[n // 2]) & (steps["start"] < arrivals[-1])
    return ((steps["prompt"] == 0) & inside).sum() / ((steps["prompt"] > 0) & inside).sum()


def test_prompts_starve_the_decodes_once_they_fill_the_time_unless_an_interval_keeps_them_apart() -> None:
    assert decodes_a_prefill(4) > 2
    assert decodes_a_prefill(6.5) < 0.05
    assert decodes_a_prefill(6.5, prefill_decode_interval=8) == pytest.approx(8, rel=0.02)


def test_one_slot_is_one_slot_whatever_the_engine() -> None:
    rows = [(0, 5, 4), (3, 9, 1), (31, 2, 6)]
    ours = play_both(rows, Sglang().bounded_by(1), capacity=1000)
    theirs = play_both(rows, sim.policies.Vllm(enable_prefix_caching=False).bounded_by(1), capacity=1000)
    assert ours.log == theirs.log


def test_fast_mode_asks_less_often() -> None:
    world = play([(0, 10, 500), (0, 10, 300), (1000, 10, 400)], Sglang(), capacity=5000, keep=False)
    assert (len(world.record.ends), world.plans) == (501, 6)


def drawn(rng: random.Random, capacity: int, page: int) -> tuple[list[tuple[int, ...]], list[Any]]:
    """Requests that fit, and prefixes of which some begin alike."""
    rows, prefixes, at = [], [], 0
    for _ in range(rng.randint(1, 14)):
        at += rng.choice([0, 0, 0, 0, 3, 10, 40, 200])
        prompt = rng.randint(1, capacity // 3)
        most = min(rng.randint(1, capacity - prompt - 3 * page), rng.choice([5, 20, 1000]))
        rows.append((at, prompt, rng.choice([most, most, rng.randint(1, most)]), most))
        name = rng.choice(["", "a", "ab", "ac", "b"])
        prefixes.append(tuple((name[:n], min(prompt, 9 * n)) for n in range(1, len(name) + 1)))
    return rows, prefixes


def knobs_drawn(rng: random.Random) -> dict[str, Any]:
    return {"schedule_policy": rng.choice(["fcfs", "lpm", "lof", "random", "dfs-weight"]),
            "enable_mixed_chunk": rng.random() < 0.4, "disable_radix_cache": rng.random() < 0.3,
            "chunked_prefill_size": rng.choice([4, 8, 16, UNLIMITED]), "page_size": rng.choice([1, 1, 1, 4]),
            "prefill_decode_interval": rng.choice([0, 0, 0, 1, 3]),
            "schedule_conservativeness": rng.choice([1.0, 0.01, 0.01]),
            "max_running_requests": rng.choice([1, 2, 4, 30]), "max_prefill_tokens": rng.choice([8, 30, 16384]),
            "prefill_max_requests": rng.choice([None, None, 1, 2]), "ignore_eos": rng.random() < 0.2}


def random_world(seed: int) -> World:
    rng = random.Random(seed)
    capacity, knobs = rng.choice([40, 60, 100, 300]), knobs_drawn(rng)
    rows, prefixes = drawn(rng, capacity, knobs["page_size"])
    if knobs["ignore_eos"]:
        rows = [(at, prompt, most, most) for at, prompt, _, most in rows]
    if knobs["disable_radix_cache"]:
        prefixes = []
    return play_both(rows, Sglang(**knobs), capacity=capacity, cost=Affine(), prefixes=prefixes)


@pytest.mark.parametrize("block", range(8))
def test_random_worlds_keep_every_invariant_fast_and_exact(block: int) -> None:
    worlds = [random_world(seed) for seed in range(40 * block, 40 * block + 40)]
    assert any(tick.preempted for world in worlds for tick in world.ticks)


def test_compare_with_the_others_on_a_stand_in() -> None:
    found = sim.compare("azure-conv-2023", ["static", "sglang"], num_prompts=300)
    assert found.results["sglang", "saturated"].summary()["completed"] == 300
    assert found.speedup()["scheduling"] > 1


@pytest.mark.skipif(not (SHARED / "traces").exists(), reason="the published traces are not here")
def test_prefix_ids_of_a_published_trace_are_used() -> None:
    trace = str(SHARED / "traces" / "mooncake-fast25" / "conversation_trace.jsonl")
    steps = [sim.simulate(trace, Sglang(disable_radix_cache=off), num_prompts=300, load="saturated").record.steps
             for off in (False, True)]
    assert steps[0]["prompt"].sum() < 0.97 * steps[1]["prompt"].sum()


def test_a_chunk_holds_at_least_a_page() -> None:
    with pytest.raises(InputError, match=r"chunked_prefill_size \(32\) must be at least page_size \(64\)"):
        Sglang(page_size=64, chunked_prefill_size=32).resolve(Deployment())


def test_as_many_are_sent_back_as_it_takes_and_the_youngest_of_equals_first() -> None:
    """Four hold a token each, of a pool of four: one that goes makes room for one, and three ask. Two that go do."""
    memory, queue, step = Paged(4, 1), Queue(LockstepSet(1, lambda *span: None)), Step()
    for index in range(4):
        one = Request(index, 0, 1, 9)
        queue.wait(one)
        assert memory.grow(queue.admit(), 1)
        one._computed, one._generated = 1, 1
        queue.emitted(one, 8)
    assert not memory.take(queue.decoding, ())
    assert [one.index for one in retract(queue, memory, step)] == [0, 1]
    assert [one.index for one in step.preempted] == [one.index for one in queue.waiting] == [3, 2]
    assert (memory.used, memory.free, queue.decoding.size) == (4, 0, 2)
