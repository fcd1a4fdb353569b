"""Every policy gives the same bytes fast and exact, from the front door to the JSON.

Each policy, with its cache of prefixes and without, in each of its modes that decide otherwise, meets memory that is
ample and memory that is tight, a light and a heavy load, a closed loop, and arrivals on the lattice of the step ends.
Prompts share prefixes. A policy that joins POLICIES is asked all of this without a line more. Worlds drawn at random
are test_any_world's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from drawn import same
from hypothesis import strategies as st
from test_every_policy import own_policy
from worlds import STEP, Affine

import simulator as sim
from cost_models import Constant, CostModel, cost_model
from simulator.policies import (
    POLICIES,
    FasterTransformer,
    Orca,
    Policy,
    Sglang,
    StaticBatching,
    TensorRtLlm,
    Tgi,
    Vllm,
    Vllm0,
)
from simulator.result import Result
from traces import Trace

MODEL_LEN = 96
BLOCK = 8
FAMILIES = 3
DECLARED = "x1.3"
REGIMES = cost_model("regimes", model="llama-3.1-8b", gpu="h100-80")
Row = tuple[int, int, int, int, int]
"""Gap before it in ns, prompt and output tokens, family and priority."""
MODES: dict[str, Policy] = {
    "static, padded, buddy": StaticBatching(max_batch_size=4, padded=True, placement="buddy", max_wait=40e-6),
    "static, run to a number": StaticBatching(max_batch_size=4, run_to=50),
    "orca, 3 stages": Orca(max_bs=3, pipeline_stages=3),
    "orca, oracle": Orca(max_bs=6, reserve="exact", placement="first-fit"),
    "tgi, no cache": Tgi(prefix_caching=False),
    "tgi, whole prompts": Tgi(support_chunking=False, waiting_served_ratio=1.2, max_waiting_tokens=3),
    "tgi, padded": Tgi(support_chunking=False, requires_padding=True, prefix_caching=False),
    "tgi, a door": Tgi(max_concurrent_requests=5),
    "tensorrt_llm, evicting": TensorRtLlm(capacity_scheduler_policy="MAX_UTILIZATION", max_num_tokens=128),
    "tensorrt_llm, chunked": TensorRtLlm(enable_chunked_prefill=True, max_num_tokens=64, max_batch_size=5,
                                         two_step_look_ahead=True, capacity_scheduler_policy="MAX_UTILIZATION"),
    "tensorrt_llm, static": TensorRtLlm(capacity_scheduler_policy="STATIC_BATCH", max_batch_size=4),
    "sglang, no cache": Sglang(disable_radix_cache=True),
    "sglang, mixed": Sglang(chunked_prefill_size=32, enable_mixed_chunk=True, schedule_policy="lpm"),
    "sglang, eager": Sglang(init_new_token_ratio=0.05),
    "vllm, no cache": Vllm(enable_prefix_caching=False),
    "vllm, small steps": Vllm(max_num_seqs=4, max_num_batched_tokens=24, block_size=4, watermark=0.1),
    "vllm, by priority": Vllm(scheduling_policy="priority", max_num_seqs=6),
    "vllm-0, swapping": Vllm0(preemption_mode="swap", kv_bytes_per_token=2, swap_bandwidth=1e9),
}
"""Modes that take other decisions, or hold memory in another way, than the defaults do."""
CONTENDERS: dict[str, Policy] = {**{name: kind() for name, kind in POLICIES.items()}, "README": own_policy()(), **MODES}
PREEMPTING = ("vllm", "vllm, no cache", "vllm, by priority", "vllm-0", "vllm-0, swapping", "sglang, eager",
              "tensorrt_llm, evicting", "tensorrt_llm, chunked", "README")
EVERY = pytest.mark.parametrize("policy", CONTENDERS.values(), ids=CONTENDERS)


def differing(trace: Trace, policy: Policy, **options: Any) -> tuple[list[str], Result]:
    """Names of the parts in which fast and exact differ, and the exact result."""
    exact, fast = (sim.simulate(trace, policy, exact=exact, max_model_len=MODEL_LEN, max_tokens=DECLARED, **options)
                   for exact in (True, False))
    return same.differing(exact, fast), exact


def requests(rows: list[Row]) -> Trace:
    """A trace of these rows. Prompts of a family share their beginnings, block by block; family 0 shares nothing."""
    gap, prompt, output, family, priority = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    ids = tuple(tuple(100 * (kin or who) + block for block in range(length // BLOCK))
                for who, (kin, length) in enumerate(zip(family.tolist(), prompt.tolist(), strict=True), FAMILIES))
    return Trace("made", np.cumsum(gap), prompt, output, hash_ids=ids, hash_block=BLOCK, priority=priority)


def spread(gaps: list[int], count: int = 30, seed: int = 0) -> Trace:
    """Requests of all kinds, with gaps taken from these."""
    rng = np.random.default_rng(seed)
    columns = (rng.choice(gaps, count), rng.integers(1, 60, count), rng.integers(1, 33, count),
               rng.integers(0, FAMILIES, count), rng.integers(0, 3, count))
    return requests(list(zip(*(column.tolist() for column in columns), strict=True)))


LOADS: dict[str, tuple[Trace, dict[str, Any]]] = {
    "light": (spread([200, 700, 1500]), {"cost_model": Affine()}),
    "heavy": (spread([0, 0, 3, 40]), {"cost_model": Affine(3, 0, 2, 50)}),
    "closed loop": (spread([0, 0, 25], seed=1), {"cost_model": Affine(), "max_concurrency": 4}),
    "saturated": (spread([50], seed=2), {"cost_model": REGIMES, "load": "saturated"}),
    "lattice": (spread([0, STEP, 2 * STEP, 7 * STEP], seed=3), {"cost_model": Constant(STEP)}),
}
MEMORY = {"ample": 20_000, "tight": 240}


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("load", LOADS)
@EVERY
def test_fast_and_exact_give_the_same_bytes(policy: Policy, load: str, memory: str) -> None:
    trace, options = LOADS[load]
    found, result = differing(trace, policy, kv_capacity_tokens=MEMORY[memory], **options)
    assert found == []
    assert result.summary()["completed"] + result.summary()["failed"] == len(trace)


def totals(name: str, memory: str) -> tuple[int, int]:
    """Preemptions, and prompt tokens that were found and not computed, over all loads."""
    runs = [sim.simulate(trace, CONTENDERS[name], kv_capacity_tokens=MEMORY[memory], max_model_len=MODEL_LEN,
                         max_tokens=DECLARED, **options) for trace, options in LOADS.values()]
    found = sum(int(run.setup.prompt.sum() - (run.record.plan("prompt") - run.record.plan("redone")).sum())
                for run in runs if not len(run.record.refused))
    return sum(run.summary()["preemptions"] for run in runs), found


@pytest.mark.parametrize("name", PREEMPTING)
def test_tight_memory_preempts_and_ample_memory_does_not(name: str) -> None:
    assert totals(name, "ample")[0] == 0 < totals(name, "tight")[0]


@pytest.mark.parametrize(("cached", "bare"), [("vllm", "vllm, no cache"), ("sglang", "sglang, no cache"),
                                              ("tgi", "tgi, no cache")])
def test_prompts_are_found_where_there_is_a_cache_and_nowhere_else(cached: str, bare: str) -> None:
    assert totals(cached, "ample")[1] > 0 == totals(bare, "ample")[1]


GAPS = st.sampled_from([st.just(0), st.integers(0, 60), st.sampled_from([0, STEP, 3 * STEP]), st.integers(0, 2000)])
COSTS: list[CostModel] = [Constant(STEP), Constant(1), Affine(), Affine(1, 0, 0, 1), REGIMES]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    lengths = st.tuples(st.integers(1, 59), st.integers(1, draw(st.sampled_from([1, 4, 32]))),
                        st.integers(0, FAMILIES - 1), st.integers(0, 2))
    gaps = draw(GAPS)
    return requests(draw(st.lists(st.tuples(gaps, lengths).map(lambda row: (row[0], *row[1])), min_size=1,
                                  max_size=draw(st.sampled_from([2, 6, 14])))))


@dataclass
class Hasty(FasterTransformer):
    """Says that it is steady. It is not: at each step its finished rows read more KV, which a stretch does not see."""

    steady: ClassVar[bool] = True


def test_a_policy_wrongly_marked_steady_is_caught() -> None:
    trace, options = LOADS["heavy"]
    assert "json" in differing(trace, Hasty(), kv_capacity_tokens=MEMORY["ample"], **options)[0]
