"""Whoever can never be served is refused at the door, by the rule that is told, and stands in nobody's way."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.policies import POLICIES

POOL, LONGEST = 96, 120
MODEL, FILLS, POOLS, PROMPT = ("longer than max_model_len", "prompt fills the engine's max_model_len",
                               "never fits the KV pool", "prompt longer than the engine takes")
TOO_BIG: list[tuple[str, dict[str, Any], tuple[int, ...], str]] = [
    # policy, knobs, (prompt, output, declared), rule; a pool of 96 tokens, a model of 120
    *[(policy, {}, (115, 6, 6), MODEL) for policy in POLICIES if policy != "ft"],    # it reserves the model's length
    *[(policy, {}, (100, 5, 5), POOLS) for policy in POLICIES if policy not in ("ft", "sglang")],
    *[(policy, {}, (60, 45, 45), POOLS) for policy in POLICIES if policy not in ("ft", "sglang")],
    ("ft", {}, (5, 5, 5), POOLS),
    ("sglang", {}, (100, 5, 5), FILLS),
    ("sglang", {"ignore_eos": True, "disable_radix_cache": True}, (93, 2, 2), FILLS),
    ("vllm", {"max_model_len": 50}, (50, 2, 2), FILLS),
    ("tgi", {"support_chunking": False, "max_batch_prefill_tokens": 32}, (33, 2, 2), PROMPT),
    ("tensorrt_llm", {"enable_chunked_prefill": False, "max_num_tokens": 32}, (33, 2, 2), PROMPT),
    ("static", {"reserve": "pow2", "placement": "buddy"}, (60, 8, 8), POOLS),
    ("static", {"reserve": "model"}, (5, 5, 5), POOLS),
    ("vllm-0", {"watermark": 0.5}, (60, 2, 2), POOLS),
    ("tensorrt_llm", {}, (60, 2, 50), POOLS),
    ("tgi", {}, (60, 2, 50), POOLS),
    ("tgi", {"max_batch_total_tokens": 40}, (40, 2, 2), POOLS),
]


@pytest.mark.parametrize(("policy", "knobs", "big", "rule"), TOO_BIG)
def test_who_is_too_big_is_rejected_by_the_rule(policy: str, knobs: dict[str, Any], big: tuple[int, ...],
                                                rule: str) -> None:
    small = (3, 4, 5)
    rows = [(0, *small), (0, *big), (0, *small)] if big[0] > 5 else [(0, *big)] * 3    # who reserves more than there is
    summary = sim.simulate(trace_of(rows), policy, knobs=knobs, kv_capacity_tokens=POOL, max_model_len=LONGEST,
                           cost_model=Constant(10)).summary()
    refused = 1 if len(set(rows)) > 1 else 3
    assert summary["rejected_reasons"] == f"{rule}: {refused}"
    assert summary["completed"] == len(rows) - refused


EDGES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in POLICIES if name != "ft"} | {
    "ft": ("ft", {"max_model_len": 40}),
    "static, buddies": ("static", {"reserve": "pow2", "placement": "buddy"}),
    "vllm, blocks of 1": ("vllm", {"block_size": 1}),
    "vllm, small budget": ("vllm", {"block_size": 4, "max_num_batched_tokens": 8, "scheduler_reserve_full_isl": False}),
    "vllm, watermark": ("vllm", {"block_size": 4, "watermark": 0.9, "scheduling_policy": "priority"}),
    "vllm-0, swap": ("vllm-0", {"block_size": 4, "watermark": 0.3, "preemption_mode": "swap"}),
    "tgi, padded": ("tgi", {"requires_padding": True}),
    "tgi, whole prompts": ("tgi", {"support_chunking": False, "max_batch_prefill_tokens": 16}),
    "tgi, phantoms": ("tgi", {"quirk_phantom_prefix": True, "max_batch_prefill_tokens": 8}),
    "sglang, all ends known": ("sglang", {"disable_radix_cache": True, "ignore_eos": True}),
    "sglang, all ends known, pages": ("sglang", {"disable_radix_cache": True, "ignore_eos": True, "page_size": 16}),
    "sglang, bold": ("sglang", {"chunked_prefill_size": 4, "init_new_token_ratio": 0.01}),
    "tensorrt_llm, MAX_UTILIZATION": ("tensorrt_llm", {"capacity_scheduler_policy": "MAX_UTILIZATION",
                                                       "tokens_per_block": 4, "two_step_look_ahead": True}),
    "tensorrt_llm, STATIC_BATCH": ("tensorrt_llm", {"capacity_scheduler_policy": "STATIC_BATCH", "max_num_tokens": 8}),
    "hybrid, paged batches": ("hybrid", {"granularity": "batch", "block_size": 4}),
}
CROWD = [(prompt, output) for prompt in (1, 8, 15, 16, 17, 30, 31, 32, 33, 44, 45, 46, 47, 48, 49)
         for output in (1, 2, 3, 8, 16, 17, 31, 32, 33, 34)]


@pytest.mark.parametrize("declared", [1, 2], ids=["exact", "doubled"])
@pytest.mark.parametrize("gap", [0, 10_000], ids=["crowded", "alone"])
@pytest.mark.parametrize(("policy", "knobs"), EDGES.values(), ids=EDGES)
def test_nobody_stalls_at_the_edge_of_the_pool(policy: str, knobs: dict[str, Any], gap: int, declared: int) -> None:
    """Of all who just fit or just do not, each ends: the gate and the policy's own rule agree to the token."""
    rows = [(place * gap, prompt, output, declared * output) for place, (prompt, output) in enumerate(CROWD)]
    summary = sim.simulate(trace_of(rows), policy, knobs=knobs, kv_capacity_tokens=48, max_model_len=200,
                           cost_model=Constant(10)).summary()
    assert summary["completed"] + summary["rejected"] + summary["failed"] == len(rows)
    assert summary["completed"] > 0
