"""Clients that hang up: when the engine lets a request go, what it gives back, who is tried again, and fast = exact."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from worlds import STEP, play, play_both, trace_of

from cost_models import Constant
from simulator.errors import InputError
from simulator.patience import Patience
from simulator.policies import (
    Sglang,
    StaticBatching,
    Tgi,
    Vllm,
)
from simulator.remarks import remarks
from simulator.request import Request
from simulator.simulation import run, simulate
from simulator.studies.capacity.objectives import Objective
from simulator.studies.capacity.sample import sample_of

ONE = Vllm(max_num_seqs=1)
MS = 10 ** 6


def test_who_waits_too_long_leaves_the_queue_at_once_and_the_next_is_served() -> None:
    """One slot. Request 0 computes until 50 ns; request 1 waits 25 ns for its first token, request 2 is served."""
    world = play_both([(0, 1, 5), (5, 1, 5), (40, 1, 2)], ONE, patience=Patience(first_token=25))
    assert world.left == [0, 2]
    assert world.record.cancelled.tolist() == [[1, 30, 3]]
    assert world.stays(1) == []
    assert world.stays(2) == [(50, 70)]


def test_who_computes_is_let_go_when_its_step_ends_and_its_memory_is_free_for_the_next() -> None:
    """Request 0 has 33 ns for its answer: the step that runs then ends at 40. Only after that request 1 finds room."""
    world = play_both([(0, 8, 9), (18, 8, 1)], Vllm(block_size=4), capacity=16, patience=Patience(answer=33))
    assert world.record.cancelled.tolist() == [[0, 40, 4]]
    assert (world.left, world.stays(1)) == ([1], [(40, 50)])
    assert world.record.used.tolist() == [2, 3, 3, 3, 2]


@pytest.mark.parametrize(("limit", "answered"), [(30, False), (31, True)])
def test_what_comes_at_the_very_end_of_the_limit_comes_too_late(limit: int, answered: bool) -> None:
    for patience in (Patience(answer=limit), Patience(first_token=limit - 20)):
        world = play_both([(0, 1, 3)], ONE, patience=patience)
        assert (world.left == [0]) == answered
        assert world.record.cancelled.tolist() == ([] if answered else [[0, 30 if patience.answer else 10, len(
            world.record.ends)]])


def test_a_first_token_in_time_is_all_that_a_limit_on_it_asks_for() -> None:
    world = play_both([(0, 1, 40)], ONE, patience=Patience(first_token=11))
    assert (world.left, world.left_at[0]) == ([0], 400)


def test_a_stretch_is_cut_at_the_step_in_which_somebody_hangs_up() -> None:
    rows = [(0, 1, 9), (0, 1, 9)]
    world = play(rows, Vllm(), patience=Patience(answer=43))
    assert world.log == ["0: 0+1 1+1 | emit 0 1", "10 x4: 0+1 1+1 | emit 0 1"]
    assert play_both(rows, Vllm(), patience=Patience(answer=43)).record.ends.tolist() == [10, 20, 30, 40, 50]


def test_a_request_is_sent_again_after_a_pause_that_doubles_and_given_up_in_the_end() -> None:
    """Cancelled at 25, 25 + 10 + 25 = 60, and 60 + 20 + 25 = 105 ns; the slot is taken all the while."""
    world = play_both([(0, 1, 40), (0, 1, 1)], ONE, patience=Patience(first_token=25, retries=2, backoff=10))
    assert world.record.cancelled.tolist() == [[1, 30, 3], [1, 70, 7], [1, 120, 12]]
    assert world.record.sent.tolist() == [[0, 0], [1, 0], [1, 40], [1, 90]]
    assert world.aborted == {1}


def test_a_second_try_that_finds_room_is_answered_from_the_start() -> None:
    """Its first try had emitted two tokens when it was cancelled; they do not count, nor does its time."""
    world = play_both([(0, 1, 5)], ONE, patience=Patience(answer=25, retries=1, backoff=7))
    assert world.record.cancelled.tolist() == [[0, 30, 3], [0, 67, 6]]
    slow = simulate(trace_of([(0, 1, 4), (0, 1, 1)]), ONE, cost_model=Constant(MS), request_timeout=0.0045,
                    max_retries=1, retry_backoff=0.0)
    frame = slow.requests
    assert frame["status"].tolist() == ["finished", "finished"]
    assert frame["tries"].tolist() == [1, 2]
    assert frame["sent"].tolist() == [0.0, 0.005]
    assert frame["e2el"].tolist() == pytest.approx([0.004, 0.001])


def test_a_client_with_a_limit_gives_the_turn_of_who_is_given_up_to_the_next() -> None:
    world = play_both([(0, 1, 9), (0, 1, 9), (0, 1, 1)], Vllm(), max_concurrency=1, patience=Patience(answer=25))
    assert world.sent() == {0: 0, 1: 30, 2: 60}
    assert world.left == [2]


def test_a_client_closes_only_when_nobody_can_be_sent_again() -> None:
    """A batch of two never fills: its only request times out twice before the client says that nobody will follow."""
    waits = StaticBatching(max_batch_size=2, max_wait=inf)
    world = play_both([(0, 1, 1)], waits, patience=Patience(answer=100, retries=1, backoff=5))
    assert world.record.cancelled.tolist() == [[0, 100, 0], [0, 205, 0]]
    assert play_both([(0, 1, 1)], waits, patience=Patience(answer=100)).left == [0]


def test_a_refused_request_is_tried_again_and_has_failed_only_if_the_last_try_is_refused() -> None:
    busy = Tgi(max_concurrent_requests=1)
    rows = [(0, 1, 5), (MS, 1, 1), (2 * MS, 1, 1)]
    def told(**options: Any) -> tuple[list[str], list[int], int]:
        result = simulate(trace_of(rows), busy, cost_model=Constant(2 * MS), **options)
        return result.requests["status"].tolist(), result.requests["tries"].tolist(), result.summary()["failed"]

    assert told() == (["finished", "failed", "failed"], [1, 1, 1], 2)
    assert told(max_retries=1, retry_backoff=0.0085) == (["finished", "failed", "finished"], [1, 2, 2], 1)
    assert told(max_retries=2, retry_backoff=0.0085) == (["finished"] * 3, [1, 3, 2], 0)


@pytest.mark.parametrize(("limit", "met"), [(5, 0), (10, 1), (10.4, 1), (10.6, 2), (27.4, 2), (27.6, 3)])
def test_objectives_count_from_the_first_try_in_a_run_and_in_a_plan(limit: float, met: int) -> None:
    """The last tries take 10, 2 and 2 ms; from the first ones on it is 10 ms, 27.5 ms (1 to 28.5) and 10.5 ms."""
    result = simulate(trace_of([(0, 1, 5), (MS, 1, 1), (2 * MS, 1, 1)]), Tgi(max_concurrent_requests=1),
                      cost_model=Constant(2 * MS), max_retries=2, retry_backoff=0.0085, goodput={"e2el": limit})
    assert (result.timeline.e2el // MS).tolist() == [10, 2, 2]
    assert result.summary()["request_goodput"] * result.summary()["duration"] == pytest.approx(met)
    assert sample_of(result, [Objective({"e2el": limit}, 0.5)]).alike == (met / 3,)


def test_conservation_in_the_summary() -> None:
    """submitted = finished + rejected + failed + aborted, and every try that was sent ended somehow."""
    result = simulate("azure-conv-2023", "vllm", num_prompts=400, rate_scale=60, kv_capacity_tokens=20_000,
                      max_model_len=4096, ttft_timeout=0.5, request_timeout=4, max_retries=1, retry_backoff=0.1)
    found = result.summary()
    ended = [found[name] for name in ("completed", "rejected", "failed", "aborted")]
    assert sum(ended) == found["num_prompts"]
    assert min(found["completed"], found["aborted"], found["retried"]) > 0
    tries = found["num_prompts"] - found["rejected"] + found["retried"]
    assert tries == found["completed"] + found["timed_out"]
    assert run(result.scenario.but(exact=True)).summary() | {"date": 0} == found | {"date": 0}


def test_who_waits_for_ever_is_not_counted() -> None:
    found = simulate("azure-conv-2023", num_prompts=20).summary()
    assert [found[name] for name in ("aborted", "timed_out", "retried")] == [None, None, None]


def test_a_client_that_saturates_waits_and_says_so() -> None:
    def told(**options: Any) -> list[bool]:
        result = simulate(trace_of([(0, 1, 4)]), cost_model=Constant(MS), **options)
        return ["its timeouts are not used" in line for line in remarks(result)]
    assert told(load="saturated", ttft_timeout=0.001) == told(load="saturated", request_timeout=0.001) == [True]
    assert told(load="saturated") == []
    assert not any(told(load="trace", ttft_timeout=0.001))


def test_an_answer_that_comes_whole_has_its_first_token_with_the_last() -> None:
    rows = trace_of([(0, 1, 4)])
    batch, stream = (simulate(rows, policy, cost_model=Constant(MS), ttft_timeout=0.003).summary()["aborted"]
                     for policy in ("static", "vllm"))
    assert (batch, stream) == (1, 0)


def test_what_a_request_spends_outside_the_engine_counts_against_the_limit() -> None:
    def aborted(timeout: float) -> int:
        return simulate(trace_of([(0, 1, 4)]), ONE, cost_model=Constant(MS), request_overhead=10,
                        request_timeout=timeout).summary()["aborted"]

    assert (aborted(0.014), aborted(0.0141)) == (1, 0)


def test_a_saturating_client_waits_for_ever() -> None:
    found = simulate("azure-conv-2023", num_prompts=200, load="saturated", ttft_timeout=1e-6).summary()
    assert (found["completed"], found["aborted"]) == (200, None)


def test_a_batch_stops_forming_when_its_only_request_hangs_up() -> None:
    """Request 0 waits alone until 30 ns, then nobody does until 60; the batch of the other two starts at 65."""
    result = simulate(trace_of([(0, 1, 1), (60, 1, 1), (65, 1, 1)]), StaticBatching(max_batch_size=2, max_wait=1.0),
                      cost_model=Constant(STEP), request_timeout=30e-9)
    parts = result.slot_ledger.parts
    assert (parts["forming"], parts["idle"], parts["prefill"]) == (2 * 35, 2 * 30, 2 * STEP)
    assert result.slot_ledger.total == 2 * 75


@pytest.mark.parametrize(("field", "value", "words"), [
    ("ttft_timeout", 0, "ttft_timeout must be above 0"), ("request_timeout", float("nan"), "must be above 0"),
    ("request_timeout", inf, "must be a number of at least 0"), ("max_retries", -1, "whole number of at least 0"),
    ("max_retries", 31, "at most 30"), ("retry_backoff", -1, "at least 0"), ("ttft_timeout", 2e8, "at most 1e\\+08")])
def test_wrong_patience_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        simulate("azure-conv-2023", num_prompts=1, **{field: value})


def test_ties_on_the_lattice_of_step_ends() -> None:
    for limit in range(0, 8 * STEP, STEP // 2):    # 0: the overhead of a request is all that its client waits
        for policy in (Vllm(max_num_seqs=2), StaticBatching(max_batch_size=2), Sglang(page_size=1)):
            play_both([(STEP * at, 4, 3 + at % 4) for at in (0, 1, 2, 2, 3, 5)], policy, max_model_len=90,
                      capacity=200, patience=Patience(answer=limit, retries=1, backoff=STEP))


def test_a_policy_of_ones_own_hears_of_who_hangs_up() -> None:
    """One slot. Request 0 holds it when its client hangs up, request 1 only waits."""
    heard: list[int] = []

    class Hears(Vllm):
        def dropped(self, request: Request) -> None:
            heard.append(request.index)

    world = play([(0, 1, 9), (0, 1, 9)], Hears(max_num_seqs=1), patience=Patience(answer=25))
    assert (heard, world.dropped) == ([0], [0, 1])

    class Fails(Vllm):
        def dropped(self, request: Request) -> None:
            raise KeyError(request.index)

    world = play([(0, 1, 9)], Fails(), patience=Patience(answer=25), fails=True)
    assert str(world.error).startswith("vllm: its dropped raised an error (KeyError: 0 in test_hanging_up.py, line ")
