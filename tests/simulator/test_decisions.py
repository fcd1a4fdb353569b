"""The vllm policy against decisions recorded from the engine itself, step by step, and wrong rules that they catch.

The recordings stand in tests/golden/vllm. What one consists of is said in `simulator.conformance`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from vllm_rules import Block, Blocks, Rules
from worlds import play

from simulator.conformance import MODES, Mode, Outcome, Recording, compare, recordings
from simulator.conformance.vllm import vllm_case
from simulator.deployment import Deployment
from simulator.memory import UNLIMITED, Memory
from simulator.policies import Vllm
from simulator.request import Request
from simulator.step import Queue, Step

GOLDEN = Path(__file__).parents[1] / "golden" / "vllm"
RECORDINGS = {recording.name: recording for recording in recordings(GOLDEN)}
STALLS = ("09a_giant_prompt", "09b_giant_output")
LARGEST = "20_realistic_2000"


def footer_of(recording: Recording) -> dict[str, Any]:
    """What the engine's recorder counted."""
    trace = recording.trace()
    while trace.step():
        pass
    assert trace.footer is not None
    return trace.footer


def test_all_recordings_are_here() -> None:
    footers = {name: footer_of(recording) for name, recording in RECORDINGS.items()}
    assert len(footers) == 21
    assert sum(footer["steps"] for footer in footers.values()) == 22_192
    assert sum(footer["preemptions"] for footer in footers.values()) == 914
    assert [name for name, footer in footers.items() if footer["end"] != "done"] == [*STALLS]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_field_of_every_step_is_the_engines(name: str, mode: Mode) -> None:
    outcome = compare(RECORDINGS[name], vllm_case, mode)
    assert outcome == Outcome(mode, footer_of(RECORDINGS[name])["steps"], (), None)


def plain(recording: Recording) -> bool:
    """Whether a tiny world can play it: it knows neither prefixes nor priorities, and everybody must leave."""
    options = recording.options
    return (options.get("policy", "fcfs") == "fcfs" and not options.get("enable_prefix_caching")
            and recording.name not in STALLS)


PLAIN = [name for name, recording in RECORDINGS.items() if plain(recording)]


@pytest.mark.parametrize("name", PLAIN)
def test_a_replayed_recording_keeps_every_invariant(name: str) -> None:
    case = vllm_case(RECORDINGS[name])
    rows = [(request.arrival, request.prompt, request.max_tokens) for request in case.requests]
    play(rows, case.policy, memory=case.memory, cost=case.cost, exact=True)


def test_fast_mode_asks_the_policy_far_less_often() -> None:
    case = vllm_case(RECORDINGS[LARGEST])
    rows = [(request.arrival, request.prompt, request.max_tokens) for request in case.requests]
    world = play(rows, case.policy, memory=case.memory, cost=case.cost, keep=False, verify=False)
    assert len(world.record.ends) == 8985
    assert world.plans < 0.5 * len(world.record.ends)


class EarliestVictim(Rules):
    def victim(self, queue: Queue) -> Request:
        return next(iter(queue.running.values()))


class AdmissionAfterAPreemption(Rules):
    def admits(self, step: Step) -> bool:
        return True


class BackOfTheQueue(Rules):
    def requeue(self, queue: Queue) -> None:
        queue.waiting.rotate(-1)


class KvForTheSampledToken(Rules):
    """A token gets room in the step that samples it, not in the one that computes it."""

    class blocks(Blocks):
        def blocks_for(self, tokens: int) -> int:
            return super().blocks_for(tokens + 1)


class NoWholePromptCheck(Rules):
    def resolve(self, deployment: Deployment) -> Self:
        return replace(super().resolve(deployment), scheduler_reserve_full_isl=False)


class HitCoversTheWholePrompt(Rules):
    """The last block of a prompt is found, too, and only its last token is computed again."""

    class blocks(Blocks):
        def most_hits(self, request: Request) -> int:
            return request.known // self.block_size


class UnhashedBlocksAppended(Rules):
    class blocks(Blocks):
        def put_back(self, idle: list[Block]) -> None:
            self.line += idle


class FreesHeadFirst(Rules):
    class blocks(Blocks):
        def in_order_of_release(self, table: list[Block]) -> Iterable[Block]:
            return table


class ThresholdWhenAlone(Rules):
    def longest(self, queue: Queue) -> int:
        return self.long_prefill_token_threshold or UNLIMITED


