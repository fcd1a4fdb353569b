"""What a scenario may say: every value by itself, and those that exclude each other. Nothing is resolved or read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING

from cost_models import GPUS
from simulator import checks
from simulator.errors import InputError, choose
from simulator.memory.base import UNLIMITED
from simulator.mistaken import READING, no_trace
from simulator.policies import Policy
from simulator.replication import OBJECTIVES, check_replication
from traces import Trace, shape_of

if TYPE_CHECKING:
    from simulator.scenario import Scenario

MAPPINGS = ("knobs", "reading", "goodput", "scheduler_overhead", "mix", "tenants", "classes", "prices")
"""Fields that map names to values."""
MOST_BIAS = 100
"""Percent; steps that much shorter would take no time."""
MOST_RETRIES = 30
_PERCENTILE = re.compile(rf"p(\d{{1,2}}(?:\.\d{{1,6}})?)(?:_({'|'.join(OBJECTIVES)})(?:_ms)?)?", re.ASCII)
"""A percentile, and of which objective if it says so."""


def check(scenario: Scenario) -> None:
    """Refuse, in one line, what cannot be asked."""
    _check_kinds(scenario)
    _check_traffic(scenario)
    check_replication(scenario)
    _check_costs(scenario)
    _check_reading(scenario)


def _check_kinds(scenario: Scenario) -> None:
    """Numbers are in their range, choices among what there is."""
    for name, field in scenario.__dataclass_fields__.items():
        if getattr(scenario, name) is None and field.default is not None:
            raise InputError(f"{name} must have a value, not None")
    if scenario.load not in ("saturated", "trace"):
        raise InputError(f"load must be saturated or trace, not {scenario.load!r}")
    for name in ("num_prompts", "max_concurrency", "max_model_len", "tensor_parallel_size", "repeat"):
        checks.count(name, getattr(scenario, name))
    for name in ("prompt_scale", "output_scale", "rate_scale", "request_rate", "burstiness", "kv_capacity_tokens",
                 "gpu_memory_utilization", "ttft_timeout", "request_timeout", "sample"):
        checks.above_zero(name, getattr(scenario, name))
    if scenario.gpu_memory_utilization > 1:
        raise InputError(f"gpu_memory_utilization must be at most 1, not {scenario.gpu_memory_utilization}")
    checks.count("seed", scenario.seed, 0)
    tokens = scenario.kv_capacity_tokens
    if tokens not in (None, inf) and tokens != int(tokens or 0):
        raise InputError(f"kv_capacity_tokens must be a whole number or inf, not {tokens!r}")
    if UNLIMITED < (tokens or 0) < inf:
        raise InputError(f"kv_capacity_tokens must be at most {UNLIMITED} or inf, not {tokens!r}")
    for name in (*MAPPINGS, "files"):
        if not isinstance(getattr(scenario, name), Mapping):
            raise InputError(f"{name} must map names to values, not {getattr(scenario, name)!r}")
    for name in ("exact", "require_prefixes"):
        if not isinstance(getattr(scenario, name), bool):
            raise InputError(f"{name} must be true or false, not {getattr(scenario, name)!r}")
    if not isinstance(scenario.trace, Trace | str):
        raise no_trace(scenario.trace)
    for name in ("trace", "policy", "model", "cost_model"):
        if isinstance(value := getattr(scenario, name), str):
            checks.text(name, value)
    for name in scenario.mix:
        checks.text("mix", name)
        if isinstance(scenario.trace, str) and name == scenario.trace:
            raise InputError(f"mix: {name} is the trace itself, whose requests would come twice: rate_scale makes them "
                             "come faster, repeat again")
    if not isinstance(scenario.cuda_graph_sizes, str):
        raise InputError("cuda_graph_sizes must be 'vllm', 'none' or numbers between commas such as '1,2,4', not "
                         f"{scenario.cuda_graph_sizes!r}")
    if not isinstance(scenario.policy, Policy | str):
        raise InputError(f"policy must be a name or a policy object such as Vllm(), not {scenario.policy!r}")


def _check_traffic(scenario: Scenario) -> None:
    """What is done to the trace, and how patient the client is."""
    if scenario.too_long not in ("reject", "truncate"):
        raise InputError(f"too_long must be reject or truncate, not {scenario.too_long!r}")
    if scenario.turns not in ("wait", "recorded"):
        raise InputError(f"turns must be wait or recorded, not {scenario.turns!r}")
    if scenario.sample is not None and scenario.sample > 1:
        raise InputError(f"sample must be at most 1, not {scenario.sample}")
    for name in ("mix", "tenants"):
        for part, weight in getattr(scenario, name).items():
            checks.positive(f"{name} {part}", weight)
    for name in ("ttft_timeout", "request_timeout", "retry_backoff", "cap_gaps"):
        checks.not_negative(name, getattr(scenario, name) or 0)
        checks.near(name, getattr(scenario, name) or 0)
    checks.count("max_retries", scenario.max_retries, 0)
    if scenario.max_retries > MOST_RETRIES:
        raise InputError(f"max_retries must be at most {MOST_RETRIES}, not {scenario.max_retries}")
    replaces = shape_of(scenario.shape).replaces if scenario.shape is not None else False
    if (scenario.request_rate is not None) + (scenario.rate_scale != 1) + replaces > 1:
        raise InputError("rate_scale speeds up the trace's own times, and request_rate and the ramps and stages of "
                         "shape replace them: give one")


def _check_costs(scenario: Scenario) -> None:
    """What goes on top of a step's cost, what is due, and what it is worth."""
    for policy, overhead in scenario.scheduler_overhead.items():
        checks.not_negative(f"scheduler_overhead of {policy}", *checks.pair("scheduler_overhead", overhead))
        checks.lasting(f"scheduler_overhead of {policy}", *overhead)
    checks.not_negative("request_overhead", scenario.request_overhead or 0)
    checks.lasting("request_overhead", scenario.request_overhead or 0)
    if scenario.noise not in (None, "profile"):
        checks.not_negative("noise, if not profile,", scenario.noise)
    if scenario.error_band not in (None, "stated"):
        checks.above_zero("error_band", scenario.error_band)
        if not scenario.error_band < MOST_BIAS:    # type: ignore[operator]
            raise InputError(f"error_band must be below {MOST_BIAS} percent, not {scenario.error_band}")
    for metric, limit in scenario.goodput.items():
        checks.positive(f"goodput {metric}", limit)
        if metric not in OBJECTIVES:
            raise InputError(f"unknown goodput objective {metric!r} (known: {', '.join(OBJECTIVES)})"
                             f"{_percentile_hint(str(metric), limit)}")
    for gpu, price in scenario.prices.items():
        checks.positive(f"prices {choose('GPU', gpu, GPUS)}", price)


