"""Who is preempted, and whose blocks are reused: the short rules of vllm against the walk over all who run.

First come, first served, `vllm` does not walk; the walk is that of its priority rule, with the latest as the victim. By
priority it asks only those who need a block, where the budget is enough for all.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from worlds import Prefix, World, play

from simulator.memory import Memory
from simulator.policies import Vllm, vllm_priority
from simulator.step import Queue, Step

TWO_VICTIMS = (
    [(120, 42, 24), (185, 37, 5), (185, 31, 13), (190, 37, 17), (190, 32, 23), (390, 37, 17), (410, 39, 13),
     (415, 44, 10), (420, 29, 17), (620, 40, 16)],
    [tuple(((group, depth), 4 * depth + 4) for depth in range(blocks)) for group, blocks in
     zip((2, 0, 0, 2, 0, 0, 0, 2, 0, 2), (8, 8, 7, 8, 7, 7, 8, 8, 7, 8), strict=True)],
    {"max_num_seqs": 10, "long_prefill_token_threshold": 8, "max_num_batched_tokens": 1000}, 96)
"""A world in which the second victim does not fit itself, so that the others take before the first is released."""


class Walking(Vllm):
    """Serves one by one wherever memory runs short."""

    def _preempt_youngest(self, queue: Queue, memory: Memory, step: Step) -> None:
        longest = self.long_prefill_token_threshold if len(queue) > 1 else 0
        vllm_priority.serve_by_urgency(queue, memory, step, self.max_num_batched_tokens, longest or 1 << 60)


@pytest.fixture
def _the_latest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_priority, "serve_all", vllm_priority.serve_some)
    monkeypatch.setattr(vllm_priority, "least_urgent_first",
                        lambda queue: reversed(list(queue.running.values())))


def tight(random: Random) -> tuple[list[tuple[int, ...]], list[Prefix], dict[str, Any], int]:
    """Some requests with nested prefixes of three kinds, in a pool that holds a few of them."""
    rows, prefixes, now = [], [], 0
    for _ in range(random.randint(6, 14)):
        now += random.choice((0, 5, 10, 40, 100))
        prompt = random.randint(20, 44)
        rows.append((now, prompt, random.randint(3, 25)))
        kind, blocks = random.randint(0, 2), min(prompt // 4, random.randint(0, 8))
        prefixes.append(tuple(((kind, depth), 4 * depth + 4) for depth in range(blocks)))
    knobs = {"max_num_seqs": len(rows), "long_prefill_token_threshold": random.choice((0, 8)),
             "max_num_batched_tokens": random.choice((64, 1000))}
    return rows, prefixes, knobs, 4 * random.randint(18, 26)


def story(world: World) -> list[tuple[Any, ...]]:
    return [(tick.now, tick.computing, tick.preempted, tick.used, tick.evictable, tick.shared) for tick in world.ticks]


def both(rows: list[tuple[int, ...]], prefixes: list[Prefix], knobs: dict[str, Any],
         capacity: int) -> list[list[tuple[Any, ...]]]:
    return [story(play(rows, kind(block_size=4, scheduler_reserve_full_isl=False, **knobs), capacity=capacity,
                       prefixes=prefixes, exact=True, verify=False)) for kind in (Vllm, Walking)]


@pytest.mark.usefixtures("_the_latest_goes")
def test_the_others_take_before_two_victims_give_up_theirs() -> None:
    short, walk = both(*TWO_VICTIMS)
    assert short == walk
    at_720 = next(computing for now, computing, *_ in short if now == 720)
    assert at_720 == [(6, 1, 49), (7, 8, 8), (8, 2, 28), (9, 8, 16)]


@pytest.mark.usefixtures("_the_latest_goes")
def test_the_short_rule_is_the_walk_to_the_block() -> None:
    several = 0
    for seed in range(250):
        short, walk = both(*tight(Random(seed)))
        assert short == walk, f"seed {seed}"
        several += sum(len(preempted) > 1 for _, _, preempted, *_ in walk)
    assert several > 50


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.usefixtures("_the_latest_goes")
def test_the_short_rule_is_the_walk_in_thousands_of_worlds() -> None:
    for seed in range(1000, 4000):
        short, walk = both(*tight(Random(seed)))
        assert short == walk, f"seed {seed}"


def by_priority(seed: int, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[Any, ...]]]:
    """A tight world with priorities: as it is, and walking over everybody."""
    random = Random(seed)
    rows, prefixes, knobs, capacity = tight(random)
    policy = Vllm(block_size=4, scheduler_reserve_full_isl=False, scheduling_policy="priority",
                  enable_prefix_caching=random.random() < 0.7, **knobs)
    # Two of the same priority and arrival may send each other back for ever: the engine's rule takes the older one.
    priorities, worlds = random.sample(range(len(rows)), len(rows)), []
    for walk in (vllm_priority.serve_all, vllm_priority.serve_some):
        with monkeypatch.context() as patch:
            patch.setattr(vllm_priority, "serve_all", walk)
            worlds.append(story(play(rows, policy, capacity=capacity, prefixes=prefixes, priorities=priorities,
                                     verify=False)))
    return worlds


def test_by_priority_only_those_who_need_a_block_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    several = 0
    for seed in range(100):
        short, walk = by_priority(seed, monkeypatch)
        assert short == walk, f"seed {seed}"
        several += sum(len(preempted) > 1 for _, _, preempted, *_ in walk)
    assert several > 10


@pytest.mark.slow
@pytest.mark.nightly
def test_by_priority_the_short_walk_is_the_walk_in_thousands_of_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1000, 4000):
        short, walk = by_priority(seed, monkeypatch)
        assert short == walk, f"seed {seed}"
