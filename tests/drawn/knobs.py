"""Policies with their knobs drawn, each from its smallest value to one that never binds. They are legal as they come.

`of(name, ...)` draws a policy of POLICIES. A policy that joins them, and a knob that one of them gains, fail a test of
`test_any_world.py` until their values are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from simulator.memory import UNLIMITED
from simulator.policies import POLICIES, Policy

Knobs = dict[str, Any]
MODEL_LEN = 120
"""Tokens of the longest request that a drawn world's model holds, where its lengths are not huge."""


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


SLOTS = some(None, 1, 2, 3, 5, 12, 64, UNLIMITED)
RESERVE, PLACEMENT = some("declared", "exact", "pow2", "model"), some("first-fit", "buddy", "counted")
FLAG = st.booleans()
ENGINE_LEN = some(None, None, None, 30, MODEL_LEN, 10 ** 6)
"""A model length of the engine's own: most prompts do not fit the second."""
WATERMARK = some(0.0, 0.0, 0.01, 0.1, 0.5, 0.999)
BLOCK = some(1, 2, 3, 4, 8, 16, 16, 64, 1 << 20)
BATCHES = {"max_wait": some(0.0, 0.0, 1e-5, 37e-6, 20.0, inf), "sleep_per_batch": some(0.0, 0.0, 1e-5, 3.0),
           "run_to": some(None, None, 1, 4, 45)}
VLLM = {"max_num_seqs": SLOTS, "max_num_batched_tokens": some(None, 1, 4, 16, 50, 200, UNLIMITED), "block_size": BLOCK,
        "enable_chunked_prefill": FLAG, "enable_prefix_caching": FLAG,
        "long_prefill_token_threshold": some(0, 0, 1, 3, 17, 10 ** 9), "scheduler_reserve_full_isl": FLAG,
        "watermark": WATERMARK, "scheduling_policy": some("fcfs", "priority"), "max_model_len": ENGINE_LEN}
KNOBS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "static": {"max_batch_size": SLOTS, "reserve": RESERVE, "padded": FLAG, "placement": PLACEMENT, **BATCHES},
    "ft": {"max_batch_size": SLOTS, "max_model_len": ENGINE_LEN},
    "dynamic": {"max_batch_size": SLOTS, "preferred_batch_size": some(None, (1,), (2, 5), (3,), (4, 8, 16), (64,)),
                "max_queue_delay_microseconds": some(0, 0, 1, 7, 30_000, 10 ** 12), "reserve": RESERVE,
                "placement": PLACEMENT},
    "orca": {"max_bs": SLOTS, "pipeline_stages": some(1, 1, 2, 3, 40), "n_slots": some(None, None, 1, 150),
             "reserve": RESERVE, "placement": PLACEMENT, "max_model_len": ENGINE_LEN},
    "tgi": {"max_concurrent_requests": some(1, 2, 5, 128, UNLIMITED),
            "max_batch_prefill_tokens": some(None, 1, 10, 64, UNLIMITED),
            "max_batch_total_tokens": some(None, None, 1, 150), "max_input_tokens": some(None, None, 1, 25, 10 ** 6),
            "max_batch_size": SLOTS, "waiting_served_ratio": some(0, 0.3, 1.2, 1e9),
            "max_waiting_tokens": some(1, 3, 20, UNLIMITED), "support_chunking": some(None, True, False),
            "prefix_caching": some(None, True, False), "block_size": some(1, 1, 16, 64, 256), "requires_padding": FLAG,
            "quirk_phantom_prefix": FLAG},
    "tensorrt_llm": {"max_batch_size": some(1, 2, 5, 64, 2048, UNLIMITED), "max_num_tokens": some(1, 8, 32, 64, 8192,
                                                                                              UNLIMITED),
                     "tokens_per_block": some(1, 2, 2, 8, 32, 1 << 20),
                     "capacity_scheduler_policy": some(*["MAX_UTILIZATION"] * 3, "GUARANTEED_NO_EVICT",
                                                       "STATIC_BATCH", "MAX_REQUESTS"),
                     "enable_chunked_prefill": FLAG,
                     "context_chunking_policy": some("FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"),
                     "two_step_look_ahead": FLAG},
    "sglang": {"max_running_requests": SLOTS, "max_prefill_tokens": some(1, 20, 16384, UNLIMITED),
               "chunked_prefill_size": some(None, 1, 8, 32, UNLIMITED),
               "schedule_policy": some("fcfs", "lpm", "lof", "random", "dfs-weight"),
               "schedule_conservativeness": some(1e-9, 1e-9, 0.3, 1.0, 1e9),
               "init_new_token_ratio": some(None, 1e-9, 1e-9, 0.05, 50.0), "enable_mixed_chunk": FLAG,
               "disable_radix_cache": FLAG, "ignore_eos": FLAG, "page_size": some(1, 1, 4, 16, 64),
               "context_length": ENGINE_LEN, "prefill_max_requests": some(None, 1, 2, UNLIMITED),
               "prefill_decode_interval": some(0, 0, 1, 5, UNLIMITED), "random_seed": some(0, 1, UNLIMITED)},
    "vllm": VLLM,
    "vllm-0": {"max_num_seqs": SLOTS, "max_num_batched_tokens": some(None, 2 * MODEL_LEN, UNLIMITED),
               "block_size": BLOCK, "watermark": WATERMARK, "preemption_mode": some("recompute", "swap"),
               "swap_bandwidth": some(1.0, 1e9, 25e9, 1e30), "kv_bytes_per_token": some(None, 1, 7, UNLIMITED)},
    "hybrid": {**VLLM, **BATCHES, "granularity": some("batch", "step"), "padded": FLAG, "max_batch_size": SLOTS,
               "reserve": some("paged", "paged", "declared", "exact", "pow2", "model"),
               "prefill": some("alone", "mixed"), "placement": PLACEMENT},
}
"""The values of every knob, by policy."""


