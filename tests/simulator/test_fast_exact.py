"""Fast equals exact: the same steps, tokens, stays and sends to the last nanosecond, on worlds drawn at random.

Every world is also checked against all invariants, in both modes. Memory may be tight or ample, the client open or
closed, costs flat or growing, arrivals scattered, in bursts, or on the lattice of the step ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from worlds import STEP, Affine, Prefix, World, differences, play, play_both

from cost_models import Constant, CostModel, cost_model
from simulator.memory import UNLIMITED, Memory, Paged
from simulator.policies import Policy, StaticBatching, Vllm, Vllm0
from simulator.step import Queue, Step

COSTS: list[CostModel] = [Constant(STEP), Constant(1), Affine(), Affine(1, 0, 0, 1), Affine(3, 0, 2, 50),
                          cost_model("regimes", model="llama-3.1-8b", gpu="h100-80"),
                          cost_model("roofline", model="llama-2-7b", gpu="a100-80")]
LONGEST = 72
LIMITS = st.sampled_from([None, None, 1, 2, 4])


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


@st.composite
def vllms(draw: st.DrawFn) -> Vllm:
    seqs = draw(st.sampled_from([1, 2, 3, 5, 12, 64]))
    chunked = draw(st.booleans())
    least = max(seqs, 1 if chunked else 90)
    budget = draw(st.sampled_from([0, least + 1, least + 4, 16, 50, 10**6]))
    return Vllm(max_num_seqs=seqs, max_num_batched_tokens=max(budget, least),
                block_size=draw(st.sampled_from([1, 3, 4, 16])), enable_chunked_prefill=chunked,
                long_prefill_token_threshold=draw(st.sampled_from([0, 0, 1, 3, 6])),
                scheduler_reserve_full_isl=draw(st.booleans()), watermark=draw(st.sampled_from([0.0, 0.0, 0.1, 0.5])),
                enable_prefix_caching=draw(st.booleans()),
                scheduling_policy=draw(st.sampled_from(["fcfs", "fcfs", "priority"])), max_model_len=90)


@st.composite
def prefixes(draw: st.DrawFn, world: list[tuple[int, int, int, int]]) -> list[Prefix]:
    """Who begins like whom: nobody, or two families of prompts, one of which parts into branches at 5 tokens."""
    kinds = draw(st.sampled_from(["-", "a", "ab", "-aabcd"]))
    found: list[Prefix] = []
    for _, prompt, *_ in world:
        kind, reach = draw(st.sampled_from(kinds)), min(prompt, draw(st.sampled_from([4, 9, 24, 40])))
        if kind == "-":
            found.append(())
        elif kind in "ab" or reach <= 5:
            found.append(((kind if kind in "ab" else "a", reach),))
        else:
            found.append((("a", 5), (f"a, then {kind}", reach)))
    return found


@st.composite
def statics(draw: st.DrawFn, max_wait: st.SearchStrategy[float] | None = None) -> StaticBatching:
    wait = st.sampled_from([0.0, 0.0, STEP * 1e-6, 37e-6, 1.0, inf]) if max_wait is None else max_wait
    return StaticBatching(max_batch_size=draw(st.sampled_from([None, 1, 2, 3, 5, 64])),
                          reserve=draw(st.sampled_from(["model", "declared", "exact"])), padded=draw(st.booleans()),
                          run_to=draw(st.sampled_from([None, None, 1, 4, 45])), max_wait=draw(wait),
                          placement=draw(st.sampled_from(["first-fit", "buddy"])))


def blocks_needed(world: list[tuple[int, int, int, int]], size: int) -> int:
    return max(-(-(prompt + output - 1) // size) for _, prompt, output, _ in world)


@given(data=st.data(), world=rows(), policy=vllms(), cost=st.sampled_from(COSTS), limit=LIMITS)
@settings(max_examples=400)
def test_vllm(data: st.DataObject, world: list[Any], policy: Vllm, cost: CostModel, limit: int | None) -> None:
    need = blocks_needed(world, policy.block_size)
    blocks = data.draw(st.sampled_from([need, need, need + 1, need + 2, 2 * need, 3 * need + 1, 10**6]), "blocks")
    priorities = data.draw(st.lists(st.integers(0, 2), min_size=len(world), max_size=len(world)), "priorities")
    found = play_both(world, policy, capacity=(blocks + 1) * policy.block_size, cost=cost, max_concurrency=limit,
                      max_model_len=90, prefixes=data.draw(prefixes(world), "prefixes"), priorities=priorities)
    event(f"preempted: {any(tick.preempted for tick in found.ticks)}")
    event(f"shared: {any(tick.shared for tick in found.ticks)}")
    event(f"found: {any(tick.computed[who] for tick in found.ticks for who in tick.admitted)}")


@given(world=rows(), mode=st.sampled_from(["recompute", "swap"]), seqs=st.sampled_from([1, 2, 5, 64]),
       size=st.sampled_from([1, 4, 16]), watermark=st.sampled_from([0.0, 0.1, 0.4]), spare=st.sampled_from([0, 1, 99]),
       moved=st.sampled_from([0, 1, 7]), cost=st.sampled_from(COSTS), limit=LIMITS)
@settings(max_examples=200)
def test_vllm_0(world: list[Any], mode: str, seqs: int, size: int, watermark: float, spare: int, moved: int,
                cost: CostModel, limit: int | None) -> None:
    """Pauses, swaps that delay a step, and recomputation. `moved` is how many ns it takes to move a token's KV."""
    policy = Vllm0(max_num_seqs=seqs, block_size=size, watermark=watermark, preemption_mode=mode,
                   kv_bytes_per_token=max(1, moved), swap_bandwidth=1e9 if moved else 1e30)
    need = blocks_needed(world, size)
    blocks = next(blocks for blocks in range(need, 3 * need + 2) if blocks - int(watermark * blocks) >= need)
    found = play_both(world, policy, capacity=(blocks + spare) * size, cost=cost, max_concurrency=limit)
    event(f"swapped: {any(tick.swapped for tick in found.ticks)}")
    event(f"decodes wait: {any(tick.paused and tick.decoding for tick in found.ticks)}")


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


