"""Published traces with known answers: steps and useful shares of the Azure 2023 traces, saturated, memory unlimited.

The numbers were counted independently: static as the sum of each batch's longest output, continuous as a FIFO refill
of freed slots in which a prefill step counts as the step of the first token.
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from pathlib import Path

import numpy as np
import pytest
import yaml
from worlds import Trace, World, play

import traces
from simulator.policies import StaticBatching, Vllm
from simulator.simulation import simulate

STEPS = {"code": (63_409, 8_328), "conv": (332_741, 128_102)}
SLOTS = (8, 32, 64, 128)
SHARES = {"code": (0.2675, 0.1212, 0.0851, 0.0608), "conv": (0.4834, 0.3840, 0.3441, 0.3061)}


@pytest.fixture(scope="module", params=["code", "conv"])
def published(request: pytest.FixtureRequest, shared: Path) -> tuple[str, Trace]:
    path = shared / "traces" / "azure-2023" / f"AzureLLMInferenceTrace_{request.param}.csv"
    return request.param, traces.load(path)


def saturated(trace: Trace, policy: object) -> World:
    rows = [(0, prompt, output) for prompt, output in zip(trace.prompt.tolist(), trace.output.tolist(), strict=True)]
    return play(rows, policy, keep=False, verify=False, max_model_len=1 << 20)    # type: ignore[arg-type]


def refill(outputs: list[int], slots: int) -> int:
    """Steps of a first-come first-served refill, by itself: each slot is a clock."""
    ends = [0] * slots
    heapify(ends)
    for output in outputs:
        heapreplace(ends, ends[0] + output)
    return max(ends)


def test_steps_of_static_and_of_continuous_batching(published: tuple[str, Trace]) -> None:
    name, trace = published
    static = saturated(trace, StaticBatching(max_batch_size=32))
    continuous = saturated(trace, Vllm(max_num_seqs=32, max_num_batched_tokens=1 << 60))
    assert (len(static.record.ends), len(continuous.record.ends)) == STEPS[name]
    outputs = trace.output.tolist()
    assert STEPS[name] == (sum(max(outputs[at:at + 32]) for at in range(0, len(outputs), 32)), refill(outputs, 32))


def test_useful_shares_of_static_batches(published: tuple[str, Trace]) -> None:
    name, trace = published
    shares = [trace.output.sum() / (slots * len(saturated(trace, StaticBatching(max_batch_size=slots)).record.ends))
              for slots in SLOTS]
    assert shares == pytest.approx(SHARES[name], abs=5.1e-5)


@pytest.mark.parametrize(("name", "steps"), STEPS.items())
def test_the_same_through_the_front_door(shared: Path, name: str, steps: tuple[int, int]) -> None:
    path = str(shared / "traces" / "azure-2023" / f"AzureLLMInferenceTrace_{name}.csv")
    free = {"load": "saturated", "kv_capacity_tokens": float("inf"), "cost_model": "constant:1"}
    static = simulate(path, StaticBatching(max_batch_size=32), **free)
    continuous = simulate(path, Vllm(max_num_seqs=32, max_num_batched_tokens=1 << 60), **free)
    assert (len(static.record.ends), len(continuous.record.ends)) == steps
    assert not static.setup.verdict.any()


@pytest.mark.parametrize("name", ["azure-code-2023", "azure-conv-2023"])
def test_bundled_stand_ins_come_near_the_shuffled_original(name: str) -> None:
    """Their specification states the useful shares of the shuffled original; 5% is what it allows."""
    spec = Path(traces.__file__).parent / "specs" / f"{name}.yaml"
    wanted = shares_stated(yaml.safe_load(spec.read_text()))
    trace = traces.load(name)
    steps = {slots: len(saturated(trace, StaticBatching(max_batch_size=slots)).record.ends) for slots in wanted}
    found = {slots: float(trace.output.sum() / (slots * steps[slots])) for slots in wanted}
    assert found == pytest.approx(wanted, rel=0.05)
    continuous = saturated(trace, Vllm(max_num_seqs=32, max_num_batched_tokens=1 << 60))
    assert len(continuous.record.ends) == refill(trace.output.tolist(), 32)


def shares_stated(spec: dict[str, object]) -> dict[int, float]:
    """The useful shares of the shuffled original, by slots."""
    return dict(spec["slot_shares"]["shuffled"])    # type: ignore[index]


def test_two_orders_of_the_same_requests_take_about_the_same_steps() -> None:
    rng = np.random.default_rng(1)
    trace = traces.load("azure-conv-2023").head(4000)
    order = rng.permutation(len(trace))
    mixed = Trace("mixed", trace.arrival, trace.prompt[order], trace.output[order])
    one, other = (len(saturated(each, Vllm(max_num_seqs=32, max_num_batched_tokens=1 << 60)).record.ends)
                  for each in (trace, mixed))
    assert one == pytest.approx(other, rel=0.05)
