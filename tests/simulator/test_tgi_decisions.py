"""The tgi policy against decisions recorded from the engine, forward by forward, and wrong rules that they catch.

The recordings stand in tests/golden/tgi. What one consists of is said in `simulator.conformance.tgi`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from worlds import play

from simulator.conformance import MODES, Mode, Outcome, Recording, compare, recordings
from simulator.conformance.recording import Line
from simulator.conformance.tgi import tgi_case
from simulator.deployment import Deployment
from simulator.memory import Memory
from simulator.memory.base import Lengths
from simulator.memory.reserved import Reserved
from simulator.policies import Tgi
from simulator.policies.tgi import batching, chunked
from simulator.policies.tgi.batching import Batch, Bounds
from simulator.policies.tgi.chunked import Chunked, Chunks, chunk_plan
from simulator.policies.tgi.whole_prompts import WholePrompts
from simulator.request import Request
from simulator.step import Queue, Step

GOLDEN = Path(__file__).parents[1] / "golden" / "tgi"
RECORDINGS = {recording.name: recording for recording in recordings(GOLDEN)}
T1, T2, T3, T4, T6, T8, T9 = RECORDINGS
STEPS = dict(zip(RECORDINGS, (16, 15, 12, 34, 11, 5, 6), strict=True))


def lines_of(recording: Recording) -> list[Line]:
    trace, found = recording.trace(), []
    while (here := trace.step()) is not None:
        found.append(here[1])
    return found


def test_all_recordings_are_here() -> None:
    assert {name: len(lines_of(recording)) for name, recording in RECORDINGS.items()} == STEPS
    assert [name.split("_")[0] for name in RECORDINGS] == ["t1", "t2", "t3", "t4", "t6", "t8", "t9"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_field_of_every_step_is_the_engines(name: str, mode: Mode) -> None:
    assert compare(RECORDINGS[name], tgi_case, mode) == Outcome(mode, STEPS[name], (), None)


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_step_has_every_field(name: str) -> None:
    assert all(len(line) == 9 for line in lines_of(RECORDINGS[name]))


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name != T8])
def test_a_replayed_recording_keeps_every_invariant(name: str) -> None:
    case = tgi_case(RECORDINGS[name])
    rows = [(request.arrival, request.prompt, output, request.max_tokens)
            for request, output in zip(case.requests, case.outputs, strict=True)]
    play(rows, case.policy, memory=case.memory, cost=case.cost, exact=True)


def test_chunking_ignores_ratio_waiting_tokens_and_batch_size() -> None:
    """The same decisions, whatever the knobs say that do not count there."""
    for name in (T3, T4, T8, T9):
        engine = partial(tgi_case, waiting_served_ratio=9.0, max_waiting_tokens=1, max_batch_size=1)
        assert compare(RECORDINGS[name], engine, "fast").difference is None


def test_without_the_quirk_nobody_hits_a_prompt_that_was_never_computed() -> None:
    difference = compare(RECORDINGS[T8], partial(tgi_case, quirk_phantom_prefix=False), "exact").difference
    assert difference is not None
    assert difference.number == 1
    assert difference.simulated is not None
    assert difference.simulated["prefill"] == lines_of(RECORDINGS[T9])[1]["prefill"]


# Wrong rules. Each is caught by the recording that stands beside it.

@dataclass
class RatioWithChunking(Tgi):
    """Too few waiting are not let in, though prompts come in chunks."""

    class Loop(Chunked):
        def newcomers(self, queue: Queue, memory: Memory) -> Batch:
            if len(queue.waiting) < int(len(queue.running) * self.knobs.waiting_served_ratio):
                return Batch()
            return super().newcomers(queue, memory)

    def loop(self) -> Chunked:
        return self.Loop(self)


@dataclass
class EvictsTheRunning(Tgi):
    """The latest of those running makes room for whoever does not fit, and goes to the back of the queue."""

    class Loop(Chunked):
        def plan(self, queue: Queue, memory: Memory) -> Step | None:
            victims = []
            if queue.waiting and queue.running and memory.demand(queue.waiting[0], 1) > memory.free:
                victims.append(queue.preempt(queue.youngest, memory))
                queue.waiting.rotate(-1)
            step = super().plan(queue, memory)
            if step:
                step.preempted = victims
            return step

    def loop(self) -> Chunked:
        return self.Loop(self)


@dataclass
class ReservesTheLastToken(Tgi):
    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        class Longer(Reserved):
            def demand(self, request: Request, tokens: int) -> int:
                return super().demand(request, tokens) + 1

            def grow(self, request: Request, tokens: int) -> bool:
                request.max_tokens += request.index not in self._own
                return super().grow(request, tokens)

        return Longer(self.total_budget - 1)


@dataclass
class TakesWhoeverFits(Tgi):
    """A later one that fits is let in before a head that does not."""

    class Loop(Chunked):
        def newcomers(self, queue: Queue, memory: Memory) -> Batch:
            fitting = [each for each in queue.waiting if memory.demand(each, 1) <= memory.free]
            for request in reversed(fitting):
                queue.waiting.remove(request)
                queue.waiting.appendleft(request)
            return super().newcomers(queue, memory)

    def loop(self) -> Chunked:
        return self.Loop(self)


@dataclass
class LeavesDecodesOutOfTheBudget(Tgi):
    class Loop(Chunked):
        def newcomers(self, queue: Queue, memory: Memory) -> Batch:
            return batching.next_batch(queue, memory, Bounds(self.knobs.prefill_budget, 1, chunking=True))

    def loop(self) -> Chunked:
        return self.Loop(self)


@dataclass
class AdmitsAtEveryForward(Tgi):
    """No decode need follow a prefill."""

    class Loop(WholePrompts):
        def plan(self, queue: Queue, memory: Memory) -> Step | None:
            self._must_decode = False
            return super().plan(queue, memory)

    def loop(self) -> WholePrompts:
        return self.Loop(self)


@dataclass
class DecodesBesideAPrefill(Tgi):
    class Loop(WholePrompts):
        def plan(self, queue: Queue, memory: Memory) -> Step | None:
            step = super().plan(queue, memory)
            return replace(step, decodes=True) if step else None

    def loop(self) -> WholePrompts:
        return self.Loop(self)


@dataclass
class RatioRoundedUp(Tgi):
    class Loop(WholePrompts):
        def least(self, queue: Queue) -> int:
            return ceil(len(queue.running) * self.knobs.waiting_served_ratio) if super().least(queue) else 0

    def loop(self) -> WholePrompts:
        return self.Loop(self)


@dataclass
class OneDecodeMorePatience(Tgi):
    class Loop(WholePrompts):
        def least(self, queue: Queue) -> int:
            self._since += 1
            try:
                return super().least(queue)
            finally:
                self._since -= 1

    def loop(self) -> WholePrompts:
        return self.Loop(self)


@dataclass
class PromptsAreNotPadded(Tgi):
    """The budget counts a prompt's own tokens, although the device pads."""

    class Loop(WholePrompts):
        def _prefill(self, queue: Queue, memory: Memory, least: int) -> Step:
            batch = batching.next_batch(queue, memory, Bounds(
                self.knobs.prefill_budget, self.knobs.total_budget, least, self.knobs.slots - len(queue.running)))
            return Step(batch.rows, decodes=not batch.rows)

    def loop(self) -> WholePrompts:
        return self.Loop(self)


