"""Static batching on worlds small enough to know every step of. A step lasts 10 ns unless said otherwise.

A log line reads `time: request+tokens ... | held, wait, preempt, emit, leave | pad`.
"""

from __future__ import annotations

from math import inf

import pytest
from worlds import STEP, Affine, World, play_both

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.policies import StaticBatching

THREE = [(0, 4, 3), (0, 6, 1), (0, 2, 2)]


def test_nobody_enters_and_nobody_leaves_before_the_longest_is_done() -> None:
    world = play_both(THREE, StaticBatching(max_batch_size=2))
    assert world.log == [
        "0: 0+4 1+6 | wait 2 | emit 0 1",
        "10: 0+1 | held 1 | wait 2 | emit 0",
        "20: 0+1 | held 1 | wait 2 | emit 0 | leave 0 1",
        "30: 2+2 | emit 2",
        "40: 2+1 | emit 2 | leave 2",
    ]
    assert world.left_at == {0: 30, 1: 30, 2: 50}
    assert world.record.steps["held"].tolist() == [0, 1, 1, 0, 0]
    assert world.record.steps["padding"].tolist() == [0, 0, 0, 0, 0], "a ragged batch computes nothing for nothing"


def test_a_request_that_comes_during_a_batch_waits_for_its_end() -> None:
    world = play_both([(0, 4, 4), (1, 1, 1)], StaticBatching(max_batch_size=8))
    assert world.stays(1) == [(40, 50)]
    assert set(world.record.steps["blocked"].tolist()) == {5}, "the batch keeps everybody out"


def test_a_padded_batch_computes_its_longest_prompt_and_its_finished_rows() -> None:
    world = play_both(THREE, StaticBatching(max_batch_size=3, padded=True), cost=Affine(0, 100, 1, 1))
    assert world.log == [
        "0: 0+4 1+6 2+2 | emit 0 1 2 | pad 6",                          # 3 rows of 6 tokens: 18
        "18: 0+1 2+1 spent 1 | held 1 | emit 0 2 | pad 6",              # 3 rows over 6 tokens each: 300 + 18
        "336: 0+1 spent 2 | held 1 2 | emit 0 | leave 0 1 2 | pad 7",   # 300 + 21
    ]
    assert world.record.ends.tolist() == [18, 336, 657]
    assert world.record.steps["padding"].tolist() == [2 + 0 + 4, 1, 2]
    assert world.record.steps["context"].tolist() == [0, 4 + 2, 5], "the useful context is not the padded one"


def test_a_ragged_batch_reads_only_what_is_there() -> None:
    world = play_both(THREE, StaticBatching(max_batch_size=3), cost=Affine(0, 100, 1, 1))
    assert world.record.ends.tolist() == [12, 12 + 200 + 4 + 2, 12 + 206 + 100 + 5]


def test_a_batch_that_runs_to_a_length_goes_on_when_all_are_done() -> None:
    world = play_both(THREE, StaticBatching(max_batch_size=3, run_to=5), cost=Affine(0, 100, 1, 1))
    assert world.log == [
        "0: 0+4 1+6 2+2 | emit 0 1 2",
        "12: 0+1 2+1 spent 1 | held 1 | emit 0 2",
        "324: 0+1 spent 2 | held 1 2 | emit 0",
        "639 x2: spent 3 | held 0 1 2 | leave 0 1 2",
    ]
    first, second = 324 - 12, 639 - 324
    assert first == 300 + 4 + 2 + 6, "the finished row goes on reading its prompt"
    assert second == 300 + 5 + (6 + 1) + (2 + 1)
    last = [639, 639 + 300 + 6 + 8 + 4, 639 + 318 + 300 + 7 + 9 + 5]
    assert [639, *world.record.ends[-2:].tolist()] == last
    assert world.record.steps["spent"].tolist() == [0, 1, 2, 3, 3]
    assert world.token_times(0) == [12, 324, 639]
    assert set(world.left_at.values()) == {last[-1]}, "they leave when the batch ends, not when they are done"


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("run_to", "steps"), [(None, 5), (1, 5), (3, 5), (5, 5), (6, 6), (9, 9)])
def test_a_batch_runs_to_the_longer_of_its_longest_answer_and_the_given_length(run_to: int | None, steps: int,
                                                                             padded: bool) -> None:
    world = play_both([(0, 3, 5), (0, 3, 2)], StaticBatching(max_batch_size=2, run_to=run_to, padded=padded))
    assert len(world.record.ends) == steps


