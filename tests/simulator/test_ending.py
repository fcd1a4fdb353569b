"""The story of one short sequence is read from the log: planted logs are told as they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from worlds import play, trace_of

from cost_models import Constant
from simulator.policies import StaticBatching, Vllm
from simulator.recorder import PLAN_COLUMNS, Recorder
from simulator.result import Result
from simulator.simulation import simulate
from simulator.studies.ending import ending, short_request, tell

SECOND = 10 ** 9


def planted(spans, stays, steps: int, outputs: list[int]) -> Result:
    """A run of steps of one second, with these spans (request, first, last) and stays (request, since, until)."""
    recorder = Recorder()
    for step in range(steps):
        recorder.plans.append((step * SECOND, 1, *[0] * (len(PLAN_COLUMNS) - 2)))
        recorder.ends.append((step + 1) * SECOND)
        recorder.used.append(0)
    for span in spans:
        recorder.span(*span)
    for request, since, until in stays:
        recorder.stay(request, since * SECOND, until * SECOND)
    for request in range(len(outputs)):
        recorder.sent.extend((request, 0))
    setup = SimpleNamespace(prompt=np.full(len(outputs), 10), output=np.array(outputs),
                            footprint=np.full(len(outputs), 100))
    return Result(setup, recorder.freeze())    # type: ignore[arg-type]


HELD = planted([(1, 0, 0), (0, 0, 4), (2, 5, 5), (3, 5, 5)], [(0, 0, 5), (1, 0, 5), (2, 5, 6), (3, 5, 6)], 6,
               [5, 1, 1, 1])
EVICTED = planted([(1, 0, 0), (2, 1, 1), (3, 2, 2), (0, 0, 4)], [(1, 0, 1), (2, 1, 2), (3, 2, 3), (0, 0, 5)], 5,
                  [5, 1, 1, 1])


def test_the_shortest_of_the_first_batch_is_followed() -> None:
    assert short_request(HELD) == short_request(EVICTED) == 1


def test_a_held_slot_is_told_with_its_steps_seconds_and_memory() -> None:
    assert tell(HELD, 1) == (
        "Request 1 (prompt 10 tokens, answer 1 token) got a slot at step 0 (0.000 s), one other beside it. "
        "It emitted its last token at step 0 (1.000 s). "
        "Its slot was not free then: request 0 needed 5 tokens, until step 4 (5.000 s). "
        "For 4 steps and 4.000 s the slot stayed idle, holding 10 tokens of KV in 100 tokens of memory set aside for "
        "it, while 2 requests stood in the queue. Its answer returned only then, with the whole batch. "
        "Request 3 took a slot at step 5, in the next batch.")


def test_an_evicted_one_is_told_with_who_came_next() -> None:
    assert tell(EVICTED, 1) == (
        "Request 1 (prompt 10 tokens, answer 1 token) got a slot at step 0 (0.000 s), one other beside it. "
        "It emitted its last token at step 0 (1.000 s). "
        "It left the batch with that step: its slot and 100 tokens of KV memory were free at once. "
        "Request 2 took the slot in the very next step, 1.")


def test_another_log_is_another_story() -> None:
    later = planted([(1, 0, 0), (0, 0, 2), (2, 3, 3)], [(1, 0, 1), (0, 0, 3), (2, 3, 4)], 4, [3, 1, 1])
    assert "The next to be admitted was request 2, at step 3." in tell(later, 1)
    alone = planted([(0, 0, 0)], [(0, 0, 1)], 1, [1])
    assert tell(alone, 0).endswith("Nobody was waiting, so the slot stayed empty.")


def test_who_leaves_together_is_followed_in_order() -> None:
    both = planted([(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1)],
                   [(0, 0, 1), (1, 0, 1), (2, 1, 2), (3, 1, 2)], 2, [1, 1, 1, 1])
    assert (ending(both, 0).successor, ending(both, 1).successor) == (2, 3)


def test_real_logs_agree_with_the_planted_ones() -> None:
    rows = [(0, 10, 5), (0, 10, 1), (0, 10, 1), (0, 10, 1)]
    for policy, told in ((StaticBatching(max_batch_size=2), HELD), (Vllm(max_num_seqs=2, max_num_batched_tokens=99),
                                                                    EVICTED)):
        real = Result(told.setup, play(rows, policy).record)
        for field in ("last_step", "left_step", "idle_steps", "successor", "successor_step", "waiting", "longest"):
            assert getattr(ending(real, 1), field) == getattr(ending(told, 1), field), (policy.name, field)


def test_of_a_run_that_served_nobody_nobody_is_followed() -> None:
    assert short_request(planted([], [], 0, [5])) is None


def test_a_batch_that_runs_on_holds_its_last_request_for_nobody() -> None:
    result = simulate(trace_of([(0, 10, 2), (0, 10, 2)]), StaticBatching(run_to=5), load="saturated",
                      cost_model=Constant(SECOND), kv_capacity_tokens=1000)
    assert ending(result, 0).longest is None
    assert "Its slot was not free then: the batch ran on, until step 4 (5.000 s)." in tell(result, 0)
