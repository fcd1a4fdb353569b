"""Setup: what a scenario comes to before the first event: trace, lengths, policy, pool and cost model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

import traces
from cost_models import (
    CapturedGraphs,
    CostModel,
    KvPool,
    ModelSpec,
    Noise,
    checked,
    cost_model,
    gpu_spec,
    graph_sizes,
    kv_pool,
    model_spec,
    noise_for,
)
from simulator.deployment import Deployment
from simulator.errors import choose
from simulator.frozen import Frozen, Kept, own_copy
from simulator.gate import Rows, rows_for_engine, rows_for_model
from simulator.kinds import PROFILE, SHAPE, meant_as
from simulator.memory.base import UNLIMITED
from simulator.patience import Patience
from simulator.policies import POLICIES
from simulator.policies.base import Policy
from simulator.policies.making import make_policy
from simulator.policies.own import resolved
from simulator.replication import check_trace
from simulator.scenario import Scenario
from simulator.scenarios.held import files_of, held, unchanged
from simulator.traffic import classed, longest_request, patience_of, read_trace, under_load
from traces import Declared, Trace

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Setup(Kept):
    """A scenario, resolved.

    Attributes:
        scenario: What was asked.
        digest: Of its trace as it was read.
        trace: That trace, with the arrivals of the load.
        declared: Declared lengths, and how many outputs they cut.
        rows: Its requests, and what the gate says of each.
        deployment: Facts for the policy.
        pool: The four terms of the KV pool; None where the capacity was given.
        model: The model's shape.
        cost: The price of a step.
        policy: With every knob filled in; a copy for whoever asks.
        noise: What draws how long the steps of a replica last, by its number; None: as long as they cost.
        scheduling: What the scheduler adds to a step, in ns: (constant, for each request that runs).
        request_overhead: What a request spends outside the engine's steps, in ns.
        truncated: Requests that lost tokens because the model does not hold them.
        patience: How long the client waits.
        files: Digests of the files that the scenario names, by path, when they were read.
    """

    scenario: Scenario
    digest: str
    trace: Trace
    declared: Declared
    rows: Rows
    deployment: Deployment
    pool: KvPool | None
    model: ModelSpec
    cost: CostModel
    policy: Policy = own_copy()
    noise: Callable[[int], Noise] | None = None
    scheduling: tuple[int, int] = (0, 0)
    request_overhead: int = 0
    truncated: int = 0
    patience: Patience = field(default_factory=Patience)
    files: Mapping[str, str] = field(default_factory=Frozen)

    @property
    def prompt(self) -> Ints:
        """Prompt tokens by request index."""
        return self.rows.prompt

    @property
    def output(self) -> Ints:
        """Output tokens by request index, after every cut and clip."""
        return self.rows.output

    @property
    def max_tokens(self) -> Ints:
        """Declared output tokens by request index."""
        return self.rows.max_tokens

    @property
    def verdict(self) -> NDArray[np.int8]:
        """What the gate says, as a code into `gate.VERDICTS`, by request index."""
        return self.rows.verdict

    @property
    def most_outstanding(self) -> int:
        """Most requests that one replica has: what its front end takes, and what the router hands it."""
        return min(self.policy.max_outstanding, self.scenario.queue_limit or UNLIMITED)

    @property
    def turns_wait(self) -> bool:
        """Whether any request waits for the answer to another one."""
        return self.scenario.turns == "wait" and self.trace.has_turns

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Which requests wait for the answer to another one, by request index."""
        parent = self.trace.parent
        return np.zeros(len(self.trace), bool) if parent is None or not self.turns_wait else parent >= 0

    @property
    def footprint(self) -> Ints:
        """Tokens of memory that each request holds when it holds most."""
        return self.rows.footprint


def prepare(scenario: Scenario) -> Setup:
    """Resolve a scenario; whatever is wrong with it comes out here, in one line.

    Raises FileChanged where a file that it names changes meanwhile, or is not what the scenario holds.
    """
    whole = held(scenario)
    with unchanged(whole):
        return replace(_resolved(whole), scenario=scenario, files=files_of(whole))


