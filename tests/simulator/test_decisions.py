"""The vllm policy against decisions recorded from the engine itself, step by step, and wrong rules that they catch.

A recording has one line a step: who computes how many tokens in which order, who is preempted, samples and finishes,
and the blocks held right after scheduling and after the step. The gate is not in play: the engine's own scheduler
was driven without it.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from invariants import check
from simpy import Environment
from worlds import SHARED, World, attach

from cost_models import CostModel, StepShape
from simulator.deployment import Deployment
from simulator.errors import PolicyError
from simulator.memory import Memory, Paged
from simulator.policies import Vllm
from simulator.request import Request
from simulator.step import Queue, Step

FOLDER = SHARED / "decisions" / "vllm"
DEFAULTS = {"max_num_seqs": 16, "max_num_batched_tokens": 2048, "block_size": 16, "num_gpu_blocks": 1000,
            "enable_chunked_prefill": True, "enable_prefix_caching": False, "long_prefill_token_threshold": 0,
            "policy": "fcfs", "max_model_len": 8192, "watermark": 0.0, "scheduler_reserve_full_isl": True,
            "clock": "step", "step_base_us": 0, "step_per_token_us": 0}
KNOBS = ("max_num_seqs", "max_num_batched_tokens", "block_size", "enable_chunked_prefill",
         "long_prefill_token_threshold", "scheduler_reserve_full_isl", "watermark", "max_model_len")
STALLS = {"09a_giant_prompt": None, "09b_giant_output": PolicyError}
"""Recordings that end in a stall, because the engine was driven past its own checks; and how the replica says so."""


@dataclass(frozen=True)
class Clock(CostModel):
    """The recordings' clock: a base and so much a token, in one unit of its own."""

    base: int = 1
    per_token: int = 0
    name: ClassVar[str] = "clock"
    origin: ClassVar[str] = "recorded"

    def time(self, shape: StepShape) -> int:
        return self.base + self.per_token * (shape.decodes + sum(new for new, _ in shape.chunks))


@dataclass(frozen=True)
class Recording:
    name: str
    options: dict[str, Any]
    requests: list[dict[str, Any]]
    steps: list[dict[str, Any]]

    @property
    def clock(self) -> Clock:
        if self.options["clock"] == "step":
            return Clock()
        return Clock(self.options["step_base_us"], self.options["step_per_token_us"])


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines if line.strip()]


@cache
def recording(name: str) -> Recording:
    options = DEFAULTS | json.loads((FOLDER / f"{name}.options.json").read_text())
    trace = _lines(FOLDER / f"{name}.trace.jsonl.gz")
    refused = set(trace[0]["header"]["rejected"])
    field = "arrival_us" if options["clock"] == "us" else "arrival_step"
    requests = [row for row in _lines(FOLDER / f"{name}.requests.jsonl.gz") if row["id"] not in refused]
    requests.sort(key=lambda row: row[field])
    # A step in which nothing runs takes time in the engine's loop and none here.
    return Recording(name, options, requests, [line for line in trace if line.get("sched")])


def in_scope() -> list[str]:
    if not FOLDER.is_dir():
        return []
    names = sorted(path.name.removesuffix(".options.json") for path in FOLDER.glob("*.options.json"))
    return [name for name in names if (options := DEFAULTS | json.loads((FOLDER / f"{name}.options.json").read_text()))
            and options["policy"] == "fcfs" and not options["enable_prefix_caching"]]


SCENARIOS = in_scope()
needs_recordings = pytest.mark.skipif(not SCENARIOS, reason="needs the recordings in ../shared, which are not here")


def replay(rec: Recording, *, exact: bool, kind: type[Vllm] = Vllm, null_block: int = 1,
           until: int | None = None) -> World:
    """Drive a policy of `kind` with a recording's requests; an error of the run is kept, not raised."""
    options = rec.options
    policy = kind(**{knob: options[knob] for knob in KNOBS}).resolve(Deployment(max_model_len=options["max_model_len"]))
    memory = Paged(options["num_gpu_blocks"] - null_block, options["block_size"])
    field = "arrival_us" if options["clock"] == "us" else "arrival_step"
    rows = []
    for row in rec.requests:
        output = max(1, min(row["output_tokens"], options["max_model_len"] - row["prompt_tokens"]))
        rows.append((row[field], row["prompt_tokens"], output, output))
    env = Environment(initial_time=0)
    world = World(rows, policy, memory, exact, rec.clock, 1 << 60, None, _Deaf())    # type: ignore[arg-type]
    attach(world, env, keep=exact)
    env.process(_send(env, world))
    try:
        env.run(until)
    except (PolicyError, KeyError, AssertionError, IndexError) as error:
        world.error = error
    return world


