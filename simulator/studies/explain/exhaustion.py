"""What happens when KV runs out in mid-batch? The same load with less and less memory, and what preemption costs.

The first run has all the memory it wants and tells the peak. Then the pool shrinks below it: first nothing happens,
then the youngest lose their KV, the queue waits, and the first tokens are late. At one pool recompute meets swap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import Any

import numpy as np

from simulator.counting import counted
from simulator.policies import Vllm, Vllm0
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.studies.explain.answer import Answer, Rows, ms, number, times_as
from simulator.studies.explain.contention import busy_rate
from simulator.studies.explain.paging import Run
from simulator.tables import Table

QUESTION = "What happens when KV runs out in mid-batch?"
REQUESTS = 200
"""At most so many: the pools are shares of the peak of one load, and a longer one would take long."""
SHARES = (1.2, 1.1, 1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)
"""Pools, as shares of the peak demand."""
SEEN = 0.05
"""Preemptions are looked at in the largest pool in which they come to this share of the requests."""
BUSY = 0.85
CLEARLY = 1.2
MANY = 30
"""Fewer preemptions prove nothing about the two ways to preempt."""
BLOCK = 16


@dataclass(frozen=True)
class Pools:
    """What the sweep found.

    Attributes:
        requests: How many of the scenario's first ones make the load.
        peak: Tokens of KV cache that the load takes at most.
        rate: Requests a second.
        rows: One a pool, the largest first.
        tight: The run in the pool in which preemptions are looked at.
        tight_row: Its row.
    """

    requests: int
    peak: int
    rate: float
    rows: Rows
    tight: Result
    tight_row: dict[str, Any]


def exhaustion(scenario: Scenario, run: Run) -> Answer:
    """Ask it of the scenario's first requests, with new arrivals."""
    few = scenario.but(num_prompts=min(REQUESTS, scenario.num_prompts or REQUESTS))
    pools = sweep(few, few.request_rate or busy_rate(few, run, BUSY), run)
    modes = _modes(few, pools, run)
    return Answer("exhaustion", QUESTION, _told(pools, modes), _table(pools),
                  {"pools": pools.rows, "tight": [pools.tight_row], "modes": modes,
                   "preemptions": preemptions(pools.tight), "kv": kv_over_time(pools.tight)})


def sweep(scenario: Scenario, rate: float, run: Run) -> Pools:
    """Peak demand at this rate, and what smaller pools make of it."""
    paced = scenario.but(load="trace", request_rate=rate, rate_scale=1.0, policy=Vllm())
    free = run(paced.but(kv_capacity_tokens=inf))
    peak = int(free.record.used.max(initial=1)) * BLOCK
    longest = int(free.setup.footprint.max(initial=1))
    sizes = {pool(peak, share, longest): share for share in reversed(SHARES)}
    found = [(run(paced.but(kv_capacity_tokens=tokens)), sizes[tokens]) for tokens in sorted(sizes, reverse=True)]
    rows = [_row(result, share) for result, share in found]
    requests = len(free.setup.output)
    many = SEEN * requests
    at = next((at for at, row in enumerate(rows) if row["preemptions"] > many), len(rows) - 1)
    return Pools(requests, peak, rate, rows, found[at][0], rows[at])


def pool(peak: int, share: float, longest: int) -> int:
    """Tokens: this share of the peak, but room for the longest request beside V0's watermark, and V1's null block."""
    return (ceil(max(peak * share, 1.02 * longest) / BLOCK) + 1) * BLOCK


def _row(result: Result, share: float | None = None) -> dict[str, Any]:
    summary, tokens = result.summary(), result.token_ledger
    names = ("kv_capacity_tokens", "preemptions", "recomputed_tokens", "median_ttft_ms", "p99_ttft_ms", "p99_itl_ms",
             "p99_e2el_ms", "output_throughput", "mean_batch_size")
    longest = result.latency("itl").percentile(100)
    return {"share_of_peak": share, **{name: summary[name] for name in names},
            "recomputed_share": tokens.share("recompute"), "longest_itl_ms": None if longest is None else longest / 1e6}


def _modes(scenario: Scenario, pools: Pools, run: Run) -> Rows:
    """The two ways to preempt, in the tight pool, by the engine that has both."""
    base = scenario.but(load="trace", request_rate=pools.rate, rate_scale=1.0,
                        kv_capacity_tokens=pools.tight.setup.deployment.kv_capacity_tokens)
    return [{"mode": mode} | _row(run(base.but(policy=Vllm0(preemption_mode=mode)))) for mode in ("recompute", "swap")]


def preemptions(result: Result) -> Rows:
    """Whoever lost its slot: when, for how long, and when it emitted a token again; seconds."""
    record = result.record
    found: Rows = []
    stays = record.stays[np.lexsort((record.stays[:, 1], record.stays[:, 0]))].tolist()
    for (request, _, lost), (same, back, _) in pairwise(stays):
        if request == same:
            first = record.ends[record.spans[record.spans[:, 0] == request, 1]]
            again = first[first > back]
            found.append({"request": request, "lost_s": lost / 1e9, "admitted_s": back / 1e9,
                          "next_token_s": int(again.min()) / 1e9})
    return sorted(found, key=lambda row: (row["lost_s"], row["request"]))