@given(data=st.data(), world=rows(), policy=statics(), cost=st.sampled_from(COSTS), limit=LIMITS)
@settings(max_examples=400)
def test_static(data: st.DataObject, world: list[Any], policy: StaticBatching, cost: CostModel,
                limit: int | None) -> None:
    model_len = data.draw(st.sampled_from([LONGEST + 10, 500]), "model_len")
    need = {"model": model_len, "declared": max(row[1] + row[3] for row in world),
            "exact": max(row[1] + row[2] for row in world)}[policy.reserve]
    whole = 1 << (need - 1).bit_length()    # what a buddy gives
    sizes = [whole, whole + 1, 2 * whole + need, 3 * whole + 7, 100 * whole, UNLIMITED]
    tokens = data.draw(st.sampled_from(sizes), "tokens")
    if policy.max_wait == inf:
        limit = None    # a client that keeps back what the batch waits for stops the world: see test_clients
    found = play_both(world, policy, capacity=tokens, cost=cost, max_concurrency=limit, max_model_len=model_len)
    cut = any(tick.waiting and len(tick.running) < found.policy.slots for tick in found.ticks)
    event(f"a batch is smaller than it might be: {cut}")


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


def worlds_alike(one: World, other: World) -> bool:
    return (one.record.plans.tobytes() == other.record.plans.tobytes()
            and one.record.ends.tobytes() == other.record.ends.tobytes()
            and one.record.spans.tobytes() == other.record.spans.tobytes())


@given(world=rows(), policy=vllms())
@settings(max_examples=40)
def test_a_policy_object_used_twice_gives_what_two_fresh_ones_give(world: list[Any], policy: Vllm) -> None:
    capacity = (2 * blocks_needed(world, policy.block_size) + 1) * policy.block_size
    runs = [play(world, policy, capacity=capacity, max_model_len=90) for _ in range(2)]
    assert worlds_alike(*runs)
    static = StaticBatching(max_batch_size=2, run_to=9)
    assert worlds_alike(play(world, static), play(world, static))
