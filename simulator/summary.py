"""Summary: a run as one flat record under the names that `vllm bench serve` uses, and ours beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cost_models import StepShape
from simulator.balance import balance
from simulator.band import NO_BAND
from simulator.bill import bill
from simulator.distribution import PERCENTILE_METHOD
from simulator.errors import InputError, choose
from simulator.frozen import of_python
from simulator.gate import NEVER_FITS, VERDICTS
from simulator.limits import QUEUE_LIMIT, STOPPED_BY
from simulator.memory.base import UNLIMITED
from simulator.metrics import METRICS, MS, json_keys
from simulator.scenario import Scenario
from simulator.tenancy import fairness
from simulator.throughput import (
    Window,
    before_tail,
    most_requests_in_a_second,
    most_tokens_in_a_second,
    offered_rate,
    steady_window,
    tail_requests,
    whole_run,
)
from simulator.version import __version__
from simulator.waste import effective_batch

if TYPE_CHECKING:
    from simulator.result import Result

LATENCIES = tuple(name for name, metric in METRICS.items() if metric.spread)


def summarise(result: Result, percentiles: Sequence[float], metrics: Sequence[str]) -> dict[str, Any]:
    """Every name of the JSON and its value; None where nothing was measured.

    Args:
        result: The run.
        percentiles: Of the latencies, each from 0 to 100.
        metrics: Latencies to tell, by their names in METRICS.

    Raises:
        InputError: A percentile that is none, or an unknown latency.
    """
    for percent in percentiles:
        if not 0 <= percent <= 100:
            raise InputError(f"a percentile lies between 0 and 100, not at {percent!r}")
    names = [choose("latency metric", name, LATENCIES) for name in metrics]
    return {**_header(result), **_deployment(result), **_requests(result), **_throughput(result),
            **_statistics(result, names, tuple(percentiles)), **_resources(result), **balance(result), **bill(result),
            **fairness(result.tenants),
            **(result.band.record() if result.band else NO_BAND)}


def date() -> str:
    """SOURCE_DATE_EPOCH if it is set, else now, in UTC."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(f"SOURCE_DATE_EPOCH must be a whole number of seconds since 1970, not {epoch!r}") from None
    return moment.strftime("%Y%m%d-%H%M%S")


def _joined(values: Mapping[str, Any], sign: str) -> str | None:
    """A mapping as one cell of a flat record, spelled as the flags spell it; None if there is nothing to say."""
    return ",".join(f"{key}{sign}{_word(plain(value))}" for key, value in values.items()) or None


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _header(result: Result) -> dict[str, Any]:
    scenario, setup = result.scenario, result.setup
    saturated = scenario.load == "saturated"
    rate = float("inf") if saturated else scenario.request_rate
    own = not saturated and rate is None
    return {"date": date(), "backend": f"batchsim:{result.policy.name}", "label": None, "model_id": setup.model.name,
            "tokenizer_id": None, "num_prompts": len(setup.output), "request_rate": plain(rate),
            "burstiness": None if saturated or rate is None else plain(scenario.burstiness),
            "max_concurrency": scenario.max_concurrency, "load": scenario.load,
            "ttft_timeout": scenario.ttft_timeout, "request_timeout": scenario.request_timeout,
            "max_retries": scenario.max_retries, "retry_backoff": scenario.retry_backoff,
            "rate_scale": scenario.rate_scale if own else None, "cap_gaps": scenario.cap_gaps,
            "shape": scenario.shape, "turns": scenario.turns if setup.trace.has_turns else None,
            "trace_notes": "; ".join(setup.trace.report.notes) or None}


def _deployment(result: Result) -> dict[str, Any]:
    scenario, setup, policy = result.scenario, result.setup, result.policy
    return {"policy": policy.name, "policy_version": policy.version, "policy_args": _joined(policy.settings(), "="),
            "memory": result.memory.name,
            "kv_capacity_tokens": plain(setup.deployment.kv_capacity_tokens), "cost_model": setup.cost.name,
            "noise": scenario.noise, "cuda_graph_sizes": scenario.cuda_graph_sizes,
            "scheduler_overhead_ms": setup.scheduling[0] / MS, "scheduler_overhead_per_request_ms":
            setup.scheduling[1] / MS, "request_overhead_ms": setup.request_overhead / MS,
            "gpu": scenario.gpu, "tensor_parallel_size": scenario.tensor_parallel_size,
            **_replication(scenario), "dtype": scenario.dtype, "kv_dtype": scenario.kv_dtype,
            "max_model_len": setup.deployment.max_model_len, "seed": scenario.seed,
            "trace": setup.trace.name, "trace_digest": setup.digest, "max_tokens": setup.declared.rule,
            "goodput": _joined(scenario.goodput, ":"), "simulator_version": __version__}


def _replication(scenario: Scenario) -> dict[str, Any]:
    """How many replicas there are and how requests come to them; None where nothing hangs on it."""
    routed = {name: getattr(scenario, name) if scenario.behind_router else None
              for name in ("router", "queue_limit", "overflow")}
    scaled = {name: getattr(scenario, name) if scenario.autoscale else None
              for name in ("autoscale", "min_replicas", "max_replicas", "startup_delay", "cooldown")}
    classes = {tenant: _joined(promised, ":") for tenant, promised in scenario.classes.items()}
    return {"replicas": scenario.replicas, **routed, "classes": _joined(classes, "="), **scaled}