class NullBlockUsable(Rules):
    null_blocks = 0


class EvictableHitsNotCounted(Rules):
    """Who finds blocks that nobody holds is let in as if they were not taken from the free ones: the pool overdraws."""

    class blocks(Blocks):
        def evictable_among(self, hits: list[Block]) -> int:
            return 0

        def grow(self, request: Request, tokens: int) -> bool:
            if request not in self.tables:
                hits = self.hits(request)
                need = self.blocks_for(self.cached(request) + tokens) - len(hits)
                short = need + super().evictable_among(hits) - len(self.line)
                self.line += [Block() for _ in range(short)]
            return super().grow(request, tokens)


class BudgetNotReturnedForAPriorityVictim(Rules):
    def returned(self, tokens: int) -> int:
        return 0


class PriorityTiesWithoutTheId(Rules):
    def urgency(self) -> Callable[[Request], Any] | None:
        return (lambda request: (request.priority, request.arrival)) if self.by_priority else None


class NoWatermark(Rules):
    def spare(self, memory: Memory) -> int:
        return 0


class BudgetFromTheOldest(Rules):
    """The oldest chunk, not the youngest, gives up a token where the budget is used up."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = super().plan(queue, memory, now)
        long = [at for at, (_, tokens) in enumerate(step.chunks) if tokens > 1] if step else []
        if step and long and sum(self.granted.values()) == self.max_num_batched_tokens:
            request, tokens = step.chunks[long[0]]
            step.chunks[long[0]] = (request, tokens - 1)
        return step


class SkipsTheBlockedHead(Rules):
    """From the next step on, another one is looked at first."""

    def refused(self, queue: Queue) -> None:
        queue.waiting.rotate(-1)


WRONG: dict[type[Rules], tuple[str, str]] = {
    EarliestVictim: ("03_kv_preempt", "sched"),
    AdmissionAfterAPreemption: ("16_no_reserve_isl", "sched"),
    BackOfTheQueue: ("03_kv_preempt", "waiting"),
    KvForTheSampledToken: ("11_output_len_1", "used_sched"),
    NoWholePromptCheck: ("03_kv_preempt", "sched"),
    HitCoversTheWholePrompt: ("07_prefix_shared", "sched"),
    UnhashedBlocksAppended: ("13_prefix_preempt", "sched"),
    FreesHeadFirst: ("13_prefix_preempt", "sched"),
    ThresholdWhenAlone: ("12_long_prefill_threshold", "sched"),
    NullBlockUsable: ("03_kv_preempt", "usable_blocks"),
    EvictableHitsNotCounted: ("13_prefix_preempt", "sched"),
    BudgetNotReturnedForAPriorityVictim: ("17_priority_ties", "sched"),
    PriorityTiesWithoutTheId: ("17_priority_ties", "waiting"),
    NoWatermark: ("15_watermark", "sched"),
    BudgetFromTheOldest: ("04_chunked_long", "sched"),
    SkipsTheBlockedHead: ("03_kv_preempt", "waiting"),
}
"""Each wrong rule, a recording that catches it, and a field of the first step that differs."""


def replayed_by(kind: type[Vllm], recording: Recording) -> Outcome:
    return compare(recording, partial(vllm_case, policy=kind), "exact")


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_rules_taken_apart_are_still_the_engines(name: str) -> None:
    assert replayed_by(Rules, RECORDINGS[name]).difference is None


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[Rules]) -> None:
    name, field = WRONG[wrong]
    difference = replayed_by(wrong, RECORDINGS[name]).difference
    assert difference is not None
    assert field in difference.fields


def test_a_usable_null_block_is_caught_by_the_decisions_alone(tmp_path: Path) -> None:
    """Even where nobody counted the free blocks."""
    name = "03_kv_preempt"
    for path in RECORDINGS[name].paths.values():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    trace = tmp_path / f"{name}.trace.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(trace.read_bytes()).splitlines()]
    kept = [{field: value for field, value in line.items() if field != "free"} for line in lines[1:]]
    trace.write_bytes(gzip.compress("\n".join(map(json.dumps, kept)).encode(), 1))
    [recording] = recordings(tmp_path)
    assert replayed_by(Rules, recording).difference is None
    difference = replayed_by(NullBlockUsable, recording).difference
    assert difference is not None
    assert "sched" in difference.fields
