"""Triton's dynamic batcher: which batches it makes, and when. A batch of one-token answers is one step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, play, play_both

from cost_models import Constant
from simulator.deployment import Deployment
from simulator.errors import InputError, PolicyError
from simulator.policies import DynamicBatching, StaticBatching

US, MS = 1_000, 1_000_000


def arrivals(*instants: int) -> list[tuple[int, int, int]]:
    return [(at, 4, 1) for at in instants]


def batches(world: World) -> list[tuple[int, int]]:
    """When each batch started, and how many were in it."""
    return [(tick.now, len(tick.admitted)) for tick in world.ticks if tick.admitted]


def run(rows: list[tuple[int, int, int]], lasts: int, size: int, *preferred: int, delay: int = 0,
        **options: Any) -> list[tuple[int, int]]:
    policy = DynamicBatching(max_batch_size=size, preferred_batch_size=preferred or None,    # type: ignore[arg-type]
                             max_queue_delay_microseconds=delay)
    return batches(play_both(rows, policy, cost=Constant(lasts), **options))


def test_requests_behind_a_running_batch_go_together() -> None:
    """Four that come while one runs make one batch of four, not four of one."""
    world = play_both(arrivals(0, *[MS // 10] * 4), DynamicBatching(max_batch_size=8), cost=Constant(10 * MS))
    assert batches(world) == [(0, 1), (10 * MS, 4)]
    assert sorted(set(world.left_at.values())) == [10 * MS, 20 * MS]


def pairs(count: int) -> list[tuple[int, int, int]]:
    """Two requests every millisecond."""
    return arrivals(*[at * MS for at in range(count) for _ in range(2)])


def test_an_idle_server_runs_the_smallest_preferred_size() -> None:
    assert {size for _, size in run(pairs(50), MS, 40, 2, 20, 40)} == {2}
    assert {size for _, size in run(pairs(50), MS, 40, 2, 20, 40, delay=5000)} == {2}


def test_without_the_smallest_preferred_size_batches_are_larger() -> None:
    assert run(pairs(50), MS, 40, 20, 40, delay=5000)[:3] == [(5 * MS, 12), (11 * MS, 12), (17 * MS, 12)]


def test_the_largest_preferred_size_needs_a_backlog() -> None:
    assert run(arrivals(*[0] * 100), MS, 40, 2, 20, 40) == [(0, 40), (MS, 40), (2 * MS, 20)]
    assert 40 not in {size for _, size in run(pairs(100), 10 * MS, 40, 2, 20, 40)}


def test_a_delay_collects_all_that_are_there() -> None:
    assert run(arrivals(*[0] * 140), 10 * MS, 256, delay=5_000_000) == [(5000 * MS, 140)]


def test_a_limit_before_the_batcher_splits_the_batch() -> None:
    """At most 100 outstanding: the batcher never sees the other 40 in time."""
    found = run(arrivals(*[0] * 140), 10 * MS, 256, delay=5_000_000, max_concurrency=100)
    assert found == [(5000 * MS, 100), (10_010 * MS, 40)]


def test_a_full_batch_does_not_wait() -> None:
    assert run(arrivals(0, 1, 2, 3), 5, 3, delay=1000) == [(2, 3), (3 + 1000 * US, 1)]


def test_a_preferred_size_does_not_wait_and_takes_the_largest_reached() -> None:
    assert run(arrivals(0, 1, 1, 2, 2, 2), 100, 8, 3, 5, delay=1000) == [(1, 3), (101, 3)]
    assert run(arrivals(0, 1, 1, 1, 1, 1), 100, 8, 3, 5, delay=1000) == [(1, 5), (1 * 1000 * US + 1, 1)]


def test_after_the_delay_preferred_sizes_no_longer_count() -> None:
    assert run(arrivals(0, 0, 0), MS, 8, 4, delay=7) == [(7 * US, 3)]
    assert run(arrivals(0, 0, 5 * US), MS, 8, 2, 4, delay=7) == [(0, 2), (MS, 1)], "2 goes at once, 1 while it runs"


def test_at_the_end_of_the_delay_all_go_though_some_of_them_are_a_preferred_size() -> None:
    assert run(arrivals(0, *[7 * US] * 3), MS, 8, 2, 8, delay=7) == [(7 * US, 4)]
    assert run(arrivals(0, *[6 * US] * 3), MS, 8, 2, 8, delay=7) == [(6 * US, 2), (MS + 6 * US, 2)]


def test_a_payload_that_is_no_preferred_size_takes_whoever_comes() -> None:
    """The second has waited for its delay when the third comes, which then joins it without a delay of its own."""
    rows = arrivals(*[0] * 8, 10 * US, 35 * US)
    assert run(rows, 40 * US, 8, delay=20) == [(0, 8), (40 * US, 2)]
    rows[-1] = (29 * US, 4, 1)
    assert run(rows, 29 * US, 8, delay=20) == [(0, 8), (30 * US, 2)]


def test_a_payload_of_a_preferred_size_grows_no_more_without_a_delay() -> None:
    """Four of the six are sent as they come; with the six there at once there is a larger size to choose."""
    assert run(arrivals(0, 1, 1, 2, 2, 3, 3), 10, 8, 4, 6) == [(0, 1), (10, 4), (20, 2)]
    assert run(arrivals(0, *[1] * 6), 10, 8, 4, 6) == [(0, 1), (10, 6)]


def test_with_a_delay_a_payload_takes_one_more_than_the_largest_preferred_size() -> None:
    """The batcher looks again at a payload that waits for the instance, and whoever is next joins it."""
    assert run(arrivals(0, 0, *range(1, 4)), 10, 8, 2, delay=1000) == [(0, 2), (10, 3)]
    assert run(arrivals(0, 0, 1, 1, 1), 10, 8, 2, delay=1000) == [(0, 2), (10, 3)]


def test_a_payload_that_has_taken_one_more_grows_no_more() -> None:
    """Behind a batch that runs to 10 ms, the second is a preferred size, the third one more; the fourth comes later."""
    assert run(arrivals(0, MS, 2 * MS, 2 * MS), 10 * MS, 8, 1, delay=1) == [(0, 1), (10 * MS, 2), (20 * MS, 1)]


def test_who_is_left_behind_is_looked_at_when_the_next_batch_has_started() -> None:
    """The second is a preferred size by itself, and goes alone; of the two behind it there are two then."""
    assert run(arrivals(0, 2, 6, 7), 10, 3, 1, 2) == [(0, 1), (10, 1), (20, 2)]


def test_a_payload_that_is_full_when_its_delay_ends_grows_no_more() -> None:
    """Two are there at 11 us, when the first of them has waited for its 3; the one of 13 us comes too late."""
    rows = arrivals(*[at * US for at in (0, 3, 8, 11, 13)])
    assert run(rows, 10 * US, 6, 2, delay=3) == [(3 * US, 2), (13 * US, 2), (23 * US, 1)]


def test_nobody_waits_for_more_once_no_more_can_join() -> None:
    assert run(arrivals(*[0] * 5), 10, 4, delay=50) == [(0, 4), (50 * US, 1)]


def test_a_batch_runs_to_its_longest_answer() -> None:
    world = play_both([(0, 4, 3), (0, 6, 1), (1, 2, 2)], DynamicBatching(max_batch_size=2))
    assert world.log == [
        "0: 0+4 1+6 | emit 0 1",
        "10: 0+1 | held 1 | wait 2 | emit 0",
        "20: 0+1 | held 1 | wait 2 | emit 0 | leave 0 1",
        "30: 2+2 | emit 2",
        "40: 2+1 | emit 2 | leave 2",
    ]


def test_whoever_finds_no_memory_is_in_the_next_batch() -> None:
    world = play_both([(0, 6, 4)] * 5, DynamicBatching(max_batch_size=4), capacity=25)
    assert [size for _, size in batches(world)] == [2, 2, 1]


@given(st.lists(st.tuples(st.integers(0, 25), st.integers(1, 9), st.integers(1, 6)), min_size=1, max_size=30),
       st.integers(1, 8))
@settings(max_examples=60)
def test_without_delay_and_preferred_sizes_it_is_static_batching(gaps: list[tuple[int, int, int]], size: int) -> None:
    at, rows = 0, []
    for gap, prompt, output in gaps:
        at += gap
        rows.append((at, prompt, output))
    dynamic, static = (play(rows, policy) for policy in (DynamicBatching(max_batch_size=size),
                                                        StaticBatching(max_batch_size=size)))
    assert dynamic.log == static.log


def test_a_wait_to_the_end_of_the_clock_and_beyond_it_ends() -> None:
    """A lone request of the last year that the clock counts is waited for longer than that: a refusal, and no hang."""
    patient = DynamicBatching(max_batch_size=2, max_queue_delay_microseconds=(1 << 60) // 1000)
    with pytest.raises(PolicyError, match="146 years"):
        play(arrivals((1 << 62) - 1), patient)


def test_preferred_sizes_are_written_as_a_list_or_between_commas() -> None:
    for text in ("8,4", (4, 8), [8, 4, 4]):
        policy = DynamicBatching(max_batch_size=8, preferred_batch_size=text)    # type: ignore[arg-type]
        assert policy.resolve(Deployment()).preferred_batch_size == (4, 8)
    assert DynamicBatching(preferred_batch_size=8).preferred_batch_size == (8,)    # type: ignore[arg-type]
    assert DynamicBatching(max_batch_size=8).resolve(Deployment()).preferred_batch_size == (8,)


def test_a_preferred_size_above_the_largest_batch_is_refused() -> None:
    with pytest.raises(InputError, match=r"\Adynamic: preferred_batch_size \(16\) is above max_batch_size \(8\)"):
        DynamicBatching(max_batch_size=8, preferred_batch_size=(4, 16)).resolve(Deployment())


@pytest.mark.parametrize("knobs", [
    {"max_batch_size": 0}, {"preferred_batch_size": "4,x"}, {"preferred_batch_size": (0,)},
    {"preferred_batch_size": ()}, {"preferred_batch_size": 4.5}, {"preferred_batch_size": (4, True)},
    {"max_queue_delay_microseconds": -1}, {"max_queue_delay_microseconds": 1.5}, {"max_queue_delay_microseconds": True},
    {"max_queue_delay_microseconds": 1 << 60}, {"reserve": "all"}, {"placement": "x"}])
def test_a_wrong_knob_is_one_line(knobs: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"\Adynamic: " + next(iter(knobs))) as error:
        DynamicBatching(**knobs)    # type: ignore[arg-type]
    assert "\n" not in str(error.value)