def test_answers_of_one_token_end_with_their_prefill() -> None:
    world = play_both([(0, 3, 1), (0, 3, 1)], StaticBatching(max_batch_size=2))
    assert world.log == ["0: 0+3 1+3 | emit 0 1 | leave 0 1"]
    world = play_both([(0, 3, 1), (0, 3, 1)], StaticBatching(max_batch_size=2, run_to=3))
    assert world.log == ["0: 0+3 1+3 | emit 0 1", "10 x2: spent 2 | held 0 1 | leave 0 1"]


COMING = [(0, 2, 2), (13, 2, 2), (14, 2, 1), (21, 2, 1), (100, 2, 1)]


def batches(world: World) -> list[tuple[int, list[int]]]:
    return [(tick.now, tick.admitted) for tick in world.ticks if tick.admitted]


def test_without_a_wait_a_batch_takes_what_is_there() -> None:
    assert batches(play_both(COMING, StaticBatching(max_batch_size=3))) == [
        (0, [0]), (20, [1, 2]), (40, [3]), (100, [4])]


def test_wait_until_full_takes_full_batches_and_the_last_incomplete_one() -> None:
    world = play_both(COMING, StaticBatching(max_batch_size=2, max_wait=inf))
    assert batches(world) == [(13, [0, 1]), (33, [2, 3]), (100, [4])]


def test_nobody_waits_for_a_batch_that_can_no_longer_fill() -> None:
    world = play_both([(0, 2, 1), (7, 2, 1)], StaticBatching(max_batch_size=9, max_wait=inf))
    assert batches(world) == [(7, [0, 1])], "the client closes with its last request"


def test_a_maximum_wait_counts_from_the_oldest_arrival() -> None:
    world = play_both([(0, 2, 1), (30, 2, 1), (200, 2, 1), (210, 2, 1), (290, 2, 1), (5000, 2, 1)],
                      StaticBatching(max_batch_size=3, max_wait=50e-6))
    assert batches(world) == [(50, [0, 1]), (250, [2, 3]), (340, [4]), (5000, [5])]


def test_a_full_batch_does_not_wait() -> None:
    world = play_both([(0, 2, 1), (7, 2, 1), (9999, 2, 1)], StaticBatching(max_batch_size=2, max_wait=1e-3))
    assert batches(world) == [(7, [0, 1]), (9999, [2])]


def test_time_spent_behind_a_running_batch_counts_as_waiting() -> None:
    rows = [(0, 2, 9), (0, 2, 9), (10, 2, 1), (9999, 2, 1)]
    world = play_both(rows, StaticBatching(max_batch_size=2, max_wait=60e-6))
    assert batches(world) == [(0, [0, 1]), (90, [2]), (9999, [3])]


def test_a_server_that_sleeps_before_each_batch_starts_it_later() -> None:
    rows = [(0, 1, 2), (5, 1, 1), (95, 1, 1)]
    world = play_both(rows, StaticBatching(max_batch_size=2, sleep_per_batch=30e-6))    # 30 ns
    assert world.log == [
        "30: 0+1 1+1 | emit 0 1",
        "40: 0+1 | held 1 | emit 0 | leave 0 1",
        "125: 2+1 | emit 2 | leave 2",
    ]


def test_clients_that_fill_a_batch_exactly_may_wait_for_a_full_one() -> None:
    endless = StaticBatching(max_batch_size=4, max_wait=inf)
    assert endless.resolve(Deployment(max_concurrency=4)).slots == 4
    with pytest.raises(InputError, match="3 outstanding requests never fill a batch of 4"):
        endless.resolve(Deployment(max_concurrency=3))