@dataclass
class NoCapOnTheBatch(Tgi):
    @property
    def slots(self) -> int:
        return 1 << 60

    def loop(self) -> WholePrompts:
        return WholePrompts(self)


WRONG: dict[type[Tgi], tuple[str, str, dict[str, Any]]] = {
    RatioWithChunking: (T3, "admitted", {"waiting_served_ratio": 2.0}),
    EvictsTheRunning: (T4, "decode", {}),
    ReservesTheLastToken: (T4, "blocks_held", {}),
    TakesWhoeverFits: (T4, "admitted", {}),
    LeavesDecodesOutOfTheBudget: (T3, "prefill", {}),
    AdmitsAtEveryForward: (T1, "call", {}),
    DecodesBesideAPrefill: (T1, "mode", {}),
    RatioRoundedUp: (T1, "admitted", {}),
    OneDecodeMorePatience: (T2, "admitted", {}),
    PromptsAreNotPadded: (T6, "admitted", {}),
    NoCapOnTheBatch: (T6, "admitted", {}),
}
"""Each wrong rule, a recording that catches it, a field of the first step that differs, and knobs that are not the
recording's: chunking ignores the ratio, so T3 is the engine's with any, but at 0.3 its few requests do not show it."""


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[Tgi]) -> None:
    name, field, knobs = WRONG[wrong]
    assert compare(RECORDINGS[name], partial(tgi_case, **knobs), "exact").difference is None
    difference = compare(RECORDINGS[name], partial(tgi_case, policy=wrong, **knobs), "exact").difference
    assert difference is not None
    assert field in difference.fields