def _resolved(scenario: Scenario) -> Setup:
    with meant_as(SHAPE, scenario.model):
        model = model_spec(scenario.model)
    model_len = longest_request(scenario)
    pool, capacity = _pool(scenario, model)
    source = read_trace(scenario)
    check_trace(scenario, source)
    trace, cut = classed(under_load(source, scenario), scenario.classes), 0
    if scenario.too_long == "truncate":
        trace, cut = traces.truncated(trace, model_len)
    declared = traces.declare(trace, scenario.max_tokens, model_len)
    rows = rows_for_model(trace.prompt, declared.output, declared.max_tokens, model_len)
    asked = make_policy(scenario.policy, scenario.knobs, scenario.files)
    # What no memory holds must not shape the engine's defaults, which shape the memory: the gate comes in between.
    deployment = _deployment(scenario, capacity, model_len, rows)
    rows = rows_for_engine(rows, resolved(asked, deployment), deployment)
    deployment = _deployment(scenario, capacity, model_len, rows)
    cost = cost_of(scenario)
    overhead = _request_overhead(scenario, cost)
    return Setup(scenario, source.digest, trace, declared, rows, deployment, pool, model, cost,
                 resolved(asked, deployment), _noise(scenario, cost), scheduling(scenario, asked.name), overhead, cut,
                 patience_of(scenario, streams=asked.streams, overhead=overhead))


def _deployment(scenario: Scenario, capacity: int, model_len: int, rows: Rows) -> Deployment:
    return Deployment(capacity, model_len, scenario.gpu, gpu_spec(scenario.gpu).device_bytes, *rows.longest(),
                      scenario.max_concurrency or UNLIMITED,
                      model_spec(scenario.model).kv_bytes_per_token(scenario.kv_dtype))


def cost_of(scenario: Scenario) -> CostModel:
    """What a step costs, whatever the trace. Raises CostModelError for what cannot be had, FileChanged for a file that
    is not what the scenario holds.
    """
    cost = scenario.cost_model
    if not isinstance(cost, CostModel):
        with unchanged(scenario, "model", "cost_model"), meant_as(PROFILE, cost):
            cost = cost_model(cost, model=model_spec(scenario.model), gpu=scenario.gpu, dtype=scenario.dtype,
                              kv_dtype=scenario.kv_dtype, tensor_parallel_size=scenario.tensor_parallel_size)
    sizes = graph_sizes(scenario.cuda_graph_sizes)
    return CapturedGraphs(checked(cost), sizes) if sizes else checked(cost)


def _noise(scenario: Scenario, cost: CostModel) -> Callable[[int], Noise] | None:
    if scenario.noise is None:
        return None
    noise = partial(noise_for, cost, scenario.noise, scenario.seed)
    noise(0)    # a cost model that states no error is refused here
    return noise


def _request_overhead(scenario: Scenario, cost: CostModel) -> int:
    """What was asked for, else what the cost model states, in ns."""
    return cost.request_overhead if scenario.request_overhead is None else round(scenario.request_overhead * 1e6)


def scheduling(scenario: Scenario, policy: str) -> tuple[int, int]:
    """What the scheduler of this policy adds to a step, in ns: a constant, and for each request that runs."""
    for name in scenario.scheduler_overhead:
        choose("policy of scheduler_overhead", name, dict.fromkeys(("all", *POLICIES, policy)))
    constant, each = scenario.scheduler_overhead.get(policy, scenario.scheduler_overhead.get("all", (0.0, 0.0)))
    return round(constant * 1e6), round(each * 1e6)


def _pool(scenario: Scenario, model: ModelSpec) -> tuple[KvPool | None, int]:
    """The KV pool's terms, and its capacity in tokens."""
    given = scenario.kv_capacity_tokens
    if given is not None:
        return None, UNLIMITED if given == inf else int(given)
    pool = kv_pool(model, scenario.gpu, utilization=scenario.gpu_memory_utilization, dtype=scenario.dtype,
                   kv_dtype=scenario.kv_dtype, tensor_parallel_size=scenario.tensor_parallel_size)
    return pool, pool.tokens
