"""Fast equals exact, to the last nanosecond: policies of one's own, arrivals that cut a stretch, and planted errors.

Arrivals are scattered, in bursts, or on the lattice of the step ends. The bundled policies play in test_any_world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from worlds import STEP, differences, play, play_both

from simulator.memory import Memory, Paged
from simulator.policies import Policy, StaticBatching, Vllm
from simulator.step import Queue, Step

LONGEST = 72


@st.composite
def rows(draw: st.DrawFn, most: int = 12) -> list[tuple[int, int, int, int]]:
    """Rows sorted by arrival: scattered, on the lattice of step ends, or in bursts."""
    count = draw(st.sampled_from([1, 2, 3, 5, 8, most, most]))
    gap = draw(st.sampled_from([st.just(0), st.integers(0, 60), st.sampled_from([0, STEP, 2 * STEP, 7 * STEP]),
                                st.sampled_from([0, 0, 0, 155]), st.sampled_from([0, 5_000_000, 20_000_001])]))
    arrivals, at = [], draw(st.sampled_from([0, 0, 3]))
    for _ in range(count):
        arrivals.append(at)
        at += draw(gap)
    longest = draw(st.sampled_from([1, 6, 40, 40]))
    prompts = draw(st.sampled_from([st.integers(1, 40), st.integers(20, 40)]))
    lengths = st.tuples(prompts, st.integers(1, longest), st.integers(0, 9))
    drawn = draw(st.lists(lengths, min_size=count, max_size=count))
    # Nobody declares more than the model has room for, nor less than the own output.
    return [(at, prompt, output, max(output, min(output + spare, LONGEST - prompt)))
            for at, (prompt, output, spare) in zip(arrivals, drawn, strict=True)]


def blocks_needed(world: list[tuple[int, int, int, int]], size: int) -> int:
    return max(-(-(prompt + output - 1) // size) for _, prompt, output, _ in world)


@dataclass
class Moody(Vllm):
    """vllm with a token budget that changes from step to step, so that decodes lose their token and catch up later."""

    steady: ClassVar[bool] = False
    moods: tuple[int, ...] = (1, 7, 3, 30, 2)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self.max_num_batched_tokens = self.moods[now // STEP % len(self.moods)]
        return super().plan(queue, memory, now)


@given(world=rows(), moods=st.lists(st.integers(1, 12), min_size=1, max_size=5), size=st.sampled_from([1, 3, 4]),
       spare=st.sampled_from([0, 0, 1, 5, 99]))
@settings(max_examples=200)
def test_vllm_with_a_budget_that_changes(world: list[Any], moods: list[int], size: int, spare: int) -> None:
    """Trimmed decodes leave the set and rejoin it, under preemption too: the aggregate must follow."""
    capacity = (blocks_needed(world, size) + spare + 1) * size
    found = play_both(world, Moody(moods=tuple(moods), block_size=size), capacity=capacity)
    event(f"somebody running had no token: {any(len(tick.computing) < len(tick.running) for tick in found.ticks)}")


@given(world=rows(20), seqs=st.integers(1, 6), limit=st.sampled_from([None, 3]))
@settings(max_examples=100)
def test_a_plain_decoder_of_ones_own(world: list[Any], seqs: int, limit: int | None) -> None:
    """A policy without budget, cap or preemption that says it is steady, and the same that says nothing, agree."""
    need = sum(prompt + output for _, prompt, output, _ in world)
    steady = play_both(world, AllComers(), memory=None, capacity=16 * (need + 1), max_concurrency=limit)
    asked = play(world, Asked(), capacity=16 * (need + 1), max_concurrency=limit)
    assert differences(steady, asked) == []


@dataclass
class AllComers(Policy):
    """Everybody is let in at once and computes all it lacks."""

    steady: ClassVar[bool] = True

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step([(request, request.lacking) for request in queue.catching_up.values()])
        while queue.waiting:
            head = queue.admit()
            step.chunks.append((head, head.known))
        assert memory.take(queue.decoding, step.chunks)
        return step


@dataclass
class Asked(AllComers):
    steady: ClassVar[bool] = False


@dataclass
class EverySecondStep(AllComers):
    """Lets people in at every second step that it plans: it counts, so it is not steady, whatever it says."""

    steady: ClassVar[bool] = True
    seen: int = field(default=0, init=False)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self.seen += 1
        if self.seen % 2 and queue.running:
            step = Step()
            memory.take(queue.decoding, step.chunks)
            return step
        return super().plan(queue, memory, now)


def test_a_policy_wrongly_marked_steady_is_caught() -> None:
    world = [(0, 4, 9), (15, 4, 9), (41, 4, 9)]
    for exact in (True, False):
        told = str(play(world, EverySecondStep(), exact=exact, fails=True).error)
        assert "says that it is steady, and changes its mind while everybody only decodes" in told


@dataclass
class BlindToArrivals(AllComers):
    """Says that the head of the queue is refused although it is not."""
    steady = True

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = super().plan(queue, memory, now)
        step.blocked = "cap"
        return step


def test_a_head_wrongly_called_blocked_is_caught() -> None:
    world = [(0, 4, 9), (15, 4, 9)]
    for exact in (True, False):
        told = str(play(world, BlindToArrivals(), exact=exact, fails=True).error)
        assert "said that the head of the queue is blocked until somebody leaves, and lets one in" in told


class ForgetsCrossings(Paged):
    """Counts a stretch as if no member ever needed another block."""

    def foresee(self, decoding: Any, steps: int) -> list[int]:
        return [self.used] * steps


def test_a_memory_that_counts_a_stretch_wrongly_is_caught() -> None:
    world = [(0, 4, 9), (0, 3, 9)]
    exact, fast = (play(world, AllComers(), exact=exact, memory=ForgetsCrossings(40, 4), verify=False)
                   for exact in (True, False))
    assert "used" in differences(exact, fast)


@pytest.mark.parametrize("policy", [Vllm(max_num_seqs=3), StaticBatching(max_batch_size=3), AllComers()],
                         ids=lambda policy: policy.name)
def test_arrivals_on_the_lattice_of_step_ends(policy: Policy) -> None:
    """Who arrives at the very end of a step is seen by the next plan, in both modes."""
    world = [(STEP * at, 4, 3 + at % 4) for at in (0, 1, 2, 2, 3, 5, 8, 8, 8, 13)]
    found = play_both(world, policy)
    if policy.slots >= 3 and not isinstance(policy, StaticBatching):
        assert found.ticks[1].now == STEP
        assert 1 in found.ticks[1].running


@pytest.mark.parametrize("at", range(18, 33))
def test_an_arrival_cuts_a_stretch_at_the_step_that_covers_it(at: int) -> None:
    """A lone decode of steps of 10 ns; somebody arrives within, at the start or at the end of the third step."""
    found = play_both([(0, 2, 9), (at, 2, 2)], Vllm())
    fast = play([(0, 2, 9), (at, 2, 2)], Vllm())
    joined = next(tick for tick in found.ticks if 1 in tick.running)
    assert joined.now == -(-at // STEP) * STEP
    assert [tick.steps for tick in fast.ticks][:2] == [1, joined.now // STEP - 1]