# What no recording tells. See test_tgi for worlds that do.

@dataclass
class LooksAtEveryForward(Tgi):
    """Chunks or not, every forward looks at the queue."""

    class Loop(Chunked):
        def plan(self, queue: Queue, memory: Memory) -> Step | None:
            self._must_not_look = False
            return super().plan(queue, memory)

    def loop(self) -> Chunked:
        return self.Loop(self)


def from_the_front(chunks: Chunks, rows: int, budget: int) -> Chunks:
    """The chunk plan, walked from the other end."""
    return chunk_plan(chunks[::-1], rows, budget)[::-1]


def test_no_recording_with_chunks_has_budget_left_when_the_queue_must_not_be_looked_at() -> None:
    chunking = [T3, T4, T8, T9]
    assert all(compare(RECORDINGS[name], partial(tgi_case, policy=LooksAtEveryForward), "exact").difference is None
               for name in chunking)


def test_no_recording_has_two_unfinished_prompts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So from which end the chunk plan walks stands on the engine's source alone."""
    monkeypatch.setattr(chunked, "chunk_plan", from_the_front)
    assert all(compare(RECORDINGS[name], tgi_case, "exact").difference is None for name in RECORDINGS)


# What cannot be read

GOOD: dict[str, Any] = {"id": "a", "arrival": 0, "prompt_len": 4, "max_tokens": 2}
OPTIONS: dict[str, Any] = {"max_batch_total_tokens": 50, "max_batch_prefill_tokens": 8}


@pytest.mark.parametrize(("options", "rows", "said"), [
    (OPTIONS | {"max_batch_totl_tokens": 1}, [GOOD], "did you mean 'max_batch_total_tokens'?"),
    ({"max_batch_prefill_tokens": 8}, [GOOD], "max_batch_total_tokens must be a whole number of at least 1"),
    (OPTIONS | {"waiting_served_ratio": -1}, [GOOD], "tgi: waiting_served_ratio must be at least 0, not -1"),
    (OPTIONS, [GOOD | {"output_len": 3}], "line 1: output_len (3) must be at most max_tokens (2)"),
    (OPTIONS, [GOOD | {"id": 7}], "line 1: id must be a word, not 7"),
    (OPTIONS, [GOOD, GOOD], "line 2: id 'a' is also in line 1"),
    (OPTIONS, [GOOD | {"prompt": 4}], "line 1: 'prompt': did you mean 'prompt_len'?"),
    (OPTIONS, [{"id": "a", "prompt_len": 4}], "max_tokens must be a whole number of at least 1, and is missing"),
])
def test_a_recording_that_cannot_be_is_refused_in_one_line(options: dict[str, Any], rows: list[dict[str, Any]],
                                                           said: str, tmp_path: Path) -> None:
    (tmp_path / "made.opts.json").write_text(json.dumps(options))
    (tmp_path / "made.requests.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "made.trace.jsonl").write_text("")
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        compare(recordings(tmp_path)[0], tgi_case, "fast")
    assert "\n" not in str(caught.value)
