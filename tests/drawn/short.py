"""Short of memory: worlds in which many run at once and their answers outgrow the pool, so that somebody must give way.

`traces` and `fields` tell what comes and what there is, `KNOBS` which values of a policy's knobs let memory bind. Where
a rule reserves memory for a whole life, nobody gives way, and the others wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn import traffic
from drawn.knobs import FLAG, MODEL_LEN, Knobs, some
from hypothesis import strategies as st

from simulator.memory import UNLIMITED
from traces import Trace

HUGE = 10 ** 6
"""A model length that no request comes near: what is declared may be far more than what is said."""
SMALL, SLOTS, NO_WATERMARK = some(1, 2, 3, 4, 8), some(None, 5, 12, 64, UNLIMITED), some(0.0, 0.0, 0.0, 0.0, 0.1)
VLLM = {"max_num_seqs": SLOTS, "max_num_batched_tokens": some(None, 16, 50, 200, UNLIMITED), "block_size": SMALL,
        "enable_prefix_caching": FLAG, "long_prefill_token_threshold": some(0, 0, 3, 17), "watermark": NO_WATERMARK,
        "max_model_len": some(None)}
KNOBS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "vllm": VLLM,
    "vllm-0": {"max_num_seqs": SLOTS, "block_size": SMALL, "watermark": NO_WATERMARK,
               "preemption_mode": some("recompute", "swap"), "swap_bandwidth": some(1e9, 1e30),
               "kv_bytes_per_token": some(None, 1, 7)},
    "hybrid": {**VLLM, "max_batch_size": some(5, 12, 64), "reserve": some("paged"), "max_wait": some(0.0, 37e-6)},
    "sglang": {"max_running_requests": SLOTS, "max_prefill_tokens": some(20, 16384, 16384),
               "chunked_prefill_size": some(None, 8, 32, UNLIMITED), "page_size": some(1, 1, 4, 8),
               "schedule_conservativeness": some(1e-9, 1e-9, 0.3), "init_new_token_ratio": some(None, 1e-9),
               "ignore_eos": some(False), "context_length": some(None), "prefill_max_requests": some(None, None, 2),
               "prefill_decode_interval": some(0, 0, 0, 5)},
    "tensorrt_llm": {"max_batch_size": some(5, 64, 2048), "max_num_tokens": some(32, 64, 8192),
                     "tokens_per_block": SMALL, "capacity_scheduler_policy": some("MAX_UTILIZATION")},
}
"""By policy: those that send somebody back, and what makes them; all other knobs are as in any world."""
LEAST = {"vllm": 12, "vllm-0": 12, "hybrid": 12, "tensorrt_llm": 6, "sglang": 1}
"""Fewest preemptions to be expected of one world of each kind. SGLang lets in only who fits with a whole answer."""


@st.composite
def traces(draw: st.DrawFn, unit: int) -> Trace:
    """Requests that come faster than they are served: often several kinds of prompts, often of different priorities."""
    count = draw(st.integers(6, traffic.MOST))
    prompt = draw(st.lists(st.integers(1, 30), min_size=count, max_size=count))
    output = draw(st.lists(st.integers(10, 80), min_size=count, max_size=count))
    gaps = draw(st.lists(draw(some(st.just(0), st.integers(0, unit), some(0, 0, 0, 15 * unit + 1), some(unit))),
                         min_size=count - 1, max_size=count - 1))
    names = tuple(draw(st.lists(st.sampled_from("ab"), min_size=count, max_size=count)))
    columns: Knobs = {"tenant": names, "session": names}
    if draw(st.integers(0, 2)):
        columns["priority"] = np.array(draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    if draw(st.integers(0, 2)):
        columns |= draw(traffic.alike(prompt))
    elif draw(st.booleans()):
        columns |= draw(traffic.turns(unit, prompt, output))
    return Trace("short", np.cumsum([0, *gaps], dtype=np.int64), np.array(prompt), np.array(output), **columns)


@st.composite
def fields(draw: st.DrawFn, trace: Trace) -> Knobs:
    """A pool that holds the longest request and one to three more; some declare, and some models hold, far more."""
    need = int((trace.prompt + trace.output).max())
    return {"max_model_len": draw(some(MODEL_LEN, MODEL_LEN, HUGE)), "turns": draw(some("wait", "recorded")),
            "max_tokens": draw(some(None, "exact", "x1.3", "model")), "too_long": "truncate",
            "kv_capacity_tokens": need + 16 + draw(some(0, need // 2, need, need, 2 * need)),
            "load": draw(some("trace", "trace", "saturated")), "repeat": draw(some(1, 1, 2))}
