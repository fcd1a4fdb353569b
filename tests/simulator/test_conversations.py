"""Conversations: when later turns are sent, what ends a conversation, what is counted, and fast = exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn.same import differing
from worlds import SHARED, STEP

import simulator as sim
from cost_models import Constant
from simulator.errors import InputError
from simulator.policies import Policy, StaticBatching, Vllm
from simulator.result import Result
from traces import Trace, TraceError, load

Row = tuple[int, int, int, int, int]
"""Arrival, prompt and output tokens, the row of the turn before or -1, and think time, in ns."""


def talk(rows: list[Row], *, thinks: bool = True, **columns: Any) -> Trace:
    arrival, prompt, output, parent, think = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Trace("talk", arrival, prompt, output, parent=parent, think=think if thinks else None, **columns)


def play(trace: Trace, policy: Policy | str = "vllm", **options: Any) -> Result:
    """The fast result, the same as the exact one."""
    options = {"cost_model": Constant(STEP), "kv_capacity_tokens": 20_000, "max_model_len": 96, **options}
    exact, fast = (sim.simulate(trace, policy, exact=exact, **options) for exact in (True, False))
    assert differing(exact, fast) == []
    return fast


def sent(result: Result) -> list[int]:
    return result.outcomes.sent.tolist()


def ends(result: Result) -> list[str]:
    return result.outcomes.status.tolist()


CHAIN = [(0, 1, 3, -1, 0), (1, 1, 2, 0, 25), (1000, 1, 1, 1, 0)]


def test_a_turn_comes_its_think_time_after_the_answer_whatever_its_own_time() -> None:
    """Answers at 30 and 75 ns; the last turn was recorded at 1000."""
    assert sent(play(talk(CHAIN))) == [0, 55, 75]


def test_without_think_times_a_turn_keeps_its_own_time_unless_the_answer_is_late() -> None:
    assert sent(play(talk(CHAIN, thinks=False))) == [0, 30, 1000]


def test_recorded_times_can_be_kept() -> None:
    result = play(talk(CHAIN), turns="recorded")
    assert sent(result) == [0, 1, 1000]
    assert (result.summary()["turns"], result.summary()["skipped"]) == ("recorded", None)
    assert result.summary()["offered_request_rate"] == pytest.approx(2e6)


def test_saturated_clients_do_not_think() -> None:
    result = play(talk(CHAIN), load="saturated")
    assert sent(result) == [0, 30, 50]
    assert sent(play(talk(CHAIN), load="saturated", turns="recorded")) == [0, 0, 0]


def test_an_answer_may_have_several_followers_and_a_whole_batch_several_answers() -> None:
    rows = [(0, 1, 2, -1, 0), (0, 1, 2, -1, 0), (5, 1, 1, 0, 0), (5, 1, 1, 0, 10), (5, 1, 1, 1, 0)]
    assert sent(play(talk(rows))) == [0, 0, 20, 30, 20]


def test_a_policy_that_returns_whole_answers_lets_turns_wait_for_them() -> None:
    rows = [(0, 1, 2, -1, 0), (0, 1, 6, -1, 0), (0, 1, 1, 0, 0)]
    assert sent(play(talk(rows), StaticBatching(max_batch_size=2))) == [0, 0, 60]


def test_the_overhead_of_a_request_delays_the_next_turn() -> None:
    assert sent(play(talk(CHAIN), request_overhead=1e-3))[1] == 30 + 1000 + 25


def test_a_held_back_turn_takes_its_place_by_the_time_at_which_it_was_due() -> None:
    """One at a time: request 3 is due at 15, before the turn at 20, and request 4 after it."""
    rows = [(0, 1, 2, -1, 0), (1, 1, 1, 0, 0), (15, 1, 3, -1, 0), (16, 1, 1, -1, 0), (25, 1, 1, -1, 0)]
    result = play(talk(rows), max_concurrency=1)
    assert sent(result) == [0, 60, 20, 50, 70]


def test_a_conversation_ends_with_a_turn_that_was_rejected() -> None:
    rows = [(0, 5, 2, -1, 0), (1, 200, 2, 0, 0), (2, 5, 2, 1, 0), (3, 5, 2, 2, 0), (4, 5, 2, -1, 0),
            (5, 200, 1, -1, 0), (6, 5, 1, 5, 0)]
    result = play(talk(rows))
    assert ends(result) == ["finished", "rejected", "skipped", "skipped", "finished", "rejected", "skipped"]
    summary = result.summary()
    assert (summary["completed"], summary["rejected"], summary["skipped"]) == (2, 2, 3)
    assert [bool(reason) for reason in result.outcomes.reason] == [False, True, True, True, False, True, True]
    assert (result.outcomes.tries == [1, 0, 0, 0, 1, 0, 0]).all()
    assert ends(play(talk(rows), turns="recorded")).count("finished") == 5


def test_the_cap_counts_only_requests_that_can_be_sent() -> None:
    rows = [(0, 200, 2, -1, 0), (1, 5, 2, 0, 0), (2, 5, 2, 1, 0), (3, 5, 2, -1, 0), (4, 5, 2, -1, 0)]
    assert ends(play(talk(rows), num_prompts=1)) == ["rejected", "skipped", "skipped", "finished"]


def test_a_conversation_ends_with_a_turn_that_timed_out() -> None:
    rows = [(0, 1, 9, -1, 0), (1, 1, 1, 0, 0), (2, 1, 1, 1, 0), (3, 1, 1, -1, 0)]
    told: list[tuple[int, int]] = []
    scenario = sim.Scenario(talk(rows), Vllm(), request_timeout=5e-8, cost_model=Constant(STEP), max_model_len=96)
    result = sim.run(scenario, progress=lambda done, of: told.append((done, of)))
    assert ends(result) == ["aborted", "skipped", "skipped", "finished"]
    assert told == [(4, 4)]


def test_a_conversation_ends_with_a_turn_that_the_engine_refused() -> None:
    """Room for one: the turn at 45 finds the request of 40 there, and tries again until it is gone, if it may."""
    rows = [(0, 1, 2, -1, 0), (1, 1, 1, 0, 25), (2, 1, 1, 1, 0), (40, 1, 3, -1, 0)]
    policy = sim.policies.Tgi(max_concurrent_requests=1)
    assert ends(play(talk(rows), policy)) == ["finished", "failed", "skipped", "finished"]
    patient = play(talk(rows), policy, max_retries=5, retry_backoff=1e-8)
    assert ends(patient) == ["finished"] * 4
    assert patient.summary()["skipped"] == 0


def test_batches_that_wait_for_more_do_not_wait_once_no_turn_can_come() -> None:
    """The client closes with the last turn: the batch of two that waits for ever goes alone."""
    rows = [(0, 1, 2, -1, 0), (0, 1, 2, -1, 0), (5, 1, 1, 0, 0)]
    assert ends(play(talk(rows), StaticBatching(max_batch_size=2, max_wait=float("inf")))) == ["finished"] * 3
    lost = [(0, 1, 2, -1, 0), (0, 1, 2, -1, 0), (5, 200, 1, 0, 0), (9, 1, 1, -1, 0)]
    assert ends(play(talk(lost), StaticBatching(max_batch_size=2, max_wait=float("inf")))).count("finished") == 3


def test_a_turn_that_waits_finds_what_it_repeats() -> None:
    """At its recorded time the turn before it has not computed anything yet; after the answer all of it is there."""
    trace = talk([(0, 64, 8, -1, 0), (0, 80, 4, 0, 0)], shared=[0, 64])
    for turns, found in (("wait", 64), ("recorded", 0)):
        summary = play(trace, "sglang", turns=turns).summary()
        assert (summary["cached_tokens"], summary["prefix_cache_hit_rate"]) == (found, found / 144)
    assert play(trace, "static").summary()["cached_tokens"] is None
    assert play(talk(CHAIN)).summary()["cached_tokens"] is None, "the trace does not tell"


def test_prefixes_that_nobody_knows_are_declined_when_asked_for() -> None:
    with pytest.raises(TraceError, match="'talk' does not tell which prompts begin alike"):
        sim.simulate(talk(CHAIN), require_prefixes=True)
    trace = talk([(0, 64, 8, -1, 0), (0, 80, 4, 0, 0)], shared=[0, 64])
    assert play(trace, require_prefixes=True).summary()["completed"] == 2


def test_long_gaps_and_long_thoughts_are_cut() -> None:
    rows = [(0, 1, 1, -1, 0), (9_000, 1, 1, 0, 8_000), (20_000, 1, 1, -1, 0)]
    assert sent(play(talk(rows), cap_gaps=1e-6)) == [0, 1_010, 2_000]
    assert sent(play(talk(rows), cap_gaps=1e-6, rate_scale=20)) == [0, 1_010, 1_000], "the clock of the replay"


@pytest.mark.parametrize("wrong", [{"turns": "never"}, {"require_prefixes": 1}, {"cap_gaps": -1}])
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        sim.Scenario(**wrong)


@pytest.mark.parametrize("name", ["weka-cc/weka_raw_sample_12_sessions.tar.gz",
                                  "tracelab-sample/example_sanitized_round_trace.jsonl"])
def test_published_sessions_find_most_of_their_prompts(name: str) -> None:
    if not (SHARED / "traces" / name).exists():
        pytest.skip("needs ../shared/traces")
    summary = sim.simulate(load(SHARED / "traces" / name), num_prompts=150).summary()
    assert (summary["skipped"], summary["turns"]) == (0, "wait")
    assert 0.6 < summary["prefix_cache_hit_rate"] < 1