class _Deaf:
    def finished(self, request: Request) -> None: ...


def _send(env: Environment, world: World) -> Any:
    for index, (arrival, prompt, output, _) in enumerate(world.rows):
        if arrival > env.now:
            yield env.timeout(arrival - env.now)
        world.replica.submit(Request(index, arrival, prompt, output))


def first_difference(rec: Recording, world: World) -> str | None:
    """The first step and field in which a world departs from a recording."""
    name = [row["id"] for row in rec.requests]
    evicted: set[int] = set()    # were preempted in an earlier step

    def names(who: Any) -> list[str]:
        return [name[index] for index in who]

    for number, (tick, line) in enumerate(zip(world.ticks, rec.steps, strict=False)):
        found = {
            "sched": [[name[who], tokens, before] for who, tokens, before in tick.computing],
            "kind": ["running" if who not in tick.admitted else "resumed" if who in evicted else "new"
                     for who, _, _ in tick.computing],
            "tokens": sum(tokens for _, tokens, _ in tick.computing),
            "preempted": names(tick.preempted), "sampled": names(tick.sampled), "finished": names(tick.left),
            "used_sched": tick.used, "used": tick.used_after, "free": world.memory.capacity - tick.used_after,
            "running": names(tick.running_after)[:len(line["running"])], "n_running": len(tick.running_after),
            "waiting": names(tick.waiting)[:len(line["waiting"])], "n_waiting": len(tick.waiting),
        }
        wanted = line | {"sched": [[who, tokens, before] for who, _, tokens, before in line["sched"]],
                         "kind": [kind for _, kind, _, _ in line["sched"]]}
        for field, value in found.items():
            if value != wanted[field]:
                return f"{rec.name}, step {number}, {field}: recorded {wanted[field]}, simulated {value}"
        evicted.update(tick.preempted)
    if len(world.ticks) != len(rec.steps):
        return f"{rec.name}: {len(rec.steps)} steps recorded, {len(world.ticks)} simulated"
    return None


@needs_recordings
def test_all_recordings_of_this_scope_are_found() -> None:
    assert len(SCENARIOS) >= 13
    assert set(STALLS) <= set(SCENARIOS)


@needs_recordings
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_decision_of_every_step_is_the_engines(name: str) -> None:
    rec = recording(name)
    world = replay(rec, exact=True)
    assert first_difference(rec, world) is None
    if name not in STALLS:
        assert world.error is None
        check(world)
    elif STALLS[name]:
        assert isinstance(world.error, STALLS[name])
    else:
        assert world.replica.queue.waiting, "the head of the queue can never fit, so it waits for ever"


@needs_recordings
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in STALLS])
def test_fast_mode_emits_every_token_in_the_recorded_step(name: str) -> None:
    rec = recording(name)
    world = replay(rec, exact=False)
    tokens: dict[str, list[int]] = {row["id"]: [] for row in rec.requests}
    preempted: dict[str, int] = dict.fromkeys(tokens, 0)
    for number, line in enumerate(rec.steps):
        for who in line["sampled"]:
            tokens[who].append(number)
        for who in line["preempted"]:
            preempted[who] += 1
    assert world.error is None
    assert len(world.record.ends) == len(rec.steps)
    for index, row in enumerate(rec.requests):
        assert world.tokens(index) == tokens[row["id"]]
        assert len(world.stays(index)) - 1 == preempted[row["id"]]
    assert world.record.used.tolist() == [line["used_sched"] for line in rec.steps]


@needs_recordings
def test_fast_mode_asks_the_policy_far_less_often() -> None:
    rec = recording("20_realistic_2000")
    world = replay(rec, exact=False)
    assert len(world.record.plans) < 0.5 * len(world.record.ends)


