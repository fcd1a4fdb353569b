"""Caveats: where continuous batching does not pay. Five small studies, each a measured ratio and its reason.

A ratio is that of the switch: above 1 it pays. Everything is Llama-3.1-8B in bf16 on one H100-80GB; traffic is the
first requests of the Azure conversation stand-in, or made up where a study needs it. It knows no remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.policies.orca import Orca
from simulator.policies.static import StaticBatching
from simulator.policies.vllm import Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.tables import Table
from traces import Trace, load

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
"""Called with (what runs, studies done, studies in all)."""
HOST_MS = (0.1, 0.016)
"""What a scheduler written in Python takes on the CPU: ms a step, and for each running request.

A line through what vLLM's took on one CPU: 0.1 ms a step at 3 running requests and 2.2 ms at 128.
"""
TENANT = "tenant"
SETTING = "llama-3.1-8b in bf16 on one h100-80, cost model llama-3.1-8b-h100-80-bf16"
"""What all studies have in common, in words."""
REQUESTS = 300
LOW_RATE = 0.5
"""Requests a second; the stand-in's own are 5.5."""


@dataclass(frozen=True)
class Caveat:
    """One study.

    Attributes:
        name: Short, for a figure.
        what: What was compared, in words.
        metric: What the ratio is of.
        ratio: How much better it is with continuous batching; above 1 it pays. More tokens a second are better, and
            so is a shorter latency.
        reason: Why, in two sentences.
        measured: The numbers behind it, by name.
    """

    name: str
    what: str
    metric: str
    ratio: float
    reason: str
    measured: Mapping[str, float] = field(default_factory=dict)


def caveats(seed: int = 0, progress: Progress | None = None) -> tuple[Caveat, ...]:
    """All of them, measured now; the same seed gives the same numbers."""
    found = []
    for done, (name, study) in enumerate(STUDIES.items()):
        if progress:
            progress(name, done, len(STUDIES))
        found.append(study(seed))
    if progress:
        progress("caveats", len(STUDIES), len(STUDIES))
    return tuple(found)


def one_at_a_time(seed: int) -> Caveat:
    """A single client that waits for each answer before it asks again."""
    alone = Scenario(trace=load("azure-conv-2023", seed=seed).head(REQUESTS), load="saturated", max_concurrency=1,
                     seed=seed, scheduler_overhead={"vllm": HOST_MS})
    static = run(alone.but(policy=StaticBatching(max_batch_size=1)))
    vllm = run(alone.but(policy=Vllm()))
    rates = {"static": _rate(static), "vllm": _rate(vllm)}
    step_ms = vllm.record.ends[-1] / len(vllm.record.ends) / 1e6
    return Caveat(
        "one request at a time",
        f"{REQUESTS} requests, one client, one after the other: static batches of 1 against vllm, whose scheduler "
        f"takes {HOST_MS[0]:g} ms a step and {HOST_MS[1]:g} ms a request (--scheduler-overhead)",
        "output tokens/s", rates["vllm"] / rates["static"],
        f"With nobody else there is no slot to refill and no batch to grow, so there is nothing to gain. The scheduler "
        f"still runs at every step, and its {sum(HOST_MS):.2f} ms of host time are lost out of {step_ms:.1f} ms, "
        "unless the engine plans a step while the GPU is busy with the one before; a static loop decides once a "
        "batch.", rates)


def equal_lengths(seed: int) -> Caveat:
    """Requests whose answers are all of one length."""
    same = Trace("equal", np.zeros(960, np.int64), np.full(960, 512), np.full(960, 256))
    alike = Scenario(trace=same, load="saturated", kv_capacity_tokens=inf, seed=seed)
    static = run(alike.but(policy=StaticBatching(max_batch_size=32)))
    vllm = run(alike.but(policy=Vllm().bounded_by(32)))
    rates = {"static": _rate(static), "vllm": _rate(vllm)}
    held = static.slot_ledger.share("held") or 0.0
    return Caveat(
        "equal answers", "960 prompts of 512 tokens, answers of 256: static batches of 32 against vllm with 32 slots",
        "output tokens/s", rates["vllm"] / rates["static"],
        "A static batch wastes the slots of those who finish before its longest answer, and here all finish in one "
        f"step: {held:.0%} of slot time is held for nothing. What scheduling can win is the longest over the mean "
        "answer of a batch, and that is 1.", rates)


def tight_memory(seed: int) -> Caveat:
    """A pool that holds one whole reservation, or three, with and without paging."""
    pool, length = 6144, 4096
    tight = Scenario(trace=load("azure-conv-2023", seed=seed).head(REQUESTS), load="saturated", kv_capacity_tokens=pool,
                     max_model_len=length, seed=seed)
    static, orca = StaticBatching(reserve="model"), Orca(reserve="model")
    rates = {"static": _rate(run(tight.but(policy=static))), "orca": _rate(run(tight.but(policy=orca)))}
    wider = tight.but(kv_capacity_tokens=3 * length)
    three = _rate(run(wider.but(policy=orca))) / _rate(run(wider.but(policy=static)))
    paged = run(tight.but(policy=Vllm()))
    rates["vllm"] = _rate(paged)
    return Caveat(
        "tight memory, no paging",
        f"{REQUESTS} requests, {pool:,} tokens of KV, {length:,} reserved for each: static batches against orca, "
        "which refills slots and reserves as much",
        "output tokens/s", rates["orca"] / rates["static"],
        "Memory admits one request however fast its slot is refilled, so there is no batch to keep full; with room for "
        f"three, refilling is worth {three:.2f}x. That is of refilling alone: with "
        f"paging too, vllm runs {float(paged.summary()['mean_batch_size']):.1f} requests in the same pool and serves "
        f"{rates['vllm'] / rates['static']:.1f}x.", rates)


