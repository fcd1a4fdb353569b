"""The vllm policy over prefix-cached memory against an independent model of the engine, block by block, at random.

The model takes every recorded decision itself. Scenarios mix bursts, tight pools, shared and nested prefixes,
priorities and their ties, chunking on and off, thresholds, watermarks, outputs of one token; some never end.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from live import blocks, ours
from live.scenarios import Line, Scenario, draw, first_difference, read, recorded

from simulator.errors import PolicyError
from simulator.memory import Memory
from simulator.memory.line import Strip
from simulator.memory.prefix import Found, PrefixCached
from simulator.policies import Vllm
from simulator.request import Request
from simulator.step import Queue, Step

LONG = {"20_realistic_2000"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
                                  for name in recorded()])
def test_the_model_takes_every_recorded_decision(name: str) -> None:
    scenario, steps = read(name)
    assert first_difference(blocks.run(scenario), steps) is None


def differences(scenario: Scenario, reference: list[Line]) -> list[str]:
    """Where our two modes depart from the model: decisions, blocks used, evictable and shared."""
    played = (ours.run(scenario, exact=exact) for exact in (True, False))
    found = (first_difference(lines, reference[:len(lines)] if never_ends(scenario, reference) else reference)
             for lines in played)
    return [difference for difference in found if difference]


def never_ends(scenario: Scenario, reference: list[Line]) -> bool:
    """Whether requests push each other out for ever, as they do in the engine; our watchdog ends that earlier."""
    return len(reference) == scenario.options["max_steps"]


def all_is_well_at_the_end(scenario: Scenario, reference: list[Line]) -> bool:
    """Whether all have left and all blocks are free, unless it never ends."""
    done = sum(len(line["finished"]) for line in reference) == len(scenario.requests)
    return (done and reference[-1]["used"] == 0) or never_ends(scenario, reference)


@given(random=st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_every_decision_and_every_count_of_blocks_is_the_models(random: Random) -> None:
    scenario = draw(random, most=12)
    reference = blocks.run(scenario)
    event(f"preempts: {any(line['preempted'] for line in reference)}")
    event(f"shares: {any(line['shared'] for line in reference)}")
    assert all_is_well_at_the_end(scenario, reference)
    assert differences(scenario, reference) == []


def agree(seeds: range) -> dict[str, int]:
    """Play a scenario for each seed; returns what it came to."""
    counts = dict.fromkeys(("steps", "preempted", "resumed hits", "hits", "shared", "evictable", "endless"), 0)
    for seed in seeds:
        scenario = draw(Random(seed))
        reference = blocks.run(scenario)
        assert all_is_well_at_the_end(scenario, reference), f"seed {seed}"
        assert differences(scenario, reference) == [], f"seed {seed}"
        counts["steps"] += len(reference)
        counts["endless"] += never_ends(scenario, reference)
        for line in reference:
            kinds = [kind for _, kind, _, before in line["sched"] if kind != "running" and before]
            counts["hits"] += len(kinds)
            counts["resumed hits"] += kinds.count("resumed")
            counts["preempted"] += len(line["preempted"])
            for field in ("shared", "evictable"):
                counts[field] += line[field] > 0
    return counts


def test_larger_scenarios_by_seed_agree_and_are_not_idle() -> None:
    counts = agree(range(150))
    least = {"steps": 10_000, "preempted": 300, "resumed hits": 100, "hits": 800, "shared": 1000, "evictable": 5000}
    assert all(counts[what] >= number for what, number in least.items()), counts


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("start", range(1000, 5000, 500))
def test_thousands_of_scenarios_agree(start: int) -> None:
    assert agree(range(start, start + 500))["preempted"] > 1000


class WholePromptsHit(PrefixCached):
    """The hit may cover the last token, too."""

    def _find(self, request: Request) -> Found:
        request.prompt += 1
        found = super()._find(request)
        request.prompt -= 1
        return found


class LatestCopyFound(PrefixCached):
    """Of several copies, the one that was published last is found."""

    def _first_copy(self, node: object, at: int) -> tuple[Strip | None, int]:
        self._strips.get(node, []).reverse()
        found = super()._first_copy(node, at)
        self._strips.get(node, []).reverse()
        return found


class PublishedWhenComputed(PrefixCached):
    """Blocks can be found only after the step that computes them."""

    def _publish(self, request: Request, tokens: int) -> None:
        super()._publish(request, request.computed)


class ReusedFirst(PrefixCached):
    """Blocks that nobody can find again are taken next, although the engine does not know that nobody can."""

    def _let_go(self, strip: Strip, request: Request, returns: bool) -> None:
        super()._let_go(strip, request, returns)
        if strip.node is request and not strip.holders and not returns:
            self._line._right -= len(strip)
            self._line.free -= len(strip)
            self._line.put_back(len(strip), 0)


class EvictableHitsNotCounted(PrefixCached):
    """Who is admitted takes evictable blocks that it hits for nothing."""

    def demand(self, request: Request, tokens: int) -> int:
        return self.blocks_for(tokens) - self.cached(request) // self.block_size


class VictimsFirst(Vllm):
    """First come, first served, it preempts before anybody takes memory: the right victims, the wrong blocks."""

    steady = True

    def _serve_running(self, queue: Queue, memory: Memory, step: Step, longest: int) -> int:
        if self.scheduling_policy == "priority":
            return super()._serve_running(queue, memory, step, longest)
        step.chunks = [(request, min(request.lacking, longest)) for request in queue.catching_up.values()]
        budget = self.max_num_batched_tokens - queue.decoding.size - sum(tokens for _, tokens in step.chunks)
        if budget < 0:
            queue.trim(step, -budget)
        while not memory.take(queue.decoding, step.chunks):
            step.drop(queue.preempt(queue.youngest, memory))
        return max(0, budget)


class NobodyJumpsTheQueue(Vllm):
    """Takes a blocked head for the head of whatever is to come: wrong by priority, and in fast mode only."""

    steady = True

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = super().plan(queue, memory, now)
        if step and step.blocked:
            step.blocked = "cap"    # the only obstacle that no urgency overcomes
        return step


@pytest.mark.parametrize("wrong", [WholePromptsHit, LatestCopyFound, PublishedWhenComputed, ReusedFirst,
                                   EvictableHitsNotCounted, VictimsFirst, NobodyJumpsTheQueue],
                         ids=lambda wrong: wrong.__name__)
def test_a_wrong_rule_is_caught(wrong: type[PrefixCached] | type[Vllm]) -> None:
    options = {"memory": wrong} if issubclass(wrong, Memory) else {"kind": wrong}
    assert any(departs(draw(Random(seed)), **options) for seed in range(300))


def departs(scenario: Scenario, **wrong: type) -> bool:
    """Whether a wrong rule takes another decision somewhere, or finds itself at odds."""
    if not scenario.options["enable_prefix_caching"] and "memory" in wrong:
        return False
    reference = blocks.run(scenario)
    try:
        return any(first_difference(ours.run(scenario, exact=exact, **wrong), reference) for exact in (True, False))
    except (AssertionError, PolicyError):
        return True
