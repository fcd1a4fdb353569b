"""Clients: when requests are sent, who is held back, and when the replica hears that no more will come."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simpy import Environment
from worlds import STEP, play, play_both, trace_of

from simulator.clients import Client
from simulator.errors import InputError, StalledError
from simulator.policies import StaticBatching, Vllm
from simulator.request import Request
from simulator.simulation import simulate

ONE = Vllm(max_num_seqs=1)


class Ear:
    """A server that only writes down what it hears."""

    def __init__(self, env: Environment) -> None:
        self.env, self.heard = env, []

    def submit(self, request: Request) -> None:
        self.heard.append((self.env.now, request.index))

    def close(self) -> None:
        self.heard.append((self.env.now, "closed"))


def heard(arrivals: list[int]) -> list[tuple[int, object]]:
    env = Environment(initial_time=0)
    ear = Ear(env)
    Client(env, (Request(index, at, 1, 1) for index, at in enumerate(arrivals))).send_to(ear)
    env.run()
    return ear.heard


def test_an_open_loop_sends_everything_at_its_time_and_closes_with_the_last() -> None:
    assert heard([0, 7, 7, 12]) == [(0, 0), (7, 1), (7, 2), (12, 3), (12, "closed")]
    assert heard([5]) == [(5, 0), (5, "closed")]
    assert heard([]) == []


def test_requests_are_made_only_when_they_are_due() -> None:
    made = []

    def requests() -> object:
        for index in range(5):
            made.append(index)
            yield Request(index, 100 * index, 1, 1)

    env = Environment(initial_time=0)
    Client(env, requests()).send_to(Ear(env))    # type: ignore[arg-type]
    env.run(until=150)
    assert made == [0, 1, 2]


def test_a_closed_loop_holds_back_and_a_request_counts_as_sent_when_it_is_sent() -> None:
    world = play_both([(0, 1, 2)] * 5, Vllm(), max_concurrency=2)
    assert world.sent() == {0: 0, 1: 0, 2: 20, 3: 20, 4: 40}
    assert [world.stays(index)[0][0] for index in range(5)] == [0, 0, 20, 20, 40], "nobody waits at the replica"


def test_a_limit_that_nobody_reaches_changes_nothing() -> None:
    rows = [(0, 1, 2), (30, 1, 2), (60, 1, 2)]
    world = play_both(rows, Vllm(), max_concurrency=1)
    assert world.sent() == {0: 0, 1: 30, 2: 60}


def test_arrivals_after_the_limit_was_met_are_sent_at_their_own_time() -> None:
    """One is held back and let go; the next one is not due yet, and comes when it is."""
    world = play_both([(0, 1, 3), (10, 1, 3), (35, 1, 1), (200, 1, 1)], Vllm(), max_concurrency=1)
    assert world.sent() == {0: 0, 1: 30, 2: 60, 3: 200}


def test_a_turn_that_comes_at_the_very_instant_of_an_arrival_is_taken_at_once() -> None:
    world = play_both([(0, 1, 2), (20, 1, 2), (20, 1, 2), (40, 1, 1)], Vllm(), max_concurrency=1)
    assert world.sent() == {0: 0, 1: 20, 2: 40, 3: 60}


def test_several_turns_come_free_at_once() -> None:
    world = play_both([(0, 1, 2)] * 9, StaticBatching(max_batch_size=3), max_concurrency=3)
    assert [tick.admitted for tick in world.ticks if tick.admitted] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_batches_smaller_than_the_limit_leave_requests_at_the_replica() -> None:
    world = play_both([(0, 1, 2)] * 6, StaticBatching(max_batch_size=2), max_concurrency=4)
    assert world.sent() == {0: 0, 1: 0, 2: 0, 3: 0, 4: 20, 5: 20}


def test_a_held_back_request_starts_its_wait_for_a_batch_when_it_is_sent() -> None:
    world = play_both([(0, 1, 1), (0, 1, 1), (10**6, 1, 1)], StaticBatching(max_batch_size=2, max_wait=30e-6),
                      max_concurrency=1)
    assert [(tick.now, tick.admitted) for tick in world.ticks] == [(30, [0]), (70, [1]), (10**6, [2])]


def test_the_last_requests_are_not_waited_for_when_the_client_has_closed() -> None:
    """The limit keeps requests back, so the client closes only when it sends the last."""
    world = play_both([(0, 1, 1)] * 5, StaticBatching(max_batch_size=2, max_wait=inf), max_concurrency=2)
    assert [(tick.now, tick.admitted) for tick in world.ticks] == [(0, [0, 1]), (10, [2, 3]), (20, [4])]


def test_an_arrival_within_a_step_is_not_the_end_of_it() -> None:
    world = play_both([(0, 1, 1), (3, 1, 1), (3, 1, 1), (9, 1, 1)], ONE)
    assert [tick.now for tick in world.ticks] == [0, STEP, 2 * STEP, 3 * STEP]


def test_a_limit_below_the_batch_that_is_waited_for_never_ends_silently() -> None:
    """Two outstanding never fill a batch of three: refused at once, or told as a stall, but never a quiet result."""
    world = play([(0, 2, 1)] * 4, StaticBatching(max_batch_size=3, max_wait=inf), max_concurrency=2, fails=True)
    assert (world.replica.finished, len(world.replica.queue.waiting)) == (0, 2)
    with pytest.raises((InputError, StalledError)):
        simulate(trace_of([(0, 2, 1)] * 4), StaticBatching(max_batch_size=3, max_wait=inf), max_concurrency=2)


@given(rows=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=25),
       limit=st.integers(1, 6), seqs=st.integers(1, 6))
@settings(max_examples=150)
def test_a_closed_loop_never_exceeds_its_limit(rows: list[tuple[int, int, int]], limit: int, seqs: int) -> None:
    """The invariants count who is outstanding at every send and every answer, and who was held back below the limit."""
    world = play(sorted(rows), Vllm(max_num_seqs=seqs, max_num_batched_tokens=16), max_concurrency=limit)
    assert world.record.plan("running").max() <= limit


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_replica_with_fewer_slots_than_the_limit_keeps_them_all_busy(limit: int) -> None:
    world = play_both([(0, 1, 4)] * 6, Vllm(max_num_seqs=2), max_concurrency=limit)
    assert len(world.record.ends) == 4 * 6 // min(limit, 2)


def test_a_closed_loop_handed_over_from_its_warm_up_has_no_second_burst() -> None:
    """The p99 of TTFT is that of the start, where all come at once; a start anew after a warm-up brings it back."""
    chance = np.random.default_rng(0)
    rows = [(0, *row) for row in zip(chance.integers(300, 700, 1064), chance.integers(50, 200, 1064), strict=True)]
    warm, anew = (simulate(trace_of(part), Vllm(), max_concurrency=32).requests["ttft"]
                  for part in (rows, rows[64:]))
    handed_over = warm[64:]
    assert anew.quantile(0.99) > 4 * handed_over.quantile(0.99), "drained in between"
    assert anew.median() == pytest.approx(handed_over.median(), rel=0.1), "the rest of the run is alike"
