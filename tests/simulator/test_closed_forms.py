"""Against queueing theory and plain arithmetic: worlds whose answer is known without simulating them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import STEP, Affine, World, play, play_both

from cost_models import Constant, CostModel, StepShape, cost_model
from simulator.policies import StaticBatching, Vllm

REAL = {
    "regimes": cost_model("regimes", model="llama-3.1-8b", gpu="h100-80"),
    "roofline": cost_model("roofline", model="llama-2-7b", gpu="a100-80"),
    "affine": Affine(),
    "constant": Constant(10_000_000),
}


@pytest.mark.parametrize("cost", REAL.values(), ids=REAL)
@pytest.mark.parametrize(("prompt", "output"), [(1, 1), (17, 1), (300, 2), (1000, 150)])
def test_one_request_on_an_idle_server(cost: CostModel, prompt: int, output: int) -> None:
    """TTFT is the prefill step, E2EL that and n - 1 decode steps, to the nanosecond; it waits for nothing."""
    sent = 12_345
    world = play_both([(sent, prompt, output)], Vllm(), cost=cost)
    prefill = cost.time(StepShape(0, 0, ((prompt, 0),)))
    decodes = [cost.time(StepShape(1, prompt + ahead)) for ahead in range(output - 1)]
    times = world.token_times(0)
    assert world.stays(0)[0][0] == sent
    assert times[0] - sent == prefill
    assert times[-1] - sent == prefill + sum(decodes)
    assert np.diff(times).tolist() == decodes


@pytest.mark.parametrize("cost", REAL.values(), ids=REAL)
def test_one_chunked_prompt_on_an_idle_server(cost: CostModel) -> None:
    world = play_both([(0, 100, 3)], Vllm(max_num_seqs=1, max_num_batched_tokens=40), cost=cost)
    chunks = [cost.time(StepShape(0, 0, ((new, prior),))) for new, prior in ((40, 0), (40, 40), (20, 80))]
    assert world.record.ends[:3].tolist() == np.cumsum(chunks).tolist()
    assert world.token_times(0)[0] == sum(chunks)


def lindley(arrivals: list[int], services: list[int]) -> list[int]:
    """When each customer of a first-come first-served single server leaves."""
    leaves, at = [], 0
    for arrival, service in zip(arrivals, services, strict=True):
        at = max(at, arrival) + service
        leaves.append(at)
    return leaves


ARRIVALS = st.lists(st.tuples(st.sampled_from([0, 0, 1, 7, STEP, 30, 300]), st.integers(1, 30), st.integers(1, 12)),
                    min_size=1, max_size=25)


def rows_of(gaps: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    at = np.cumsum([gap for gap, _, _ in gaps]).tolist()
    return [(when, prompt, output) for when, (_, prompt, output) in zip(at, gaps, strict=True)]


@given(ARRIVALS)
@settings(max_examples=150)
def test_a_batch_of_one_is_the_lindley_recursion(gaps: list[tuple[int, int, int]]) -> None:
    rows = rows_of(gaps)
    world = play_both(rows, StaticBatching(max_batch_size=1))
    leaves = lindley([row[0] for row in rows], [row[2] * STEP for row in rows])
    assert [world.left_at[index] for index in range(len(rows))] == leaves
    starts = [leave - row[2] * STEP for leave, row in zip(leaves, rows, strict=True)]
    assert [world.stays(index)[0] for index in range(len(rows))] == list(zip(starts, leaves, strict=True))


@given(ARRIVALS)
@settings(max_examples=100)
def test_a_batch_of_one_is_continuous_batching_with_one_slot(gaps: list[tuple[int, int, int]]) -> None:
    rows = rows_of(gaps)
    static = play(rows, StaticBatching(max_batch_size=1), exact=True)
    continuous = play(rows, Vllm(max_num_seqs=1, max_num_batched_tokens=30), exact=True)
    assert static.left_at == continuous.left_at
    assert [(tick.now, tick.computing, tick.left) for tick in static.ticks] == [
        (tick.now, tick.computing, tick.left) for tick in continuous.ticks]


def slot_steps(world: World) -> tuple[int, int]:
    return len(world.record.ends), sum(world.output)


@pytest.mark.parametrize("slots", [1, 4, 32])
def test_equal_lengths_leave_nothing_for_the_scheduler_to_win(slots: int) -> None:
    rows = [(0, 100, 50)] * (4 * slots)
    static = play(rows, StaticBatching(max_batch_size=slots), keep=False)
    continuous = play(rows, Vllm(max_num_seqs=slots, max_num_batched_tokens=10**6), keep=False)
    assert len(static.record.ends) == len(continuous.record.ends) == 4 * 50


@pytest.mark.parametrize(("slots", "harmonic"), [(8, 2.718), (32, 4.058), (256, 6.125)])
def test_exponential_lengths_give_the_harmonic_number(slots: int, harmonic: float) -> None:
    """The mean of the longest of B exponential lengths is H_B times their mean, and so is the ratio of the steps."""
    rng = np.random.default_rng(7)
    outputs = np.ceil(rng.exponential(400, 150 * slots)).astype(int).tolist()
    rows = [(0, 1, output) for output in outputs]
    static = play(rows, StaticBatching(max_batch_size=slots), keep=False, verify=False)
    continuous = play(rows, Vllm(max_num_seqs=slots, max_num_batched_tokens=10**6), keep=False, verify=False)
    assert len(static.record.ends) / len(continuous.record.ends) == pytest.approx(harmonic, rel=0.05)


def test_continuous_batching_is_never_behind_static_step_for_step() -> None:
    """Saturated, flat steps, enough memory: refilling slots in order can only be earlier."""
    rng = np.random.default_rng(3)
    for slots in (2, 5):
        rows = [(0, 1, int(output)) for output in rng.integers(1, 60, 80)]
        static = play(rows, StaticBatching(max_batch_size=slots), keep=False)
        continuous = play(rows, Vllm(max_num_seqs=slots, max_num_batched_tokens=10**6), keep=False)
        assert len(continuous.record.ends) < len(static.record.ends)
        assert all(continuous.left_at[index] <= static.left_at[index] for index in range(len(rows)))
        assert len(continuous.record.ends) >= sum(static.output) / slots


@pytest.mark.parametrize("policy", [Vllm(max_num_seqs=3, max_num_batched_tokens=20), StaticBatching(max_batch_size=3)],
                         ids=["vllm", "static"])
def test_littles_law_holds_to_the_nanosecond(policy: object) -> None:
    """Time in the system, summed over requests, is the number in the system, summed over time."""
    rng = np.random.default_rng(5)
    rows = rows_of([(int(gap), int(p), int(o)) for gap, p, o in
                    zip(rng.integers(0, 90, 60), rng.integers(1, 15, 60), rng.integers(1, 20, 60), strict=True)])
    world = play(rows, policy, cost=Affine())    # type: ignore[arg-type]
    sent, steps = world.sent(), world.record.steps
    in_system = sum(world.left_at[index] - sent[index] for index in sent)
    duration = steps["end"] - steps["start"]
    over_time = int(((steps["running"] + steps["waiting"]) * duration).sum())
    arrivals = np.array(sorted(sent.values()))
    within = np.searchsorted(steps["start"], arrivals, side="left") - 1    # the step an arrival falls into, if any
    for at, step in zip(arrivals.tolist(), within.tolist(), strict=True):
        if step >= 0 and steps["start"][step] < at < steps["end"][step]:
            over_time += int(steps["end"][step]) - at
    assert in_system == over_time
