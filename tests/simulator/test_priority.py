"""vLLM's priorities on worlds small enough to know every step of: blocks of 4 tokens, lower is more urgent.

Each log is agreed by the exact mode, the fast mode and the model by blocks; see `live.ours.log`.
"""

from __future__ import annotations

from typing import Any

from live.ours import log, small

from simulator.batch import LockstepSet
from simulator.policies.vllm_priority import least_urgent_first
from simulator.request import Request
from simulator.step import Queue


def world(*rows: tuple[Any, ...], caching: bool = False, **options: Any) -> list[str]:
    """Rows are (id, arrival step, prompt, output, priority)."""
    full = [(*row[:4], {}, row[4]) for row in rows]
    return log(small(*full, policy="priority", enable_prefix_caching=caching, **options))


def test_the_queue_is_served_by_priority_then_arrival() -> None:
    assert world(("a", 0, 4, 2, 5), ("b", 0, 4, 1, 2), ("c", 1, 4, 1, 1), ("d", 1, 4, 1, 2), max_num_seqs=1) == [
        "0: b+4 | wait a | leave b | used 0",
        "1: c+4 | wait d a | leave c | used 0",
        "2: d+4 | wait a | leave d | used 0",
        "3: a+4 | used 1",
        "4: a+1 | leave a | used 0",
    ]


def test_ties_are_broken_by_the_id_as_a_string() -> None:
    assert world(("r9", 0, 4, 1, 0), ("r10", 0, 4, 1, 0), ("r2", 0, 4, 1, 0), max_num_seqs=1) == [
        "0: r10+4 | wait r2 r9 | leave r10 | used 0",
        "1: r2+4 | wait r9 | leave r2 | used 0",
        "2: r9+4 | leave r9 | used 0",
    ]


def test_a_waiting_request_preempts_nobody_however_urgent() -> None:
    assert world(("a", 0, 4, 3, 9), ("b", 1, 4, 1, 0), max_num_seqs=1) == [
        "0: a+4 | used 1",
        "1: a+1 | wait b | used 2",
        "2: a+1 | wait b | leave a | used 0",
        "3: b+4 | leave b | used 0",
    ]


def test_the_victim_is_the_least_urgent_not_the_youngest() -> None:
    assert world(("low", 0, 4, 3, 1), ("top", 1, 4, 2, 0), num_gpu_blocks=4, max_num_seqs=2) == [
        "0: low+4 | used 1",
        "1: low+1 top+4 | used 3",
        "2: top+1 | wait low | preempt low | leave top | used 0",
        "3: low+6 | leave low | used 0",
    ]


def test_a_victim_gives_back_its_tokens_of_this_step() -> None:
    """In step 3 `low` has its token already when `mid` needs a block; `big` then gets 3 of the budget of 4, not 2."""
    steps = world(("low", 0, 3, 9, 2), ("mid", 1, 3, 9, 0), ("big", 2, 12, 2, 0), num_gpu_blocks=5, max_num_seqs=3,
                  max_num_batched_tokens=4, scheduler_reserve_full_isl=False)
    assert steps[:4] == [
        "0: low+3 | used 1",
        "1: low+1 mid+3 | used 2",
        "2: low+1 mid+1 big+2 | used 4",
        "3: mid+1 big+3 | wait low | preempt low | used 4",
    ]


def test_who_preempts_itself_does_not_end_the_walk() -> None:
    """`low` is first, needs a block and is the least urgent itself; `top`, behind it, still gets its token."""
    assert world(("low", 0, 7, 4, 2), ("top", 1, 5, 2, 0), num_gpu_blocks=5) == [
        "0: low+7 | used 2",
        "1: low+1 top+5 | used 4",
        "2: top+1 | wait low | preempt low | leave top | used 0",
        "3: low+9 | used 3",
        "4: low+1 | leave low | used 0",
    ]


def test_of_equals_the_first_in_the_running_order_is_the_victim() -> None:
    assert world(("a", 0, 4, 3, 0), ("b", 0, 4, 3, 0), num_gpu_blocks=3) == [
        "0: a+4 b+4 | used 2",
        "1: b+1 | wait a | preempt a | used 2",
        "2: b+1 | wait a | leave b | used 0",
        "3: a+5 | used 2",
        "4: a+1 | leave a | used 0",
    ]