def _requests(result: Result) -> dict[str, Any]:
    setup, rejected = result.setup, result.setup.verdict > 0
    counts = np.bincount(setup.verdict, minlength=len(VERDICTS)).tolist()
    tokens = np.where(rejected, setup.trace.prompt + setup.declared.output, 0)
    largest = int(tokens.argmax()) if rejected.any() else None
    return {"completed": len(result.timeline), "failed": result.outcomes.count("failed"),
            "rejected": int(rejected.sum()), "skipped": result.outcomes.count("skipped") if setup.turns_wait else None,
            **_impatience(result),
            "rejected_reasons": _joined({VERDICTS[code]: count for code, count in enumerate(counts) if code and count},
                                        ": "),
            "largest_rejected_request": largest,
            "largest_rejected_tokens": None if largest is None else int(tokens[largest]),
            "reserved_beyond_pool": _reserved_beyond_pool(result, tokens),
            "truncated": setup.truncated, "clipped": setup.rows.clipped, "cut": setup.declared.cut,
            "longer_than_declared": setup.declared.longer,
            "total_input_tokens": int(result.timeline.prompt.sum()),
            "total_output_tokens": int(result.timeline.output.sum())}


def _reserved_beyond_pool(result: Result, tokens: NDArray[np.int64]) -> int | None:
    """The most tokens that one of those who never fit the pool would reserve; None unless all of them fit but for that.

    `tokens` are those that each request really has.
    """
    unfit = result.setup.verdict == NEVER_FITS
    needed = -(-tokens[unfit] // result.memory.block_size)
    if not unfit.any() or (needed > result.memory.longest_run()).any():
        return None
    return int(result.setup.footprint[unfit].max())


def _impatience(result: Result) -> dict[str, Any]:
    """What the client gave up and tried again; None where it waits for ever and tries once."""
    patience, ended = result.setup.patience, result.outcomes
    return {"aborted": ended.count("aborted") if patience.ends else None,
            "timed_out": ended.timed_out if patience.ends else None,
            "retried": ended.retried if patience.retries else None}


def _throughput(result: Result) -> dict[str, Any]:
    line = result.timeline
    whole, steady, early = whole_run(line), steady_window(line), before_tail(line)
    good = None if result.met is None else whole.rate(int(result.met.sum()))
    return {"duration": _seconds(whole), "offered_request_rate": _offered(result),
            "request_throughput": whole.request_rate, "request_goodput": good,
            "output_throughput": whole.output_rate, "total_token_throughput": whole.total_rate,
            "steady_duration": _seconds(steady), "steady_request_throughput": steady.request_rate,
            "steady_output_throughput": steady.output_rate, "steady_total_token_throughput": steady.total_rate,
            "tail_requests": tail_requests(line), "before_tail_request_throughput": early.request_rate,
            "max_output_tokens_per_s": most_tokens_in_a_second(result.record, line),
            "max_concurrent_requests": most_requests_in_a_second(line)}


def _offered(result: Result) -> float | None:
    """Requests a second that come; nobody can say it where answers set the pace."""
    return None if result.setup.turns_wait else offered_rate(result.setup.trace.arrival)


def _seconds(window: Window) -> float | None:
    return window.duration / 1e9 if window.duration else None


def _statistics(result: Result, names: Sequence[str], percentiles: tuple[float, ...]) -> dict[str, Any]:
    summary: dict[str, Any] = {"percentile_method": PERCENTILE_METHOD, "std_method": "population"}
    for name in names:
        values = result.latency(name)
        numbers = [values.mean(), values.percentile(50), values.std(), *map(values.percentile, percentiles)]
        summary |= zip(json_keys(name, percentiles), (None if ns is None else ns / MS for ns in numbers), strict=True)
    return summary


def _resources(result: Result) -> dict[str, Any]:
    lost, slots, tokens = result.waste, result.slot_ledger, result.token_ledger.parts
    ranged = result.setup.cost.in_range(StepShape(1, 1)) is not None
    used, hits, bounds = result.kv_use, result.prefix_hits, result.limits or {}
    return {"cached_tokens": hits and hits[0], "prefix_cache_hit_rate": hits[0] / hits[1] if hits and hits[1] else None,
            "preemptions": int(result.timeline.preemptions.sum()), "recomputed_tokens": tokens["recompute"],
            "padding_tokens": tokens["padding"], "mean_batch_size": effective_batch(result.record),
            "slot_utilization": slots.share("decode", "prefill"),
            "slot_seconds": (slots.total or 0) / 1e9, "slots": result.slots.count,
            "slots_counted": slots.of, "filling_request_rate": result.filling_rate,
            "no_queue_share": bounds.get("nothing"),
            **{f"stopped_by_{name}_share": bounds.get(name) for name in (*STOPPED_BY, QUEUE_LIMIT)},
            "idle_slot_seconds": lost.idle_slots, "padding_seconds": lost.padding,
            "kv_usage_mean": used[0], "kv_usage_max": used[1], "steps": len(result.record.ends),
            "out_of_range_steps": result.record.out_of_range if ranged else None}


def plain(value: Any) -> Any:
    """A value as JSON takes it: no bound is "inf", and what is numpy's is Python's."""
    value = of_python(value)
    if value == inf or (value == UNLIMITED and isinstance(value, int)):
        return "inf"
    return value