def _percentile_hint(metric: str, limit: float) -> str:
    """Where a limit of a percentile is kept; empty for a name that is none of an objective."""
    found = _PERCENTILE.fullmatch(metric)
    if found is None or not float(found[1]) or limit == inf:
        return ""
    return f"; `batchsim plan` keeps a percentile: --slo p{found[1]}_{found[2] or OBJECTIVES[0]}:{limit:.15g}"


def _check_reading(scenario: Scenario) -> None:
    """How the file is read; whether it can be is for the reader to say."""
    reading = scenario.reading
    for name in reading:
        choose("setting of reading", name, READING)
    if reading and isinstance(scenario.trace, Trace):
        raise InputError("reading says how a file is read, and this trace is in memory: leave one of them out")
    if not isinstance(reading.get("columns") or {}, Mapping):
        raise InputError(f"columns of reading must map roles to names, not {reading['columns']!r}")
    if not isinstance(reading.get("lenient", False), bool):
        raise InputError(f"lenient of reading must be true or false, not {reading['lenient']!r}")
    for name in ("format", "unit", "window", "prompts"):
        if not isinstance(reading.get(name, ""), str):
            raise InputError(f"{name} of reading must be text, not {reading[name]!r}")
    checks.count("limit of reading", reading.get("limit"))
