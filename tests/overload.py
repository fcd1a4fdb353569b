"""Overload in a tight pool: how many steps, plans and preemptions a policy needs for the tokens of its requests.

The load is a factor of what the policy serves when it is saturated. Tests and a table share the cases.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from worlds import trace_of

import simulator as sim
from cost_models import Constant

LOADS = (0.5, 1, 2, 5, 10)
REQUESTS, CAPACITY, LONGEST = 120, 600, 400
STEP = 10 ** 6
"""Nanoseconds a step lasts."""
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "static": ("static", {}),
    "ft": ("ft", {}),
    "dynamic": ("dynamic", {}),
    "orca": ("orca", {}),
    "tgi": ("tgi", {}),
    "tensorrt_llm": ("tensorrt_llm", {}),
    "tensorrt_llm, MAX_UTILIZATION": ("tensorrt_llm", {"capacity_scheduler_policy": "MAX_UTILIZATION"}),
    "sglang": ("sglang", {}),
    "sglang, bold": ("sglang", {"init_new_token_ratio": 0.01, "schedule_conservativeness": 0.01}),
    "vllm": ("vllm", {}),
    "vllm, priority": ("vllm", {"scheduling_policy": "priority"}),
    "vllm, first chunks admitted": ("vllm", {"scheduler_reserve_full_isl": False, "max_num_batched_tokens": 32}),
    "vllm-0, recompute": ("vllm-0", {}),
    "vllm-0, swap": ("vllm-0", {"preemption_mode": "swap"}),
    "hybrid, paged batches": ("hybrid", {"granularity": "batch"}),
}
"""Policy and knobs by name."""


class Counts(NamedTuple):
    """What a run came to: who ended, and what it took a token (prompt and output) and a request."""

    ended: int
    steps: float
    plans: float
    preemptions: float
    again: float


@cache
def _lengths() -> list[tuple[int, int, int]]:
    """Prompt, output and declared output of each request."""
    rng = np.random.default_rng(0)
    prompt, output = rng.integers(8, 200, REQUESTS).tolist(), rng.integers(1, 120, REQUESTS).tolist()
    return [(p, o, min(2 * o, 200)) for p, o in zip(prompt, output, strict=True)]


def _run(name: str, gap: float, load: str) -> sim.Result:
    policy, knobs = CASES[name]
    at = np.cumsum(np.random.default_rng(1).exponential(gap, REQUESTS)).astype(int).tolist()
    rows = [(since, *lengths) for since, lengths in zip(at, _lengths(), strict=True)]
    return sim.simulate(trace_of(rows), policy, knobs=knobs, load=load, kv_capacity_tokens=CAPACITY,
                        max_model_len=LONGEST, cost_model=Constant(STEP))


@cache
def _gap(name: str) -> float:
    """Nanoseconds between two requests at which they come as fast as they are served."""
    return 1e9 / _run(name, 0.0, "saturated").summary()["request_throughput"]


def counts(name: str, load: float) -> Counts:
    """Send so many times what the policy serves, and count."""
    result = _run(name, _gap(name) / load, "trace")
    summary, tokens = result.summary(), sum(prompt + output for prompt, output, _ in _lengths())
    ended = summary["completed"] + summary["rejected"] + summary["failed"]
    return Counts(ended, summary["steps"] / tokens, len(result.record.plans) / tokens,
                  summary["preemptions"] / REQUESTS, summary["recomputed_tokens"] / tokens)
