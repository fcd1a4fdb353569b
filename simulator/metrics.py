"""Metrics: what each number is called, what it means, and how the latencies of a Timeline are measured.

METRICS is the one table that command-line help, glossary, JSON and console share. The functions are pure: columns in,
values out. Nothing here knows a policy or a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.timeline import Timeline

MS = 10 ** 6
"""Nanoseconds in a millisecond."""


@dataclass(frozen=True)
class Metric:
    """One line of the glossary.

    Attributes:
        label: Its name in tables.
        unit: Of the value in the JSON.
        definition: What is measured, in one sentence or two.
        better: Which direction is an improvement; None where neither is.
        spread: Many values, of which mean, median, standard deviation and percentiles are given; else one number.
    """

    label: str
    unit: str
    definition: str
    better: Literal["higher", "lower"] | None
    spread: bool = False


METRICS: dict[str, Metric] = {
    "completed": Metric("finished", "requests",
        "Requests whose last token reached the client.", "higher"),
    "rejected": Metric("rejected", "requests",
        "Requests that can never be served, refused before any policy sees them.", "lower"),
    "failed": Metric("failed", "requests",
        "Requests that the engine's front end refused when they came, though it could have served them.", "lower"),
    "skipped": Metric("skipped", "requests",
        "Later turns that were never sent, because an earlier turn of their conversation was not answered. Null where "
        "no turn waits.", "lower"),
    "aborted": Metric("aborted", "requests",
        "Requests that the client gave up: their last try timed out. Null without a timeout.", "lower"),
    "timed_out": Metric("timed out", "tries",
        "Tries that the client cancelled because no first token or no whole answer came in time. Null without a "
        "timeout.", "lower"),
    "retried": Metric("retried", "tries",
        "Tries beyond the first of a request, after it timed out or was refused. Latencies are those of the last try, "
        "objectives are held against the time since the first. Null without retries.", None),
    "shed": Metric("shed", "tries",
        "Tries that the router refused, because every replica had as many requests as it takes. Null without a "
        "router.", "lower"),
    "duration": Metric("duration", "s",
        "From the first request sent to the last token delivered.", "lower"),
    "offered_request_rate": Metric("requests/s offered", "1/s",
        "Requests of the trace but the first, over the time from the first arrival to the last. Null if all come at "
        "once, or if turns wait for answers.", None),
    "request_throughput": Metric("requests/s", "1/s",
        "Finished requests over the whole duration.", "higher"),
    "output_throughput": Metric("output tokens/s", "1/s",
        "Output tokens of finished requests over the whole duration.", "higher"),
    "total_token_throughput": Metric("tokens/s", "1/s",
        "Prompt and output tokens of finished requests over the whole duration.", "higher"),
    "steady_duration": Metric("steady window", "s",
        "From the first completion to the last.", None),
    "steady_request_throughput": Metric("requests/s, steady", "1/s",
        "Requests that complete in the steady window, those of its first instant left out, over its length.", "higher"),
    "steady_output_throughput": Metric("output tokens/s, steady", "1/s",
        "Output tokens of the requests counted in the steady window, over its length.", "higher"),
    "steady_total_token_throughput": Metric("tokens/s, steady", "1/s",
        "Prompt and output tokens of the requests counted in the steady window, over its length.", "higher"),
    "tail_requests": Metric("finished in the tail", "requests",
        "Requests that complete in the last quarter of the duration: if they are few, stragglers set its "
        "length.", None),
    "before_tail_request_throughput": Metric("requests/s before the tail", "1/s",
        "Requests that complete in the first three quarters of the duration, over that time.", "higher"),
    "max_output_tokens_per_s": Metric("peak output tokens/s", "1/s",
        "The most output tokens delivered within one second.", "higher"),
    "max_concurrent_requests": Metric("peak concurrency (within 1 s)", "requests",
        "The most requests that are outstanding at some time within the same second, as `vllm bench serve` counts; "
        "not all of them need be there at once.", None),
    "request_goodput": Metric("goodput", "1/s",
        "Requests that meet every service objective, that of their tenant's class where it has one, over the whole "
        "duration. Null without an objective.", "higher"),
    "ttft": Metric("TTFT", "ms",
        "Time to first token: first token delivered - sent. A policy that returns whole answers "
        "delivers it with the last one, so there it equals E2EL.", "lower", spread=True),
    "tpot": Metric("TPOT", "ms",
        "Time per output token, the first excluded: (E2EL - TTFT) / (output tokens - 1), one "
        "value a request; answers of one token are left out. Null for a policy that returns "
        "whole answers.", "lower", spread=True),
    "itl": Metric("ITL", "ms",
        "Inter-token latency: every gap between two tokens, pooled over all requests, so that "
        "long answers weigh more than in TPOT. Null for a policy that returns whole answers.", "lower", spread=True),
    "e2el": Metric("E2EL", "ms",
        "End-to-end latency: last token delivered - sent.", "lower", spread=True),
    "queue_time": Metric("queue time", "ms",
        "First admitted to a slot - sent.", "lower", spread=True),
    "ttft_preemption": Metric("preemption in TTFT", "ms",
        "From the first admission to the stay in a slot that emits the first token: what was "
        "computed before was lost.", "lower", spread=True),
    "ttft_prefill": Metric("prefill in TTFT", "ms",
        "From the start of that stay to the first token. Queue time, preemption, prefill and "
        "delivery add up to TTFT.", "lower", spread=True),
    "ttft_delivery": Metric("delivery in TTFT", "ms",
        "From the first token made to the first token delivered: the overhead of a request, and what a "
        "policy that does not stream keeps it back.", "lower", spread=True),
    "slot_seconds": Metric("all slot-seconds", "slot-s",
        "Slots x time from the first request sent to the end of the last step.", None),
    "slot_utilization": Metric("slot utilisation", "share",
        "Slot-seconds that compute new tokens over all slot-seconds. `slots_counted` says what a slot is.", "higher"),
    "mean_batch_size": Metric("effective batch", "sequences",
        "Sequences that compute new tokens in a step, weighted by the duration of the steps.", "higher"),
    "filling_request_rate": Metric("requests/s to fill it", "1/s",
        "About so many requests like these a second would keep busy every slot that the cap, the memory and a queue "
        "limit leave them, of as many replicas as there may be: worked out from the cost model and from what a slot "
        "holds on average, not simulated; what preemptions cost is not in it. Null for a policy whose slots are not "
        "refilled one by one, and beyond 1,000,000 slots.", None),
    "no_queue_share": Metric("nobody waits", "share",
        "Share of the time in steps in which no request waits for a slot, and one more would be taken. This and the "
        "six below add up to 1.", None),
    "stopped_by_cap_share": Metric("queue stopped by cap", "share",
        "Share of the time in steps in which requests wait because the cap on sequences is reached.", "lower"),
    "stopped_by_budget_share": Metric("queue stopped by budget", "share",
        "The same, because the token budget of the step is spent.", "lower"),
    "stopped_by_memory_share": Metric("queue stopped by memory", "share",
        "The same, because too little KV cache is free, or no hole in it is long enough.", "lower"),
    "stopped_by_batch_share": Metric("queue stopped by batch", "share",
        "The same, because the batch lets nobody in until it is done.", "lower"),
    "stopped_by_step_share": Metric("queue until next step", "share",
        "The same, because they came during a step, and are looked at after it.", None),
    "stopped_by_queue_limit_share": Metric("kept out by queue limit", "share",
        "Share of the time in steps in which nobody waits at the replica, but all replicas have as many requests as "
        "they take: who comes waits outside or is refused. Null without such a limit.", "lower"),
    "idle_slot_seconds": Metric("lost to idle slots", "slot-s",
        "Slot-seconds in which a finished request holds a slot, or a slot is empty while somebody waits at the "
        "replica.", "lower"),
    "padding_seconds": Metric("lost to padding", "slot-s",
        "Slot-seconds by which padding makes steps longer, in the slots that do something useful.", "lower"),
    "kv_usage_mean": Metric("KV use, mean", "share",
        "KV cache that requests hold or reserve, over its capacity, weighted by time. Null without a bound.", None),
    "kv_usage_max": Metric("KV use, peak", "share",
        "The largest share of the KV cache in use in a step.", None),
    "cached_tokens": Metric("prompt tokens found", "tokens",
        "Prompt tokens whose KV was at hand when their request was first admitted; each try counts. Null without a "
        "prefix cache, and for a trace that does not tell which prompts begin alike.", "higher"),
    "prefix_cache_hit_rate": Metric("prefix cache hits", "share",
        "Those tokens over all prompt tokens of admitted requests.", "higher"),
    "preemptions": Metric("preemptions", "count",
        "How often a running request lost its slot and its KV.", "lower"),
    "recomputed_tokens": Metric("recomputed tokens", "tokens",
        "Token positions computed again after a preemption.", "lower"),
    "padding_tokens": Metric("padding tokens", "tokens",
        "Token positions computed for nothing.", "lower"),
    "steps": Metric("steps", "count",
        "Forward passes.", "lower"),
    "gpu_seconds": Metric("GPU time paid", "GPU-s",
        "GPUs x time for which they are paid: of each replica from its order, or the first request sent, until it "
        "stops, or the last step ends, idle or not.", "lower"),
    "dollars": Metric("bill", "$",
        "The GPU time paid, at the price of an hour of that GPU. Null where none is given.", "lower"),
    "dollars_per_million_output_tokens": Metric("bill for output", "$/M tokens",
        "The bill over the output tokens of finished requests, in millions: time in which a GPU stands idle is in it.",
        "lower"),
    "peak_replicas": Metric("replicas, peak", "replicas",
        "The most replicas that were paid for at once. Null without a router.", "lower"),
    "busiest_replica": Metric("busiest replica", "x mean",
        "The time for which the busiest replica runs steps, over the mean of all replicas; 1 is even. Null without a "
        "router.", "lower"),
    "jain_index": Metric("Jain index", "index",
        "How evenly the tenants are served: (sum of x)^2 / (n x sum of x^2), x being the share of a tenant's requests "
        "that were answered and met its objectives. 1 is even, 1/n is one tenant alone. Null without objectives, "
        "and without two tenants.",
        "higher"),
    "worst_slowdown": Metric("worst slowdown", "x alone",
        "Of the tenant that the others slow down most: its mean E2EL over what it is with no other tenant there. Null "
        "unless --isolation simulates that.", "lower"),
    "error_band_percent": Metric("error band", "%",
        "By how much every step was made shorter, then longer, to see what an error of the step times does to the "
        "figures below. Null unless it was asked for and the cost model states an error.", None),
    "output_throughput_low": Metric("output tokens/s, low", "1/s",
        "The lower one of these two runs.", None),
    "output_throughput_high": Metric("output tokens/s, high", "1/s",
        "The higher one.", None),
    "mean_ttft_ms_low": Metric("mean TTFT, low", "ms",
        "The lower one of these two runs.", None),
    "mean_ttft_ms_high": Metric("mean TTFT, high", "ms",
        "The higher one.", None),
    "mean_tpot_ms_low": Metric("mean TPOT, low", "ms",
        "The lower one of these two runs. Null for a policy that returns whole answers.", None),
    "mean_tpot_ms_high": Metric("mean TPOT, high", "ms",
        "The higher one.", None),
}
"""Every metric by its name in the JSON, in the order of display."""


def json_keys(name: str, percentiles: tuple[float, ...] = (99,)) -> list[str]:
    """The names under which a metric stands in the JSON, as `vllm bench serve` spells them."""
    if not METRICS[name].spread:
        return [name]
    stems = ["mean", "median", "std"]
    stems += [f"p{int(percent) if percent == int(percent) else percent}" for percent in percentiles]
    return [f"{stem}_{name}_ms" for stem in stems]


def glossary() -> list[dict[str, str]]:
    """A row a metric: label, unit, definition, which direction is better, and its names in the JSON."""
    return [{"metric": metric.label, "unit": metric.unit, "definition": metric.definition,
             "better": metric.better or "", "json": ", ".join(json_keys(name))} for name, metric in METRICS.items()]


def tpot(line: Timeline) -> NDArray[np.float64]:
    """Time per output token in ns, of the requests that have one: none with one token, none that do not stream."""
    several = line.output > 1 if line.streams else np.zeros(len(line), bool)
    return (line.e2el - line.ttft)[several] / (line.output[several] - 1)


PER_REQUEST: dict[str, Callable[[Timeline], NDArray[Any]]] = {
    "ttft": lambda line: line.ttft,
    "tpot": tpot,
    "e2el": lambda line: line.e2el,
    "queue_time": lambda line: line.queue_time,
    "ttft_preemption": lambda line: line.ttft_parts["preemption"],
    "ttft_prefill": lambda line: line.ttft_parts["prefill"],
    "ttft_delivery": lambda line: line.ttft_parts["delivery"],
}
"""The latencies that are measured once a request: how the values, in ns, are read off a timeline."""


def meets(line: Timeline, objectives: Mapping[str, float]) -> NDArray[np.bool_]:
    """Which requests meet every objective. Objectives are upper bounds in milliseconds on ttft, tpot or e2el.

    An answer of one token has no TPOT and meets any. An answer that comes as a whole meets a TPOT objective if it
    comes no later than the last token of a stream that just meets the TTFT and the TPOT objective; without a TTFT
    objective that stream starts at once.
    """
    met = np.ones(len(line), bool)
    gaps = line.output - 1
    for name, limit in objectives.items():
        if name == "tpot":
            took = line.e2el - line.ttft if line.streams else line.e2el - objectives.get("ttft", 0) * MS
            met &= (gaps == 0) | (took <= limit * MS * gaps)
        else:
            met &= getattr(line, name) <= limit * MS
    return met
