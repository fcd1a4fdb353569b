"""Prefix caching on worlds small enough to know every block of. A block holds 4 tokens unless a world says otherwise.

Each log is agreed by the exact mode, the fast mode and the model by blocks; see `live.ours.log`.
"""

from __future__ import annotations

from typing import Any

import pytest
from live.ours import log, small

from simulator.batch import ListedSet
from simulator.memory.prefix import PrefixCached
from simulator.request import Request


def world(*rows: tuple[Any, ...], **options: Any) -> list[str]:
    return log(small(*rows, **options))


def cached(prompt: int, times: int, block: int) -> list[tuple[int, int]]:
    """Tokens (found, computed) each time that one prompt comes again, one after the other."""
    rows = [(str(at), at, prompt, 1, {"same": prompt}) for at in range(times)]
    steps = world(*rows, block_size=block, max_num_batched_tokens=prompt)
    found = [step.split(" | ")[0].partition("+")[2] for step in steps]
    return [(int(text.partition("@")[2] or 0), int(text.partition("@")[0])) for text in found]


@pytest.mark.parametrize(("prompt", "again"), [(64, (48, 16)), (65, (64, 1)), (63, (48, 15)), (16, (0, 16)),
                                               (7820, (7808, 12))])
def test_a_prompt_that_comes_again_is_found_but_for_its_last_token(prompt: int, again: tuple[int, int]) -> None:
    assert cached(prompt, 3, block=16) == [(0, prompt), again, again]


def test_without_ids_nobody_finds_anothers_tokens() -> None:
    assert world(("a", 0, 12, 1), ("b", 1, 12, 1)) == [
        "0: a+12 | leave a | used 0, 3 evictable",
        "1: b+12 | leave b | used 0, 6 evictable",
    ]


def test_a_block_is_found_in_the_step_that_computes_it() -> None:
    assert world(("a", 0, 9, 2, {"x": 8}), ("b", 0, 9, 2, {"x": 8})) == [
        "0: a+9 b+1@8 | used 4, 2 shared",
        "1: a+1 b+1 | leave a b | used 0, 2 evictable",
    ]


def test_of_a_prefix_that_ends_within_a_block_only_full_blocks_are_shared() -> None:
    assert world(("a", 0, 9, 1, {"x": 7}), ("b", 1, 9, 1, {"x": 7})) == [
        "0: a+9 | leave a | used 0, 2 evictable",
        "1: b+5@4 | leave b | used 0, 3 evictable",
    ]


def test_in_one_group_prefixes_may_differ_in_length() -> None:
    assert world(("a", 0, 8, 1, {"x": 8}), ("b", 1, 17, 1, {"x": 16}), ("c", 2, 17, 1, {"x": 12})) == [
        "0: a+8 | leave a | used 0, 2 evictable",
        "1: b+9@8 | leave b | used 0, 4 evictable",
        "2: c+5@12 | leave c | used 0, 5 evictable",
    ]


def test_nested_ids_are_found_as_far_as_they_agree() -> None:
    long, other = {"p": 4, "pq": 12}, {"p": 4, "pr": 12}
    assert world(("a", 0, 12, 1, long), ("b", 1, 12, 1, other), ("c", 2, 13, 1, long), ("d", 3, 13, 1, other)) == [
        "0: a+12 | leave a | used 0, 3 evictable",
        "1: b+8@4 | leave b | used 0, 5 evictable",
        "2: c+1@12 | leave c | used 0, 5 evictable",
        "3: d+1@12 | leave d | used 0, 5 evictable",
    ]


def test_ids_of_another_size_are_cut_into_the_memorys_blocks() -> None:
    """Ids of 5 tokens over blocks of 4: a block that two ids share belongs to the longer prefix."""
    three = {"p": 5, "pq": 10, "pqr": 15}
    assert world(("a", 0, 15, 1, three), ("b", 1, 16, 1, three), ("c", 2, 16, 1, {"p": 5, "pq": 10})) == [
        "0: a+15 | leave a | used 0, 3 evictable",
        "1: b+4@12 | leave b | used 0, 4 evictable",
        "2: c+8@8 | leave c | used 0, 6 evictable",
    ]


def test_a_second_copy_is_found_when_the_first_is_gone() -> None:
    """b computes its last block although a's copy is there, since a prompt is never found whole. c takes a's."""
    assert world(("a", 0, 8, 1, {"x": 8}), ("b", 0, 8, 1, {"x": 8}), ("c", 1, 8, 1), ("d", 2, 9, 1, {"x": 8}),
                 num_gpu_blocks=5) == [
        "0: a+8 b+4@4 | leave a b | used 0, 3 evictable",    # one block was never used
        "1: c+8 | leave c | used 0, 4 evictable",
        "2: d+1@8 | leave d | used 0, 3 evictable",
    ]


def test_the_least_recently_used_block_goes_first_and_the_tail_before_the_head() -> None:
    assert world(("a", 0, 8, 1, {"x": 8}), ("b", 1, 8, 1, {"y": 8}), ("c", 2, 4, 1), ("d", 3, 9, 1, {"x": 8}),
                 num_gpu_blocks=5) == [
        "0: a+8 | leave a | used 0, 2 evictable",
        "1: b+8 | leave b | used 0, 4 evictable",
        "2: c+4 | leave c | used 0, 4 evictable",       # takes the end of x
        "3: d+5@4 | leave d | used 0, 3 evictable",     # its beginning is still there
    ]