def kv_over_time(result: Result, bins: int = 400) -> Rows:
    """Share of the pool in use; seconds."""
    frame = result.ledger_over_time("kv", bins).frame()
    used = frame["holding"] + frame["reserved"] + frame["internal"]
    capacity = result.memory.capacity * result.block_size
    return [{"start_s": start, "end_s": end, "used_share": share / capacity}
            for start, end, share in zip(frame["start_s"], frame["end_s"], used, strict=True)]


def _told(pools: Pools, modes: Rows) -> tuple[str, ...]:
    enough, tight = pools.rows[0], pools.tight_row
    peak = (f"At {pools.rate:,.4g} requests/s the first {counted(pools.requests, 'request')}, all that are used here, "
            f"{'take' if pools.requests > 1 else 'takes'} {pools.peak:,} tokens of KV cache at the peak, and more "
            "memory than that changes nothing.")
    late = [row for row in pools.rows if _late(row, enough)]
    if not late:
        return (f"{peak} Nor does less, as long as it holds the longest request.",)
    shown = {row["share_of_peak"]: row for row in (late[0], tight, late[-1])}
    cliff = ", ".join(f"{times_as(row['p99_ttft_ms'], enough['p99_ttft_ms'])} as long with {share:.0%} of the peak"
                      for share, row in sorted(shown.items(), reverse=True))
    return (f"{peak} Below it the queue waits: the p99 of TTFT, {ms(enough['p99_ttft_ms'])} before, is {cliff}."
            f"{_not_smooth(pools.rows)} {_falls(enough, shown)}",
            _lost(tight), _compared(*modes))


def _falls(enough: dict[str, Any], shown: Mapping[float, dict[str, Any]]) -> str:
    """How much less is served than with enough memory."""
    most = enough["output_throughput"] or inf
    falls = {share: 1 - (row["output_throughput"] or 0.0) / most for share, row in sorted(shown.items(), reverse=True)}
    told = ", ".join(f"{fall:.1%} less at {share:.0%}" if fall >= 0.001 else f"the same at {share:.0%}"
                     for share, fall in falls.items())
    return f"Output tokens/s are {told}."


def _not_smooth(rows: Rows) -> str:
    """Says where a smaller pool came out better than the next larger one."""
    odd = [(large, small) for large, small in pairwise(rows)
           if (small["p99_ttft_ms"] or 0) < 0.99 * (large["p99_ttft_ms"] or 0)]
    if not odd:
        return ""
    large, small = (f"{row['share_of_peak']:.0%}" for row in odd[0])
    return f" At {large} it is longer than at {small}: so few requests make a p99 that one burst decides it."


def _lost(tight: dict[str, Any]) -> str:
    """What preemption took."""
    if not tight["preemptions"]:
        return "Nobody lost any KV: these answers hardly grow, so it is the queue that waits."
    return (f"With {tight['share_of_peak']:.0%} of the peak, the youngest lost its KV {_times(tight['preemptions'])} "
            f"and went back to the queue; {tight['recomputed_tokens']:,} tokens were computed again, "
            f"{tight['recomputed_share'] or 0:.1%} of all positions, and the longest gap between two tokens of an "
            f"answer was {ms(tight['longest_itl_ms'])}.")


def _compared(recompute: dict[str, Any], swap: dict[str, Any]) -> str:
    """The two ways to preempt, side by side."""
    tokens = "the scheduler that knows both (vllm-0)"
    if not recompute["preemptions"] and not swap["preemptions"]:
        return f"Recompute against swap: {tokens} preempts nobody in that pool."
    return (f"Recompute against swap, in that pool and by {tokens}: recompute preempts "
            f"{_times(recompute['preemptions'])}, computes {recompute['recomputed_tokens']:,} tokens again and serves "
            f"{number(recompute['output_throughput'])} tokens/s, with a p99 of ITL of {ms(recompute['p99_itl_ms'])}; "
            f"swap preempts {_times(swap['preemptions'])}, computes {swap['recomputed_tokens']:,} again and serves "
            f"{number(swap['output_throughput'])} tokens/s, with {ms(swap['p99_itl_ms'])}."
            + (" That is an anecdote, not a measurement." if recompute["preemptions"] < MANY else ""))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _late(row: dict[str, Any], enough: dict[str, Any]) -> bool:
    """Whether the first tokens come clearly later than with enough memory."""
    return (row["p99_ttft_ms"] or 0) > CLEARLY * (enough["p99_ttft_ms"] or inf)


def _table(pools: Pools) -> Table:
    cells = tuple((f"{row['share_of_peak']:.0%}", f"{row['kv_capacity_tokens']:,}", f"{row['preemptions']:,}",
                   f"{row['recomputed_share'] or 0:.1%}", ms(row["median_ttft_ms"]), ms(row["p99_ttft_ms"]),
                   ms(row["p99_itl_ms"]), number(row["output_throughput"])) for row in pools.rows)
    return Table(f"Less and less memory (vllm, the first {counted(pools.requests, 'request')}, {pools.rate:,.4g} "
                 f"requests/s, peak demand {pools.peak:,} tokens)",
                 ("share of the peak", "tokens of KV", "preemptions", "computed again", "TTFT, median", "TTFT, p99",
                  "ITL, p99", "output tokens/s"), cells)
