"""Remarks: what a reader of a run's numbers must know - who was left out, cut, or counted otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.counting import counted
from simulator.facts import UNTRIED
from simulator.gate import (
    FILLS_ENGINE,
    LONG_PROMPT,
    NEVER_FITS,
    REFUSED,
    SHED,
    SKIPPED,
    TIMED_OUT,
    TOO_LONG,
    VERDICTS,
)
from simulator.haste import too_hasty
from simulator.lagging import FEWEST, MATERIAL, lag
from simulator.run_tables import shown
from simulator.scenario import Scenario
from simulator.setup import Setup

if TYPE_CHECKING:
    from simulator.result import Result

BANDED = {"output_throughput": "output tokens/s", "mean_ttft_ms": "mean TTFT in ms", "mean_tpot_ms": "mean TPOT in ms"}
"""The figures of a band, in words."""
NOBODY = 1
"""The exit status of a command whose runs serve no request."""
REMEDIES = {
    "rejected": "give {}",
    "aborted": "give a longer --ttft-timeout or --request-timeout",
    "failed": "give --max-retries, a larger --queue-limit or more replicas",
}
"""What would get requests served that ended so; between the braces stands what makes ROOM for them."""
ROOM = {
    VERDICTS[TOO_LONG]: "--too-long truncate or a model that holds more (--model, --max-model-len)",
    VERDICTS[FILLS_ENGINE]: "a larger max_model_len or context_length of the engine (--set) or more KV cache",
    VERDICTS[NEVER_FITS]: "more KV cache (--gpu, --tensor-parallel-size, --gpu-memory-utilization, "
                          "--kv-capacity-tokens)",
    VERDICTS[LONG_PROMPT]: "an engine that takes longer prompts (--set; `batchsim list policies -v` tells its knobs)",
}
"""By the reason for which a request was rejected."""
SHORTER = "a trace with shorter requests"
RESERVED = ("shorter declared lengths (--max-tokens, --max-model-len)",
            "a shorter --max-model-len, or a reserve of declared lengths (--set reserve=declared)")
"""What makes room for requests that fit but for what is reserved: of declared lengths, and of the model's length."""


def remarks(result: Result, summary: Mapping[str, Any] | None = None) -> list[str]:
    """One line each; none if there is nothing to say. `summary` is that of the result, if it was made before."""
    summary, report = summary or result.summary(metrics=()), result.setup.trace.report
    told = [
        (len(report.rejected), "row", "left out of the trace"),
        (report.out_of_order, "row", "of the trace sorted by arrival"),
        (summary["cut"], "output", "cut by --max-tokens"),
        (summary["truncated"], "request", "shortened to the longest that the model holds"),
        (summary["clipped"], "output", "cut by the engine's max_model_len"),
        (summary["longer_than_declared"], "output", "longer than the default declares, declared at full length"),
        (summary["out_of_range_steps"], "step", "outside the measured range of the cost model"),
    ]
    lines = [f"{counted(count, what)} {became}" for count, what, became in told if count]
    lines += [*report.notes, *turns_remark(result.setup), *router_remark(result.scenario),
              *too_hasty(result.scenario.goodput, result.setup.cost)]
    if summary["skipped"]:
        lines.insert(0, f"{SKIPPED}: {summary['skipped']:,}")
    if result.scenario.load == "saturated" and (result.scenario.ttft_timeout or result.scenario.request_timeout):
        lines.append("a client that saturates waits for ever: its timeouts are not used; --load trace uses them")
    lines += load_remark(result, summary)
    lines += [f"{name} of {result.policy.name} has no effect beside its other knobs"
              for name in result.policy.unheeded()]
    if summary["aborted"]:
        lines.insert(0, f"aborted: {TIMED_OUT}: {summary['aborted']:,}")
    if summary["failed"]:
        lines.insert(0, f"failed: {REFUSED if result.cluster is None else SHED}: {summary['failed']:,}")
    if summary["rejected"]:
        lines.insert(0, rejected_remark(summary))
    return lines


def load_remark(result: Result, summary: Mapping[str, Any]) -> list[str]:
    """That more comes than is answered, or that the trace is too short to tell; nothing where answers set the pace.

    Of requests that are refused or give up, other remarks tell.
    """
    line, offered, fills = result.timeline, summary["offered_request_rate"], summary["filling_request_rate"]
    if offered is None or len(line) < FEWEST:
        return []
    behind = lag(line)
    if behind is not None and behind > MATERIAL:
        served = shown(summary["request_throughput"])
        return [f"overloaded: {shown(offered)} requests/s come and {served} are answered: the queue grows as long as "
                "they come, so that latencies tell how long the trace is"]
    if behind is None and fills is not None and offered > fills * (1 + MATERIAL):
        came, stay = float(np.ptp(line.sent)) / 1e9, float((line.left - line.admitted).mean()) / 1e9
        return [f"{shown(offered)} requests/s come, and {shown(fills)} would fill every slot; but they come for "
                f"{shown(came)} s only, and each holds its slot for {shown(stay)} s: the trace ends before the queue "
                "shows whether it grows for ever"]
    return []


