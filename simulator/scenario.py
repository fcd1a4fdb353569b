"""Scenario: all arguments of a run as one plain dataclass. It checks values by themselves and resolves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import Any, Literal

from cost_models import CostModel, ModelSpec
from simulator.errors import InputError, choose
from simulator.memory.base import UNLIMITED
from simulator.policies import Policy
from traces import Trace

Load = Literal["saturated", "trace"]
MOST_BIAS = 100
"""Percent; steps that much shorter would take no time."""


@dataclass(frozen=True)
class Scenario:
    """What to simulate. `simulator.run(scenario)` answers it, the same each time.

    Attributes:
        trace: A Trace, the name of a bundled one, or a file.
        policy: A policy object or the name of a bundled one.
        knobs: Knobs of a policy given by name, such as {"max_num_seqs": 32}.
        load: "saturated": every request is queued at time 0, or, where the engine's front end takes only so many, as
            soon as it takes one more; "trace": at the trace's own times, and whom the front end refuses has failed.
        num_prompts: Use only the first so many rows.
        rate_scale: Speed the trace's own times up by this factor.
        request_rate: Replace the times by a process of so many requests a second; inf: all at 0.
        burstiness: Shape of the Gamma gaps of that process: 1 is Poisson, inf constant.
        max_concurrency: Most requests outstanding at the client.
        max_tokens: Declared output lengths: "exact", N, "xF", "model", or None for the default rule.
        max_model_len: Longest prompt plus output, in tokens; None: the model's.
        model: A model id, a ModelSpec, or a YAML file with a shape.
        gpu: A GPU id.
        dtype: Weights: "bf16" or "fp8".
        kv_dtype: KV cache: "bf16" or "fp8".
        tensor_parallel_size: GPUs that share the model.
        cost_model: A CostModel, "auto", or the name of one.
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
        seed: Of everything drawn.
        exact: Ask the policy at every step instead of fast-forwarding; the answer is the same.
    """

    trace: Trace | str = "azure-conv-2023"
    policy: Policy | str = "vllm"
    knobs: Mapping[str, Any] = field(default_factory=dict)
    load: Load = "trace"
    num_prompts: int | None = None
    rate_scale: float = 1.0
    request_rate: float | None = None
    burstiness: float = 1.0
    max_concurrency: int | None = None
    max_tokens: str | int | None = None
    max_model_len: int | None = None
    model: ModelSpec | str = "llama-3.1-8b"
    gpu: str = "h100-80"
    dtype: str = "bf16"
    kv_dtype: str = "bf16"
    tensor_parallel_size: int = 1
    cost_model: CostModel | str = "auto"
    cuda_graph_sizes: str = "none"
    scheduler_overhead: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    request_overhead: float | None = None
    noise: str | float | None = None
    error_band: str | float | None = None
    gpu_memory_utilization: float = 0.92
    kv_capacity_tokens: float | None = None
    goodput: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    exact: bool = False

    def __post_init__(self) -> None:
        if self.load not in ("saturated", "trace"):
            raise InputError(f"load must be saturated or trace, not {self.load!r}")
        for name in ("num_prompts", "max_concurrency", "max_model_len", "tensor_parallel_size"):
            _check_count(name, getattr(self, name))
        for name in ("rate_scale", "request_rate", "burstiness", "kv_capacity_tokens", "gpu_memory_utilization"):
            _check_above_zero(name, getattr(self, name))
        if self.gpu_memory_utilization > 1:
            raise InputError(f"gpu_memory_utilization must be at most 1, not {self.gpu_memory_utilization}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed must be a whole number of at least 0, not {self.seed!r}")
        if self.kv_capacity_tokens not in (None, inf) and self.kv_capacity_tokens != int(self.kv_capacity_tokens or 0):
            raise InputError(f"kv_capacity_tokens must be a whole number or inf, not {self.kv_capacity_tokens!r}")
        for name in ("knobs", "goodput", "scheduler_overhead"):
            if not isinstance(getattr(self, name), Mapping):
                raise InputError(f"{name} must map names to values, not {getattr(self, name)!r}")
        for policy, overhead in self.scheduler_overhead.items():
            _check_not_negative(f"scheduler_overhead of {policy}", *_pair(overhead))
        _check_not_negative("request_overhead", self.request_overhead or 0)
        if self.noise not in (None, "profile"):
            _check_not_negative("noise, if not profile,", self.noise)
        if self.error_band not in (None, "stated"):
            _check_above_zero("error_band", self.error_band)
            if not self.error_band < MOST_BIAS:    # type: ignore[operator]
                raise InputError(f"error_band must be below {MOST_BIAS} percent, not {self.error_band}")
        if not isinstance(self.exact, bool):
            raise InputError(f"exact must be true or false, not {self.exact!r}")
        if not isinstance(self.trace, Trace | str):
            raise InputError(f"trace must be a Trace, a name or a file, not {self.trace!r}")
        if not isinstance(self.policy, Policy | str):
            raise InputError(f"policy must be a name or a policy object such as Vllm(), not {self.policy!r}")
        if self.request_rate is not None and self.rate_scale != 1:
            raise InputError("rate_scale speeds up the trace's own times, and request_rate replaces them: give one")
        for metric, limit in self.goodput.items():
            if metric not in ("ttft", "tpot", "e2el"):
                raise InputError(f"unknown goodput objective {metric!r} (known: ttft, tpot, e2el)")
            _check_above_zero(f"goodput {metric}", limit)

    def but(self, **changes: Any) -> Scenario:
        """The same scenario with some fields changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values; objects are named, a trace with its digest."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("knobs", "goodput", "scheduler_overhead"):
            plain[name] = dict(plain[name])
        if isinstance(self.trace, Trace):
            plain["trace"] = f"{self.trace.name} ({self.trace.digest})"
        if isinstance(self.policy, Policy):
            plain["policy"], plain["knobs"] = self.policy.name, self.policy.settings()
        for name in ("model", "cost_model"):
            plain[name] = getattr(plain[name], "name", plain[name])
        return {name: "inf" if value == float("inf") else value for name, value in plain.items()}


def scenario_of(**fields: Any) -> Scenario:
    """A scenario with these fields; one that it does not have is an InputError with the nearest name."""
    for name in fields:
        choose("field of a scenario", name, Scenario.__dataclass_fields__)
    return Scenario(**fields)


def _check_count(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    if value > UNLIMITED:
        raise InputError(f"{name} must be at most {UNLIMITED} or inf, not {value}")


def _pair(value: object) -> tuple[object, ...]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"scheduler_overhead takes two numbers, ms and ms for each running request, not {value!r}")
    return tuple(value)


def _check_not_negative(name: str, *found: object) -> None:
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise InputError(f"{name} must be a number of at least 0, not {value!r}")


def _check_above_zero(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or isnan(value) or value <= 0:
        raise InputError(f"{name} must be above 0, not {value!r}")