def test_a_victim_finds_blocks_that_it_was_only_given_in_the_step_of_its_preemption() -> None:
    """As in the engine, blocks are published when they are scheduled: `low` finds 20 tokens and has computed 16."""
    assert world(("low", 0, 26, 1, 2), ("z", 0, 1, 1, 9), ("top", 1, 4, 2, 0), caching=True, num_gpu_blocks=8,
                 long_prefill_token_threshold=8, scheduler_reserve_full_isl=False) == [
        "0: low+8 z+1 | leave z | used 2",
        "1: low+8 top+4 | used 5",
        "2: top+1 | wait low | preempt low | leave top | used 0, 6 evictable",
        "3: low+6@20 | leave low | used 0, 6 evictable",
    ]


def test_someone_more_urgent_passes_a_head_that_does_not_fit() -> None:
    """b waits for memory while a decodes; c comes amid that, goes to the head, and fits."""
    assert world(("a", 0, 4, 8, 0), ("b", 0, 16, 2, 1), ("c", 4, 4, 1, 0), num_gpu_blocks=6) == [
        "0: a+4 b+16 | used 5",
        "1: a+1 | wait b | preempt b | used 2",
        "2: a+1 | wait b | used 2",
        "3: a+1 | wait b | used 2",
        "4: a+1 c+4 | wait b | leave c | used 2",
        "5: a+1 | wait b | used 3",
        "6: a+1 | wait b | used 3",
        "7: a+1 | wait b | leave a | used 0",
        "8: b+17 | leave b | used 0",
    ]


def test_without_reservation_equals_may_preempt_each_other_for_ever() -> None:
    """As in the engine: the victim is the older one, comes back as the younger, and takes the other's blocks."""
    endless = small(("b", 0, 24, 1, {}, 0), ("c", 0, 24, 1, {}, 0), policy="priority", enable_prefix_caching=False,
                    num_gpu_blocks=7, long_prefill_token_threshold=4, scheduler_reserve_full_isl=False, max_steps=500)
    steps = log(endless)
    assert len(steps) == 500
    assert not any("leave" in step for step in steps)
    assert steps[5:10] == [
        "5: b+4 | wait c | preempt c | used 2",
        "6: b+4 c+4 | used 4",
        "7: b+4 c+4 | used 6",
        "8: c+4 | wait b | preempt b | used 3",
        "9: c+4 b+4 | used 5",
    ]


def test_the_last_token_of_the_budget_is_given_to_a_prompt() -> None:
    assert world(("a", 0, 1, 4, 0), ("b", 0, 1, 4, 0), ("c", 0, 4, 1, 1), max_num_batched_tokens=3, max_num_seqs=3) == [
        "0: a+1 b+1 c+1 | used 3",
        "1: a+1 b+1 c+1 | used 3",
        "2: a+1 b+1 c+1 | used 3",
        "3: a+1 b+1 c+1 | leave a b c | used 0",
    ]


def test_a_prefix_that_is_computed_where_the_budget_runs_short_is_found() -> None:
    rows = [("a", 0, 8, 3, {"p": 8}, 0), ("m", 0, 14, 2, {}, 0), ("b", 2, 9, 1, {"p": 8}, 0)]
    assert log(small(*rows, policy="priority", enable_prefix_caching=True, max_num_batched_tokens=6, max_num_seqs=4,
                     long_prefill_token_threshold=4))[:3] == [
        "0: a+4 m+2 | used 2",
        "1: a+4 m+2 | used 3",
        "2: a+1 m+4 b+1@8 | leave b | used 5",
    ]


def test_the_order_of_victims_is_that_of_urgency_backwards() -> None:
    queue = Queue(LockstepSet(1, lambda *span: None))
    for index, (priority, arrival) in enumerate([(1, 5), (2, 3), (2, 4), (0, 9), (2, 4)]):
        queue.wait(Request(index, arrival, 1, 9, priority=priority))
        queue.admit()
    assert [request.index for request in least_urgent_first(queue)] == [2, 4, 1, 0, 3]