@st.composite
def of(draw: st.DrawFn, name: str, world: Mapping[str, Any],
       pressed: Mapping[str, st.SearchStrategy[Any]] = MappingProxyType({})) -> Policy:
    """A policy of this name for a scenario with these fields.

    Half of its knobs or so keep their defaults, so that one extreme does not hide another; those that are `pressed`
    have values of these instead.
    """
    kept = draw(some(0, 1, 3))
    knobs = {knob: draw(values) for knob, values in (KNOBS.get(name, {}) | pressed).items()
             if knob in pressed or not kept or draw(st.integers(0, 3)) >= kept}
    if name in RULES:
        RULES[name](knobs, world)
    return POLICIES[name](**knobs)


def _vllm(knobs: Knobs, world: Mapping[str, Any]) -> None:
    """A budget holds a token of every sequence, and a whole prompt where prompts are not cut."""
    tokens = knobs.get("max_num_batched_tokens")
    if tokens is not None:
        seqs, longest = knobs.get("max_num_seqs") or 1, knobs.get("max_model_len") or world["max_model_len"]
        whole = 1 if knobs.get("enable_chunked_prefill", True) else longest
        knobs["max_num_batched_tokens"] = max(tokens, whole, seqs if seqs < UNLIMITED else 1)


def _static(knobs: Knobs, world: Mapping[str, Any]) -> None:
    """Who waits for a full batch is sent enough requests to fill one."""
    if knobs.get("max_wait") == inf and world["max_concurrency"]:
        knobs["max_batch_size"] = 1


def _hybrid(knobs: Knobs, world: Mapping[str, Any]) -> None:
    """What either side needs; whoever reserves counts its batch size as sequences."""
    _static(knobs, world)
    knobs["max_num_seqs"] = max(knobs.get("max_num_seqs") or 1, knobs.get("max_batch_size") or 1)
    if knobs.get("max_wait") == inf and world["max_concurrency"]:
        knobs["max_num_seqs"] = 1
    _vllm(knobs, world)


def _orca(knobs: Knobs, world: Mapping[str, Any]) -> None:
    if knobs.get("n_slots"):
        knobs["n_slots"] = min(knobs["n_slots"], world["kv_capacity_tokens"] or inf)


def _tgi(knobs: Knobs, world: Mapping[str, Any]) -> None:
    """Devices that pad neither cut prompts nor keep them; whole prompts are no longer than the budget of a prefill."""
    if knobs.get("max_batch_total_tokens"):
        knobs["max_batch_total_tokens"] = min(knobs["max_batch_total_tokens"], world["kv_capacity_tokens"] or inf)
    if knobs.get("requires_padding"):
        knobs |= {name: None for name in ("support_chunking", "prefix_caching") if name in knobs}
    chunks = knobs.get("support_chunking")
    if not (not knobs.get("requires_padding") if chunks is None else chunks):
        longest = knobs.get("max_input_tokens")
        prefill = knobs.get("max_batch_prefill_tokens") or world["max_model_len"]
        knobs["max_input_tokens"] = None if longest is None else min(longest, prefill)


def _dynamic(knobs: Knobs, _: Mapping[str, Any]) -> None:
    if preferred := knobs.get("preferred_batch_size"):
        knobs["max_batch_size"] = max(*preferred, knobs.get("max_batch_size") or 1)


def _sglang(knobs: Knobs, _: Mapping[str, Any]) -> None:
    for name in ("max_prefill_tokens", "chunked_prefill_size"):
        if knobs.get(name):
            knobs[name] = max(knobs[name], knobs.get("page_size", 1))


def _tensorrt_llm(knobs: Knobs, _: Mapping[str, Any]) -> None:
    if knobs.get("enable_chunked_prefill"):
        knobs["max_num_tokens"] = max(knobs.get("max_num_tokens", 8192), knobs.get("tokens_per_block", 32))


RULES = {"vllm": _vllm, "static": _static, "hybrid": _hybrid, "orca": _orca, "tgi": _tgi, "dynamic": _dynamic,
         "sglang": _sglang, "tensorrt_llm": _tensorrt_llm}
"""What makes knobs legal that are refused together, or in that world: they are changed as little as can be."""
