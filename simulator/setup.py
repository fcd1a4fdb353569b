"""Setup: what a scenario comes to before the first event - trace, lengths, verdicts, policy, pool and cost model.

The gate stands here: what can never be served is rejected before any policy sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

import traces
from cost_models import GPUS, CostModel, KvPool, ModelSpec, choose, cost_model, kv_pool, model_spec
from simulator.deployment import Deployment
from simulator.memory.base import UNLIMITED
from simulator.policies.base import Policy
from simulator.policies.making import make_policy
from simulator.scenario import Scenario
from traces import Declared, Trace

Ints = NDArray[np.int64]

VERDICTS = ("accepted", "longer than max_model_len", "prompt fills the engine's max_model_len",
            "never fits the KV pool")
"""What the gate says of a request, by its code."""


@dataclass(frozen=True, eq=False)
class Setup:
    """A scenario, resolved.

    Attributes:
        scenario: What was asked.
        trace: Its trace, with the arrivals of its load.
        declared: Declared lengths, and how many outputs they cut.
        prompt, output, max_tokens: Tokens by request index, after every cut and clip.
        verdict: Code into VERDICTS by request index.
        footprint: Tokens of memory that each request holds when it holds most.
        clipped: Outputs that the engine's own max_model_len cuts short.
        deployment: Facts for the policy.
        policy: With every knob filled in.
        pool: The four terms of the KV pool; None where the capacity was given.
        model: The model's shape.
        cost: The price of a step.
    """

    scenario: Scenario
    trace: Trace
    declared: Declared
    prompt: Ints
    output: Ints
    max_tokens: Ints
    verdict: Ints
    footprint: Ints
    clipped: int
    deployment: Deployment
    policy: Policy
    pool: KvPool | None
    model: ModelSpec
    cost: CostModel


def prepare(scenario: Scenario) -> Setup:
    """Resolve a scenario; whatever is wrong with it comes out here, in one line."""
    model = model_spec(scenario.model)
    gpu = GPUS[choose("GPU", scenario.gpu, GPUS)]
    model_len = scenario.max_model_len or model.max_model_len
    pool, capacity = _pool(scenario, model)
    trace = load_trace(scenario)
    declared = traces.declare(trace, scenario.max_tokens, model_len)
    prompt, output = trace.prompt, declared.output
    verdict = np.where(prompt + output > model_len, 1, 0)
    max_tokens = np.maximum(np.minimum(declared.max_tokens, model_len - prompt), 1)
    deployment = Deployment(capacity, model_len, scenario.gpu, gpu.device_bytes,
                            *_longest(verdict == 0, prompt, output, max_tokens),
                            scenario.max_concurrency or UNLIMITED)
    policy = make_policy(scenario.policy, scenario.knobs).resolve(deployment)
    verdict, output, max_tokens, clipped = _engine_limit(policy, verdict, prompt, output, max_tokens)
    memory = policy.memory(deployment, output)
    footprint = memory.footprint(prompt, output, max_tokens)
    verdict = np.where((verdict == 0) & (footprint > memory.longest_run()), 3, verdict)
    cost = scenario.cost_model
    if not isinstance(cost, CostModel):
        cost = cost_model(cost, model=model, gpu=scenario.gpu, dtype=scenario.dtype, kv_dtype=scenario.kv_dtype,
                          tensor_parallel_size=scenario.tensor_parallel_size)
    return Setup(scenario, trace, declared, prompt, output, max_tokens, verdict, footprint * memory.block_size, clipped,
                 deployment, policy, pool, model, cost)


def load_trace(scenario: Scenario) -> Trace:
    """The scenario's trace with the arrivals of its load."""
    trace = scenario.trace
    if not isinstance(trace, Trace):
        trace = traces.load(trace, seed=scenario.seed)
    if scenario.num_prompts is not None:
        trace = trace.head(scenario.num_prompts)
    if scenario.load == "saturated":
        return trace.saturated()
    if scenario.request_rate is not None:
        rng = np.random.default_rng([scenario.seed, 1])
        return trace.at_rate(scenario.request_rate, scenario.burstiness, rng)
    return trace.scale_rate(scenario.rate_scale)


def _pool(scenario: Scenario, model: ModelSpec) -> tuple[KvPool | None, int]:
    """The KV pool's terms, and its capacity in tokens."""
    given = scenario.kv_capacity_tokens
    if given is not None:
        return None, UNLIMITED if given == inf else int(given)
    pool = kv_pool(model, scenario.gpu, utilization=scenario.gpu_memory_utilization, dtype=scenario.dtype,
                   kv_dtype=scenario.kv_dtype, tensor_parallel_size=scenario.tensor_parallel_size)
    return pool, pool.tokens


def _longest(accepted: NDArray[np.bool_], prompt: Ints, output: Ints, max_tokens: Ints) -> tuple[int, int, int]:
    """Longest declared request, longest true request and longest output among the accepted."""
    if not accepted.any():
        return 1, 1, 1
    return (int((prompt + max_tokens)[accepted].max()), int((prompt + output)[accepted].max()),
            int(output[accepted].max()))


def _engine_limit(policy: Policy, verdict: Ints, prompt: Ints, output: Ints,
                  max_tokens: Ints) -> tuple[Ints, Ints, Ints, int]:
    """What the engine itself refuses or cuts, where it has a max_model_len of its own."""
    limit = getattr(policy, "max_model_len", None)
    if limit is None:
        return verdict, output, max_tokens, 0
    verdict = np.where((verdict == 0) & (prompt >= limit), 2, verdict)
    room = np.maximum(limit - prompt, 1)
    clipped = int(((output > room) & (verdict == 0)).sum())
    return verdict, np.minimum(output, room), np.minimum(max_tokens, room), clipped