def rejected_remark(summary: Mapping[str, Any]) -> str:
    """The remark of a run that rejects requests."""
    return f"rejected: {_rejected(summary)}"


def unserved(summary: Mapping[str, Any]) -> str | None:
    """Why nobody was served, and the next move; None if somebody was."""
    if summary["completed"]:
        return None
    ends = {name: summary[name] for name in REMEDIES if summary[name]}
    counts = ", ".join(f"{count:,} {name}" for name, count in ends.items())
    told = f"nobody was served: of {counted(summary['num_prompts'], 'request')}, {counts}"
    if summary["rejected"]:
        told += f" ({_rejected(summary)})"
    return f"{told}: {_remedy(next(iter(ends)), summary)}"


def never_served(summary: Mapping[str, Any]) -> str | None:
    """How many requests no waiting would get served, why, and the next move.

    None if there are none, and where nobody is served at all, of which `unserved` tells.
    """
    if not summary["rejected"] or not summary["completed"]:
        return None
    return (f"{summary['rejected']:,} of {counted(summary['num_prompts'], 'request')} can never be served "
            f"({_rejected(summary)}): {_remedy('rejected', summary)}")


def _remedy(end: str, summary: Mapping[str, Any]) -> str:
    """The next move for requests that ended so; whoever was rejected needs what he was rejected for."""
    room = [remedy for reason, remedy in ROOM.items() if f"{reason}: " in (summary["rejected_reasons"] or "")]
    if summary.get("reserved_beyond_pool") is None:
        room.append(SHORTER)
    else:
        room.insert(0, RESERVED["reserve=model" in (summary["policy_args"] or "").split(",")])
    return REMEDIES[end].format(", or ".join(room))


def _rejected(summary: Mapping[str, Any]) -> str:
    """Why requests were rejected, how large they are, and what is reserved where that is what is too much."""
    reserved = summary.get("reserved_beyond_pool")
    reserving = "" if reserved is None else f", and up to {reserved:,} are reserved for one that would fit"
    return f"{summary['rejected_reasons']}; the largest has {summary['largest_rejected_tokens']:,} tokens{reserving}"


def turns_remark(setup: Setup) -> list[str]:
    """When later turns of conversations are sent; nothing where there are none."""
    if not setup.trace.has_turns:
        told = "has no effect: the trace tells no conversations; --columns session=NAME does"
        return [f"turns {setup.scenario.turns} {told}"] if setup.scenario.turns != Scenario.turns else []
    if not setup.turns_wait:
        return ["turns are sent at their own times, whether the one before is answered or not"]
    if setup.scenario.load == "saturated":
        return ["turns follow as soon as the one before is answered; --turns recorded queues all of them at 0"]
    then = ("at their own time if that is later" if setup.trace.think is None else "after the think time of the trace")
    return [f"turns wait for the answer to the one before, and are sent {then}; --turns recorded sends all at their "
            "own times"]


def router_remark(scenario: Scenario) -> list[str]:
    """That a router was chosen where there is nothing to choose; no reason to refuse it, for replicas may be varied."""
    if scenario.router == Scenario.router or scenario.most_replicas > 1:
        return []
    return [f"router {scenario.router} has nothing to choose: there is one replica; --replicas 2 gives it another one"]


def band_remark(result: Result) -> str | None:
    """What an error of the step times would do, or that none is stated; None where nobody asked."""
    if result.band is None:
        asked = result.scenario.error_band is not None
        return f"no error band: {result.setup.cost.name} states no error; --error-band 5 takes 5%" if asked else None
    found = result.band.record()
    spans = [f"{label} {found[f'{name}_low']:,.4g} to {found[f'{name}_high']:,.4g}" for name, label in BANDED.items()
             if found[f"{name}_low"] is not None]
    told = f"with every step {found['error_band_percent']:.3g}% shorter or longer: {', '.join(spans)}"
    stated = result.scenario.error_band == "stated" and result.setup.cost.held_against() == "kernels"
    return f"{told}; held against the times of single kernels, for {UNTRIED}" if stated else told