def low_rate(seed: int) -> Caveat:
    """Requests that come so seldom that either policy keeps up with them."""
    trace = load("azure-conv-2023", seed=seed).head(REQUESTS)
    seldom = Scenario(trace=trace, load="trace", request_rate=LOW_RATE, seed=seed)
    static, vllm = run(seldom.but(policy=StaticBatching())), run(seldom.but(policy=Vllm()))
    rates = {"static": _rate(static), "vllm": _rate(vllm)}
    late = [float(np.median(result.timeline.e2el)) / 1e9 for result in (static, vllm)]
    return Caveat(
        "a low rate", f"{REQUESTS} requests, {LOW_RATE:g} a second, new arrivals: static batches against vllm",
        "output tokens/s", rates["vllm"] / rates["static"],
        "Whoever keeps up serves what is asked for, and no more. The gain is in the waiting: the median request takes "
        f"{late[0]:.1f} s with static batches and {late[1]:.1f} s with vllm.", rates)


def isolation(seed: int) -> Caveat:
    """A tenant with a service of its own, and one that shares its batch with a noisy neighbour."""
    quiet, both = _tenants(seed)
    paced = Scenario(load="trace", seed=seed, policy=Vllm())
    p99 = {"alone": _p99_gap(run(paced.but(trace=quiet)), quiet),
           "shared": _p99_gap(run(paced.but(trace=both)), both)}
    return Caveat(
        "strict isolation",
        f"vllm, {len(quiet)} requests of one tenant, 2 a second, on a replica alone, and on one shared with a "
        "neighbour who sends a prompt of 16,000 tokens every 2 s",
        "the tenant's p99 TPOT", p99["alone"] / p99["shared"],
        "Whoever shares a batch shares its steps, and a neighbour's prompt makes each of them longer: the tenant's p99 "
        f"time per output token (TPOT) goes from {p99['alone']:.1f} to {p99['shared']:.1f} ms. The ratio compares "
        "sharing with being alone, which takes one replica more: continuous batching has no slots to set apart.", p99)


STUDIES: dict[str, Callable[[int], Caveat]] = {
    "one request at a time": one_at_a_time, "equal answers": equal_lengths, "tight memory": tight_memory,
    "low rate": low_rate, "isolation": isolation}
"""By name, in the order in which they are told."""


def _rate(result: Result) -> float:
    """Output tokens a second over the whole run."""
    line = result.timeline
    return float(line.output.sum()) / (int(line.last_delivered.max()) / 1e9)


def _tenants(seed: int) -> tuple[Trace, Trace]:
    """The tenant's own requests, two a second, and the same among a neighbour's long prompts, one every two seconds."""
    rng = np.random.default_rng([seed, 2])
    quiet = load("azure-conv-2023", seed=seed).head(240).at_rate(2, 1, rng)
    end = int(quiet.arrival[-1])
    noise = np.arange(0, end, 2_000_000_000)
    arrival = np.concatenate((quiet.arrival, noise))
    order = np.argsort(arrival, kind="stable")
    prompt = np.concatenate((quiet.prompt, np.full(len(noise), 16_000)))
    output = np.concatenate((quiet.output, np.full(len(noise), 64)))
    names = (TENANT,) * len(quiet) + ("neighbour",) * len(noise)
    both = Trace("two tenants", arrival[order], prompt[order], output[order],
                 tenant=tuple(names[at] for at in order.tolist()))
    return Trace("one tenant", quiet.arrival, quiet.prompt, quiet.output, tenant=(TENANT,) * len(quiet)), both


def _p99_gap(result: Result, trace: Trace) -> float:
    """The 99th percentile of the tenant's time per output token, ms."""
    line = result.timeline
    assert trace.tenant is not None
    mine = np.array([name == TENANT for name in trace.tenant])[line.request] & (line.output > 1)
    tpot = ((line.e2el - line.ttft)[mine]) / (line.output[mine] - 1)
    return float(np.percentile(tpot, 99)) / 1e6


def caveat_frame(found: Sequence[Caveat]) -> pd.DataFrame:
    """A row a study: name, what the ratio is of, and the ratio."""
    import pandas as pd
    return pd.DataFrame([(each.name, each.metric, each.ratio) for each in found], columns=["name", "metric", "ratio"])


def caveat_table(found: Sequence[Caveat]) -> Table:
    """The ratios in one table; the reasons are told below it."""
    rows = [(each.name, each.metric, ", ".join(f"{name} {value:,.4g}" for name, value in each.measured.items()),
             f"{each.ratio:.2f}x") for each in found]
    return Table("Where continuous batching does not pay", ("", "of", "measured", "worth"), tuple(rows),
                 "Above 1x the switch pays: more tokens a second, or a shorter latency. Requests are the first of "
                 f"azure-conv-2023 unless said otherwise; model: {SETTING}.")


def records(found: Sequence[Caveat]) -> dict[str, Any]:
    """All of them as one document."""
    return {"setting": SETTING, "caveats": [{**vars(each), "measured": dict(each.measured)} for each in found]}
