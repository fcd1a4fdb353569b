"""Rules by which an engine itself comes to no end: they are told in one line, and nothing else is taken for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn.play import may_push_out_for_ever, may_wait_for_ever
from worlds import trace_of

from cost_models import Constant
from simulator.errors import PolicyError, StalledError
from simulator.policies import Policy, Tgi, Vllm
from simulator.scenario import Scenario
from simulator.simulation import run


def world(rows: list[tuple[int, ...]], policy: Policy, capacity: int, **columns: object) -> Scenario:
    return Scenario(trace=replace(trace_of(rows), **columns), policy=policy, cost_model=Constant(10), max_model_len=40,
                    kv_capacity_tokens=capacity)


def cached(capacity: int) -> Scenario:
    """The second prompt finds 5 blocks of the first one's 30, and needs 15 more."""
    return world([(0, 30, 1, 1), (500, 10, 11, 11)], Tgi(block_size=1), capacity,
                 hash_ids=[[0, 1, 2, 3, 4, 5], [0, 6]], hash_block=5)


def test_tgi_waits_for_ever_where_it_locks_more_than_it_finds() -> None:
    """All 30 are locked for the 5: with 15 more that is 45 blocks, beside one that is kept for health checks."""
    assert run(cached(46)).summary()["completed"] == 2
    assert not may_wait_for_ever(cached(46))
    for scenario in (cached(45), cached(31)):
        with pytest.raises(StalledError, match=r"^tgi: stalled .* with 1 of 2 answered .* give it more memory"):
            run(scenario)
        assert may_wait_for_ever(scenario)


def tied(apart: int, **knobs: bool) -> Scenario:
    """Two of one priority, of which the pool holds either: each is let in by its next 8 tokens."""
    policy = Vllm(block_size=4, max_num_batched_tokens=16, max_num_seqs=8, long_prefill_token_threshold=8,
                  enable_prefix_caching=False, scheduling_policy="priority", **knobs)
    return world([(0, 29, 6), (apart, 23, 12)], policy, 48, priority=np.array([1, 1]))


def test_by_priority_a_tie_without_a_full_reservation_never_ends_and_is_told_in_one_line() -> None:
    """The engine sends back the first of the largest (priority, arrival): of a tie that is whoever came in before."""
    with pytest.raises(PolicyError, match=r"^vllm: has preempted in \d+ steps, request \d .* more memory") as told:
        run(tied(0, scheduler_reserve_full_isl=False))
    assert "\n" not in str(told.value)
    assert may_push_out_for_ever(tied(0, scheduler_reserve_full_isl=False))


@pytest.mark.parametrize(("apart", "full"), [(1, False), (0, True)])
def test_a_nanosecond_or_a_full_reservation_breaks_the_tie(apart: int, full: bool) -> None:
    summary = run(tied(apart, scheduler_reserve_full_isl=full)).summary()
    assert summary["completed"] == 2