@pytest.mark.parametrize("milliseconds", [10.5e-6, 0.4e-6, 1.0000003e-3, 1.2345678])
def test_a_wait_need_not_be_a_whole_number_of_nanoseconds(milliseconds: float) -> None:
    world = play_both([(0, 2, 1), (10**9, 2, 1)], StaticBatching(max_batch_size=2, max_wait=milliseconds))
    assert abs(world.ticks[0].now - milliseconds * 1e6) <= 1


def test_a_wait_is_exact_late_in_a_long_trace() -> None:
    """At 200 days a float holds no single nanoseconds any more."""
    late = 200 * 24 * 3600 * 10**9 + 1
    world = play_both([(late, 2, 1), (late + 10**12, 2, 1)], StaticBatching(max_batch_size=2, max_wait=50e-6))
    assert [now - late for now, _ in batches(world)] == [50, 10**12]


@pytest.mark.parametrize(("reserve", "batch"), [("model", 1), ("declared", 2), ("exact", 4)])
def test_what_a_request_reserves_bounds_the_batch(reserve: str, batch: int) -> None:
    rows = [(0, 10, 5, 20)] * 8    # exact 15, declared 30, model 60 tokens
    world = play_both(rows, StaticBatching(max_batch_size=8, reserve=reserve), capacity=60, max_model_len=60)
    assert len(world.ticks[0].running) == batch
    assert world.record.steps["promised"].tolist()[0] == 60
    assert world.record.used.tolist() == [60] * len(world.record.ends), "a reservation is held whole, to the end"


def test_a_buddy_gives_powers_of_two() -> None:
    rows = [(0, 10, 6), (0, 10, 7), (0, 10, 7)]    # 16, 17 -> 32, 17 -> 32 tokens
    world = play_both(rows, StaticBatching(max_batch_size=3, placement="buddy"), capacity=64)
    assert [tick.admitted for tick in world.ticks if tick.admitted] == [[0, 1], [2]]
    assert world.ticks[0].intervals == [(0, 16), (32, 32)]
    assert world.record.steps["used"].tolist()[0] == 48
    assert world.record.steps["promised"].tolist()[0] == 33


def test_the_head_of_the_queue_stops_the_batch_even_if_the_next_one_would_fit() -> None:
    rows = [(0, 10, 10), (0, 30, 10), (0, 5, 5)]
    world = play_both(rows, StaticBatching(max_batch_size=3), capacity=45)
    assert batches(world) == [(0, [0]), (100, [1]), (200, [2])]
    assert [tick.blocked for tick in world.ticks if tick.admitted] == ["memory", "memory", "batch"]


def test_unlimited_memory_is_no_bound_in_either_placement() -> None:
    for placement in ("first-fit", "buddy"):
        world = play_both([(0, 1000, 3)] * 70, StaticBatching(max_batch_size=64, placement=placement))
        assert [len(who) for _, who in batches(world)] == [64, 6]


def test_equal_lengths_leave_nothing_idle() -> None:
    world = play_both([(0, 5, 7)] * 12, StaticBatching(max_batch_size=4))
    assert len(world.record.ends) == 3 * 7
    assert world.record.ends[-1] == 3 * 7 * STEP
    assert not world.record.steps["held"].any()


@pytest.mark.parametrize("knobs", [
    {"max_batch_size": 0}, {"max_batch_size": 2.5}, {"max_batch_size": True}, {"run_to": 0}, {"run_to": -3},
    {"reserve": "all"}, {"placement": "best-fit"}, {"padded": 1}, {"max_wait": -1}, {"max_wait": float("nan")},
    {"max_wait": "soon"}, {"sleep_per_batch": -1}, {"sleep_per_batch": inf}, {"sleep_per_batch": "long"}])
def test_a_wrong_knob_is_one_line(knobs: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"\Astatic: " + next(iter(knobs))) as error:
        StaticBatching(**knobs)    # type: ignore[arg-type]
    assert "\n" not in str(error.value)
