"""The tensorrt_llm policy against the transcribed traces, step by step, and wrong rules that they catch.

The traces stand in tests/golden/tensorrt_llm. They were transcribed by hand from the engine's published sources: a
reference, and no proof.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from trt_rules import Requests, Rules
from worlds import play

from simulator.conformance import MODES, Mode, Outcome, Recording, compare, recordings
from simulator.conformance.tensorrt_llm import tensorrt_llm_case
from simulator.policies import TensorRtLlm
from simulator.request import Request
from simulator.step import Queue

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorrt_llm"
RECORDINGS = {recording.name: recording for recording in recordings(GOLDEN)}
STEPS = {"n1_no_evict": 40, "n2_max_utilization": 31, "n3_static_batch": 50, "n4_chunk_fcfs": 13, "n5_chunk_equal": 13,
         "n6_no_chunk_token_cap": 10}


def test_all_traces_are_here() -> None:
    assert list(RECORDINGS) == list(STEPS)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_every_field_of_every_step_is_the_same(name: str, mode: Mode) -> None:
    outcome = compare(RECORDINGS[name], tensorrt_llm_case, mode)
    assert outcome == Outcome(mode, STEPS[name], (), None)


@pytest.mark.parametrize("name", STEPS)
def test_a_replayed_trace_keeps_every_invariant(name: str) -> None:
    case = tensorrt_llm_case(RECORDINGS[name])
    rows = [(request.arrival, request.prompt, case.outputs[request.index], request.max_tokens)
            for request in case.requests]
    world = play(rows, case.policy, memory=case.memory, cost=case.cost, exact=True)
    assert len(world.record.ends) == STEPS[name]


# Wrong rules

@dataclass
class PausedToTheTail(Rules):
    """A paused request goes behind everybody who is there."""

    places: dict[int, Any] = field(init=False, repr=False, default_factory=dict)

    def place(self, request: Request) -> Any:
        return self.places.get(request.index, super().place(request))

    def paused(self, victim: Request) -> None:
        waiting = self.queue.waiting
        waiting.remove(victim)
        last = max([self.place(other) for other in (*self.queue.running.values(), *waiting)], default=(0, 0))
        self.places[victim.index] = (last[0], last[1] + 1)
        waiting.append(victim)


class OneBlockLookAhead(Rules):
    """Who generates must find room for a whole block beyond what it has, not for one token."""

    def tokens_ahead(self) -> int:
        return self.tokens_per_block


class TwoStepLookAhead(Rules):
    def tokens_ahead(self) -> int:
        return 2


class PausesTheFirst(Rules):
    def victim(self, started: list[int]) -> int:
        return started[0]


class SkipsWhoDoesNotFit(Rules):
    def stops_at_the_first(self) -> bool:
        return False


class ReservesNothing(Rules):
    """Blocks of the prompt are enough to start."""

    def remaining(self, request: Request) -> int:
        return max(0, self.pool.blocks_for(request.prompt) - self.held(request))


class ReservesTheWholeEachTime(Rules):
    """What a request holds already is counted again."""

    def remaining(self, request: Request) -> int:
        return self.pool.blocks_for(request.prompt + request.max_tokens)


class StaticBatchTakesMore(Rules):
    def starts_alone(self) -> bool:
        return False


class RoomChunkByChunk(Rules):
    def room_at_first(self, request: Request, tokens: int) -> int:
        return tokens

    def whole(self, request: Request) -> int:
        return request.known

    def is_context(self, request: Request) -> bool:
        return request.generated == 0

    def held(self, request: Request) -> int:
        return self.pool.blocks_for(request.computed)


class ChunksOfAnyLength(Rules):
    def floored(self, tokens: int) -> int:
        return tokens


class FirstComeTakesAll(Rules):
    def equal(self, cut: Requests, capacity: int) -> dict[Request, int]:
        return self.first_come(cut, capacity)


class LastChunksWhereTheyStand(Rules):
    def ordered(self, chunks: list[tuple[Request, int]]) -> list[tuple[Request, int]]:
        return chunks


class NoCap(Rules):
    def most(self) -> int:
        return 1 << 60


WRONG: dict[type[Rules], tuple[str, str]] = {
    PausedToTheTail: ("n2_max_utilization", "active_not_scheduled"),    # and, a step later, the order of contexts
    OneBlockLookAhead: ("n2_max_utilization", "fitting"),
    TwoStepLookAhead: ("n2_max_utilization", "fitting"),
    PausesTheFirst: ("n2_max_utilization", "paused"),
    ReservesNothing: ("n1_no_evict", "fitting"),
    ReservesTheWholeEachTime: ("n1_no_evict", "fitting"),
    StaticBatchTakesMore: ("n3_static_batch", "fitting"),
    RoomChunkByChunk: ("n4_chunk_fcfs", "blocks_used"),
    ChunksOfAnyLength: ("n4_chunk_fcfs", "context"),
    FirstComeTakesAll: ("n5_chunk_equal", "context"),
    LastChunksWhereTheyStand: ("n4_chunk_fcfs", "context"),
    NoCap: ("n6_no_chunk_token_cap", "fitting"),
}
"""Each wrong rule, a trace that catches it, and a field of the first step that differs."""


def replayed_by(kind: type[TensorRtLlm], recording: Recording) -> Outcome:
    return compare(recording, partial(tensorrt_llm_case, policy=kind), "exact")


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_rules_taken_apart_are_the_same(name: str) -> None:
    assert replayed_by(Rules, RECORDINGS[name]).difference is None


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[Rules]) -> None:
    name, field_name = WRONG[wrong]
    difference = replayed_by(wrong, RECORDINGS[name]).difference
    assert difference is not None
    assert field_name in difference.fields


def test_no_trace_tells_whether_the_first_that_does_not_fit_stops_the_rest() -> None:
    """They leave this rule open; the sources do not, and a small world does: whoever comes later stays behind."""
    assert all(replayed_by(SkipsWhoDoesNotFit, recording).difference is None for recording in RECORDINGS.values())
    rows = [(0, 8, 8, 8), (1, 16, 2, 8), (1, 2, 2, 2)]
    right, wrong = (play(rows, kind(tokens_per_block=4), capacity=32, exact=True)
                    for kind in (Rules, SkipsWhoDoesNotFit))
    assert (right.left, wrong.left) == ([0, 1, 2], [2, 0, 1])


# What is read

def written(folder: Path, options: str, request: str) -> Recording:
    (folder / "made.opts.json").write_text(options)
    (folder / "made.requests.jsonl").write_text(request)
    (folder / "made.trace.jsonl").write_text('{"step": 0}')
    [recording] = recordings(folder)
    return recording


GOOD = '{"id": "a", "arrival": 0, "prompt_len": 4, "max_tokens": 3, "output_len": 2}'


@pytest.mark.parametrize(("options", "request_line", "message"), [
    ("{}", GOOD, "num_blocks must be a whole number of at least 1, and is missing"),
    ('{"num_blocks": 0}', GOOD, "num_blocks must be a whole number of at least 1, not 0"),
    ('{"num_blocks": 9, "blocks": 3}', GOOD, "unknown option in "),
    ('{"num_blocks": 9, "policy": "NO_EVICT"}', GOOD, "capacity_scheduler_policy must be one of GUARANTEED_NO_EVICT, "),
    ('{"num_blocks": 9, "chunking": "FCFS"}', GOOD, "context_chunking_policy must be one of FIRST_COME_FIRST_SERVED, "),
    ('{"num_blocks": 9}', GOOD.replace('"a"', "7"), "id must be a word, not 7"),
    ('{"num_blocks": 9}', GOOD + "\n" + GOOD, "id 'a' is also in line 1"),
    ('{"num_blocks": 9}', GOOD.replace("2}", "4}"), "output_len (4) must be at most max_tokens (3)"),
    ('{"num_blocks": 9}', GOOD.replace("arrival", "arrive"), "unknown field in "),
])
def test_a_wrong_file_is_refused_in_one_line(options: str, request_line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        tensorrt_llm_case(written(tmp_path, options, request_line))
    assert "\n" not in str(caught.value)


def test_the_engine_stalls_on_what_never_fits(tmp_path: Path) -> None:
    """Nothing stands before the policy in a replay: a request that is too large keeps the others out for ever."""
    large = GOOD.replace('"max_tokens": 3', '"max_tokens": 99')
    small = GOOD.replace('"a"', '"b"')
    recording = written(tmp_path, '{"num_blocks": 2, "tokens_per_block": 16}', large + "\n" + small)
    case = tensorrt_llm_case(recording)
    world = play([(0, 4, 2, 99), (0, 4, 2, 3)], case.policy, memory=case.memory, fails=True)
    assert (world.ticks, len(world.replica.queue)) == ([], 2)


def test_a_place_in_the_queue_is_that_of_the_arrival() -> None:
    policy, queue = TensorRtLlm(), Queue(None, TensorRtLlm().urgency())    # type: ignore[arg-type]
    first, second, third = (Request(index, at, 4, 4) for index, at in ((0, 3), (1, 3), (2, 9)))
    for request in (third, second, first):
        queue.wait(request)
    assert list(queue.waiting) == sorted([third, first, second], key=policy.place) == [first, second, third]