def test_a_block_that_is_not_full_is_taken_before_any_other() -> None:
    assert world(("a", 0, 8, 1, {"x": 8}), ("b", 0, 3, 1), ("c", 1, 4, 1), ("d", 2, 9, 1, {"x": 8}),
                 num_gpu_blocks=4) == [
        "0: a+8 b+3 | leave a b | used 0, 2 evictable",
        "1: c+4 | leave c | used 0, 3 evictable",       # takes the block that b has left
        "2: d+1@8 | leave d | used 0, 2 evictable",
    ]


def test_whoever_runs_before_the_victim_takes_its_block_before_the_victim_gives_back() -> None:
    """In step 3 a takes the last free block, which b has left, and only then is c preempted, with one half full.

    Had c given back first, a would have had that one, and a block of b's could still be found.
    """
    assert world(("b", 0, 7, 1), ("a", 1, 3, 3), ("c", 2, 9, 1), num_gpu_blocks=5, max_num_batched_tokens=6,
                 max_num_seqs=4, scheduler_reserve_full_isl=False) == [
        "0: b+6 | used 2",
        "1: b+1 a+3 | leave b | used 1, 1 evictable",
        "2: a+1 c+5 | used 3, 1 evictable",
        "3: a+1 | wait c | preempt c | leave a | used 0, 2 evictable",
        "4: c+5@4 | leave c | used 0, 3 evictable",
    ]


def test_outputs_are_kept_too_and_push_others_out() -> None:
    assert world(("a", 0, 4, 9, {"x": 4}), ("b", 10, 8, 1, {"x": 4}), num_gpu_blocks=4) == [
        "0: a+4 | used 1", "1: a+1 | used 2", "2: a+1 | used 2", "3: a+1 | used 2", "4: a+1 | used 2",
        "5: a+1 | used 3", "6: a+1 | used 3", "7: a+1 | used 3",
        "8: a+1 | leave a | used 0, 3 evictable",
        "10: b+4@4 | leave b | used 0, 3 evictable",
    ]


def test_a_preempted_request_finds_what_is_left_of_its_own() -> None:
    """The victim's two full blocks are free; the other request takes one, its tail, before it comes back."""
    assert world(("a", 0, 8, 6), ("b", 0, 8, 6), num_gpu_blocks=6) == [
        "0: a+8 b+8 | used 4",
        "1: a+1 | wait b | preempt b | used 3, 2 evictable",
        *(f"{at}: a+1 | wait b | used 3, 2 evictable" for at in (2, 3, 4)),
        "5: a+1 | wait b | leave a | used 0, 4 evictable",
        "6: b+5@4 | used 3, 2 evictable",
        *(f"{at}: b+1 | used 3, 2 evictable" for at in (7, 8, 9)),
        "10: b+1 | leave b | used 0, 4 evictable",
    ]


def test_evictable_hits_count_against_an_admission() -> None:
    """b hits two free blocks and needs one more, and only two are free: it waits, although one would do."""
    steps = world(("a", 0, 8, 1, {"x": 8}), ("c", 1, 4, 3), ("b", 2, 9, 1, {"x": 8}), num_gpu_blocks=5)
    assert steps == [
        "0: a+8 | leave a | used 0, 2 evictable",
        "1: c+4 | used 1, 2 evictable",
        "2: c+1 | wait b | used 2, 2 evictable",
        "3: c+1 | wait b | leave c | used 0, 3 evictable",
        "4: b+1@8 | leave b | used 0, 3 evictable",
    ]


def test_memory_by_hand() -> None:
    memory, nobody = PrefixCached(6, 4), ListedSet(4, lambda *span: None)
    first, second = (Request(index, 0, 10, 2, prefix=(("x", 8),)) for index in (0, 1))
    assert (memory.cached(first), memory.demand(first, 10)) == (0, 3)
    first.order, second.order = 1, 2
    assert memory.grow(first, 10)
    first._computed = 10
    assert (memory.used, memory.free, memory.evictable, memory.shared_tokens) == (3, 3, 0, 0)
    assert (memory.cached(second), memory.demand(second, 10)) == (8, 1), "blocks that are held cost nothing"
    assert memory.grow(second, 2)
    assert (second.computed, memory.used, memory.shared_tokens) == (8, 4, 8)
    second._computed = 10
    assert not memory.take(nobody, [(first, 3), (second, 9)])
    assert not memory.grow(Request(2, 0, 20, 2, prefix=(("x", 8),)), 9)
    assert (memory.used, memory.free) == (4, 2), "all or nothing"
    memory.release(first)
    assert (memory.used, memory.evictable, memory.shared_tokens) == (3, 0, 0)
    memory.release(second)
    assert (memory.used, memory.free, memory.evictable) == (0, 6, 2)
    third = Request(2, 0, 10, 2, prefix=(("x", 8),))
    assert (memory.cached(third), memory.demand(third, 10)) == (8, 3), "evictable blocks are taken from the free ones"


def test_what_a_request_left_and_does_not_find_again_is_forgotten_when_its_space_is_taken() -> None:
    """A victim that had its room already: two blocks are kept, and of 8 tokens known only 7 are looked for."""
    memory, one = PrefixCached(4, 4), Request(0, 0, 7, 9)
    assert memory.grow(one, 7)
    one._computed, one._generated = 7, 1
    assert memory.grow(one, 1)
    memory.release(one, ahead=1, returns=True)
    one.forget()
    assert (memory.evictable, memory.cached(one)) == (2, 4)
    assert memory.grow(one, 4)
    assert (one.computed, memory.used, memory.evictable) == (4, 2, 1)
    one._computed = 8
    memory.release(one)
    assert memory.grow(Request(1, 0, 16, 1), 16), "all of it can be taken"
    assert (memory.used, memory.free, memory.evictable) == (4, 0, 0)