class Rules(Vllm):
    """The vllm policy with each rule in a method, so that one can be wrong at a time."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step()
        longest = self.longest(queue)
        budget = self._serve_running(queue, step, longest)
        while not memory.take(queue.decoding, step.chunks):
            step.drop(queue.preempt(self.victim(queue), memory))
            self.requeue(queue)
        if self.admits(step):
            self._admit(queue, memory, step, budget, longest)
        return step if queue.running or step.preempted else None

    def longest(self, queue: Queue) -> int:
        alone = len(queue) == 1
        return self.long_prefill_token_threshold if self.long_prefill_token_threshold and not alone else 1 << 60

    def victim(self, queue: Queue) -> Request:
        return queue.youngest

    def requeue(self, queue: Queue) -> None: ...

    def admits(self, step: Step) -> bool:
        return not step.preempted


class EarliestVictim(Rules):
    def victim(self, queue: Queue) -> Request:
        return next(iter(queue.running.values()))


class AdmissionAfterAPreemption(Rules):
    def admits(self, step: Step) -> bool:
        return True


class BackOfTheQueue(Rules):
    def requeue(self, queue: Queue) -> None:
        queue.waiting.rotate(-1)


class ThresholdForALoneRequest(Rules):
    def longest(self, queue: Queue) -> int:
        return self.long_prefill_token_threshold or 1 << 60


class NoWholePromptCheck(Rules):
    def resolve(self, deployment: Deployment) -> Self:
        return replace(super().resolve(deployment), scheduler_reserve_full_isl=False)


class NoWatermark(Rules):
    def _fits(self, tokens: int, memory: Memory, others_run: bool) -> bool:
        return super()._fits(tokens, memory, False)


class BudgetFromTheOldest(Rules):
    """Cuts the oldest instead of the youngest when the budget is short."""

    def _serve_running(self, queue: Queue, step: Step, longest: int) -> int:
        left = super()._serve_running(queue, step, longest)
        if step.trimmed and step.chunks:
            request, tokens = step.chunks[0]
            if tokens > 1:
                step.chunks[0] = (request, tokens - 1)
        return left


class SkipsTheBlockedHead(Rules):
    """Looks behind a head that does not fit."""

    def _admit(self, queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> None:
        super()._admit(queue, memory, step, budget, longest)
        if step.blocked == "memory" and len(queue.waiting) > 1 and budget > sum(n for _, n in step.chunks):
            queue.waiting.rotate(-1)


class RoomForTheSampledToken(Rules):
    """Asks for the KV of the token that a step samples, one step too early."""

    def _fits(self, tokens: int, memory: Memory, others_run: bool) -> bool:
        return super()._fits(tokens + 1, memory, others_run)


WRONG = {
    EarliestVictim: "03_kv_preempt", AdmissionAfterAPreemption: "16_no_reserve_isl", BackOfTheQueue: "03_kv_preempt",
    ThresholdForALoneRequest: "12_long_prefill_threshold", NoWholePromptCheck: "03_kv_preempt",
    NoWatermark: "15_watermark", BudgetFromTheOldest: "04_chunked_long",
    SkipsTheBlockedHead: "03_kv_preempt", RoomForTheSampledToken: "03_kv_preempt",
}


@needs_recordings
@pytest.mark.parametrize("name", sorted({*WRONG.values()}) if SCENARIOS else [])
def test_the_rules_taken_apart_are_still_the_engines(name: str) -> None:
    assert first_difference(recording(name), replay(recording(name), exact=True, kind=Rules)) is None


@needs_recordings
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[Rules]) -> None:
    rec = recording(WRONG[wrong])
    world = replay(rec, exact=True, kind=wrong, until=20 * len(rec.steps))
    assert first_difference(rec, world) is not None


@needs_recordings
def test_a_usable_null_block_is_caught() -> None:
    rec = recording("03_kv_preempt")
    assert first_difference(rec, replay(rec, exact=True)) is None
    world = replay(rec, exact=True, null_block=0)
    difference = first_difference(rec, world)
    assert difference is not None
    assert "free" in difference
    # The count of free blocks aside, the decisions themselves depart too.
    assert any([[who, tokens] for who, tokens, _ in tick.computing] !=
               [[next(i for i, row in enumerate(rec.requests) if row["id"] == who), tokens]
                for who, _, tokens, _ in line["sched"]] for tick, line in zip(world.ticks, rec.steps, strict=False))
