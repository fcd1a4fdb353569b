"""Scenario: all arguments of a run as one plain dataclass. It resolves nothing; `scenario_checks` says what may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any, Literal

import numpy as np

from cost_models import CostModel, ModelSpec
from simulator.frozen import frozen, of_python, own_copy
from simulator.mistaken import check_field
from simulator.policies import Policy
from simulator.scenario_checks import MAPPINGS, check
from traces import Trace

Load = Literal["saturated", "trace"]
TooLong = Literal["reject", "truncate"]
Turns = Literal["wait", "recorded"]
READ_FROM = frozenset({"trace", "reading", "mix", "tenants", "sample", "prompt_scale", "output_scale", "repeat",
                       "seed"})
"""Fields that say which trace is read."""
HELD_BY = frozenset({"model", "max_model_len", "max_tokens", "too_long", "turns"})
"""Fields that say which of its requests the model holds, and so where num_prompts cuts it."""
FRACTIONS = ("prompt_scale", "output_scale", "rate_scale", "request_rate", "burstiness", "sample", "cap_gaps",
             "ttft_timeout", "request_timeout", "retry_backoff", "startup_delay", "cooldown", "request_overhead",
             "noise", "error_band", "gpu_memory_utilization")
"""Fields that are numbers and no counts."""


@dataclass(frozen=True)
class Scenario:
    """What to simulate. `simulator.run(scenario)` answers it, the same each time.

    Example:
        >>> asked = Scenario(policy="vllm", knobs={"max_num_seqs": 32}, num_prompts=100)
        >>> asked.but(knobs={"max_num_seqs": 64}).knobs, asked.load, asked.gpu
        ({'max_num_seqs': 64}, 'trace', 'h100-80')

    Attributes:
        trace: The name of a bundled trace (`batchsim list traces`) or a file; in Python also a Trace.
        policy: The name of a bundled policy (`batchsim list policies`) or FILE.py:CLASS; in Python also a policy.
        knobs: Knobs of a policy given by name, such as {"max_num_seqs": 32}.
        load: "saturated": every request is queued at time 0, or, where the engine's front end takes only so many, as
            soon as it takes one more; "trace": at the trace's own times, and whom the front end refuses has failed.
        num_prompts: Stop after so many requests that the model can hold, the last step of all that is done to a trace.
        reading: How a trace file is read, where it does not tell by itself: format, columns, unit, lenient, limit,
            window and prompts, as `traces.load` takes them.
        mix: Other traces whose requests come too, each so many times as fast as it was recorded, by name or file.
        tenants: Use only the requests of these tenants, each tenant's so many times as fast.
        sample: Use this share of the requests, with lengths and load over time as they are; above 0, at most 1.
        prompt_scale: Make prompts so many times as long.
        output_scale: Make outputs, and the lengths that the trace declares, so many times as long.
        repeat: Go through the trace so many times; prompts of different rounds begin with nothing in common.
        shape: Rates over time, such as "ramp:1-10/300s", "stage:5/60s,10/60s", "burst:x5/10s@60s", joined by "+".
        rate_scale: Speed the trace's own times up by this factor; users think as long as before.
        cap_gaps: No gap between two of these times, and no think time, is longer than so many seconds; None: as it is.
        request_rate: Replace the times by a process of so many requests a second; inf: all at 0.
        burstiness: Shape of the Gamma gaps of that process: 1 is Poisson, inf constant.
        turns: "wait": a later turn of a conversation is sent once the one before it is answered and its user has
            thought, or, where the trace tells no think times, at its own time at the earliest; turns after one that is
            not answered are skipped. "recorded": every turn is sent at its own time.
        require_prefixes: Decline a trace that does not tell which prompts begin alike.
        max_concurrency: Most requests outstanding at the client.
        ttft_timeout: Seconds after which the client cancels a request without a first token; None: it waits, as it does
            where load is saturated.
        request_timeout: Seconds after which it cancels a request without its whole answer; None: it waits, as
            above.
        max_retries: How often the client sends a request again that timed out or was refused.
        retry_backoff: Seconds before the first of these tries; doubled from one to the next.
        max_tokens: Declared output lengths: "exact", N, "xF", "model", or None for the default rule.
        max_model_len: Longest prompt plus output, in tokens; None: the model's.
        too_long: What becomes of longer requests: "reject", or "truncate": the prompt loses its end, as far as needed.
        model: A model id (`batchsim list models`), a YAML file with a shape, or its keys; in Python also a ModelSpec.
        gpu: A GPU id (`batchsim list gpus`).
        dtype: Weights: "bf16" or "fp8".
        kv_dtype: KV cache: "bf16" or "fp8".
        tensor_parallel_size: GPUs that share the model.
        replicas: Engines of that size; more than one stand behind a router.
        router: Which of them gets a request: "round-robin", "random", "least-outstanding" requests, "least-kv" in use,
            "power-of-two" choices, "session-affinity" or "prefix-affinity".
        queue_limit: Most requests outstanding at one replica; None: as many as the engine's front end takes.
        overflow: What becomes of a request that comes when all replicas are at that limit: "shed": it is refused and
            may be tried again; "fcfs", "priority" and "fair": it waits at the router, to be handed on in the order of
            arrival, the most urgent first, or each tenant in turn, whatever was handed on to it without a wait.
        classes: What is due to each tenant, such as {"chat": {"priority": 0, "ttft": 500}}: the priority of its
            requests, for engines and an overflow that heed it, and objectives in place of those of goodput.
        autoscale: Start and drain replicas as the load asks for: "queue:N" requests outstanding a replica, or
            "utilization:X", the share of slots that run; None: there are always as many.
        min_replicas: Fewest replicas with autoscale.
        max_replicas: Most replicas with autoscale.
        startup_delay: Seconds from the order of a replica until it takes requests.
        cooldown: Seconds for which fewer replicas must have been enough before one is drained.
        isolation: Also simulate each tenant alone on the same replicas, and tell by how much the others slow it down.
        cost_model: "auto", the name of one (`batchsim list cost-models`) or a YAML file; in Python also a CostModel.
        cuda_graph_sizes: Batch sizes to which decode-only steps are padded: "vllm", "none", or numbers as "1,2,4,8".
        scheduler_overhead: Host time that a policy's scheduler adds to a step: (ms, ms for each running request), by
            policy name, or by "all" for those without an entry of their own.
        request_overhead: Milliseconds that a request spends outside the engine's steps (API, tokenising); None: what
            the cost model states. It delays what a client receives, and no step.
        noise: Steps last longer or shorter at random: "profile" draws from the residuals of the cost model, a number
            is the standard deviation over the mean; None: no noise.
        error_band: Also simulate with every step shorter and longer: "stated" by the bias that the cost model states, a
            number by so many percent; None: no band.
        gpu_memory_utilization: Share of the device memory that the engine takes.
        kv_capacity_tokens: KV pool in tokens; inf: no bound; None: what the GPU leaves.
        goodput: Service objectives in milliseconds, such as {"ttft": 500, "tpot": 50}.
        prices: Dollars for an hour of one GPU, by GPU id, such as {"h100-80": 2.5}; without one, GPU-hours are told.
        seed: Of everything drawn.
        exact: Ask the policy at every step instead of fast-forwarding; the answer is the same.
        read: The trace, if it is at hand already, with all that was done to it up to num_prompts, so that more runs on
            it need not read it again. No part of what is asked.
        files: Digests of files that it names, by path, as they were when they were first read: a run declines others.
            No part of what is asked.
    """

    trace: Trace | str = "azure-conv-2023"
    policy: Policy | str = own_copy("vllm")
    knobs: Mapping[str, Any] = field(default_factory=dict)
    load: Load = "trace"
    num_prompts: int | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    mix: Mapping[str, float] = field(default_factory=dict)
    tenants: Mapping[str, float] = field(default_factory=dict)
    sample: float | None = None
    prompt_scale: float = 1.0
    output_scale: float = 1.0
    repeat: int = 1
    shape: str | None = None
    rate_scale: float = 1.0
    cap_gaps: float | None = None
    request_rate: float | None = None
    burstiness: float = 1.0
    turns: Turns = "wait"
    require_prefixes: bool = False
    max_concurrency: int | None = None
    ttft_timeout: float | None = None
    request_timeout: float | None = None
    max_retries: int = 0
    retry_backoff: float = 1.0
    max_tokens: str | int | None = None
    max_model_len: int | None = None
    too_long: TooLong = "reject"
    model: ModelSpec | str = "llama-3.1-8b"
    gpu: str = "h100-80"
    dtype: str = "bf16"
    kv_dtype: str = "bf16"
    tensor_parallel_size: int = 1
    replicas: int = 1
    router: str = "round-robin"
    queue_limit: int | None = None
    overflow: str = "shed"
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    autoscale: str | None = None
    min_replicas: int = 1
    max_replicas: int | None = None
    startup_delay: float = 60.0
    cooldown: float = 300.0
    isolation: bool = False
    cost_model: CostModel | str = "auto"
    cuda_graph_sizes: str = "none"
    scheduler_overhead: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    request_overhead: float | None = None
    noise: str | float | None = None
    error_band: str | float | None = None
    gpu_memory_utilization: float = 0.92
    kv_capacity_tokens: float | None = None
    goodput: Mapping[str, float] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    exact: bool = False
    read: Trace | None = field(default=None, repr=False, compare=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in FIELDS:
            if name in MAPPINGS or isinstance(getattr(self, name), np.generic):
                object.__setattr__(self, name, of_python(getattr(self, name)))
        check(self)
        for name in (*MAPPINGS, "files"):
            kept = frozen(getattr(self, name), f"scenario.but({name}={{...}}) makes a scenario with other ones")
            object.__setattr__(self, name, kept)
        for name in FRACTIONS:    # so that 2 and 2.0 ask, and answer, the same
            if type(value := getattr(self, name)) is int:
                object.__setattr__(self, name, float(value))

    def __hash__(self) -> int:
        """Of the fields that hold text, a number or nothing; scenarios that differ in others only have the same."""
        return hash(tuple(each for name in FIELDS if isinstance(each := getattr(self, name), str | Number | None)))

    @property
    def behind_router(self) -> bool:
        """Whether there is a router between client and engine."""
        return self.replicas > 1 or self.queue_limit is not None or self.autoscale is not None

    @property
    def most_replicas(self) -> int:
        """How many replicas there may be at once."""
        return self.replicas if self.autoscale is None or self.max_replicas is None else self.max_replicas

    def but(self, **changes: Any) -> Scenario:
        """The same scenario with some fields changed; one that it does not have is an InputError."""
        for name in changes:
            check_field(name, self.__dataclass_fields__)
        return replace(self, **({} if self._still_read(changes) else {"read": None}) | changes)

    def _still_read(self, changes: Mapping[str, Any]) -> bool:
        """Whether the trace at hand is that of the changed scenario, or can be cut to it."""
        if self.num_prompts is None:
            return not READ_FROM & set(changes)
        asked = changes.get("num_prompts", self.num_prompts)
        return not (READ_FROM | HELD_BY) & set(changes) and asked is not None and asked <= self.num_prompts

    def to_dict(self) -> dict[str, Any]:
        """All that is asked, as plain values; objects are named, a trace with its digest."""
        plain = {name: getattr(self, name) for name in FIELDS}
        for name in MAPPINGS:
            plain[name] = dict(plain[name])
        if isinstance(self.trace, Trace):
            plain["trace"] = f"{self.trace.name} ({self.trace.digest})"
        if isinstance(self.policy, Policy):
            plain["policy"], plain["knobs"] = self.policy.name, self.policy.settings()
        for name in ("model", "cost_model"):
            plain[name] = getattr(plain[name], "name", plain[name])
        return {name: "inf" if value == float("inf") else value for name, value in plain.items()}


FIELDS = tuple(name for name in Scenario.__dataclass_fields__ if name not in ("read", "files"))
"""All that a scenario asks, in order."""


def scenario_of(**fields: Any) -> Scenario:
    """A scenario with these fields; one that it does not have is an InputError with the nearest name."""
    for name in fields:
        check_field(name, FIELDS)
    return Scenario(**fields)
