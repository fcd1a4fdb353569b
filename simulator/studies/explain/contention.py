"""How do prefill and decode contend? One load, and the token budget of a step from small to large.

A step lasts as long as the tokens in it: a large budget lets whole prompts in, and all who decode wait for them; a
small one cuts prompts into many steps. Offline throughput hardly notices.
"""

from __future__ import annotations

from typing import Any

from simulator.policies import Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.studies.explain.answer import Answer, Rows, ms, number
from simulator.studies.explain.paging import Run
from simulator.tables import Table

QUESTION = "How do prefill and decode contend?"
BUDGETS = (256, 512, 1024, 2048, 4096, 8192, 16384)
"""Tokens a step."""
SLOTS = 256
BUSY = 0.7
"""Share of what the engine serves when saturated at which new requests come, unless a rate is asked for."""


def contention(scenario: Scenario, run: Run) -> Answer:
    """Ask it of the scenario's requests, with new arrivals."""
    rate = scenario.request_rate or busy_rate(scenario, run, BUSY)
    paced = scenario.but(load="trace", request_rate=rate, rate_scale=1.0)
    rows = [_row(run(paced.but(policy=Vllm(max_num_seqs=SLOTS, max_num_batched_tokens=budget))), budget)
            for budget in BUDGETS]
    return Answer("contention", QUESTION, _told(rows, rate), _table(rows, rate), {"budgets": rows})


def busy_rate(scenario: Scenario, run: Run, share: float) -> float:
    """Requests a second: this share of what vLLM serves of these requests when all of them are queued."""
    served = run(scenario.but(load="saturated", max_concurrency=None, policy="vllm")).summary()["request_throughput"]
    return round(share * (served or 1.0), 3)


def _row(result: Result, budget: int) -> dict[str, Any]:
    summary = result.summary()
    return {"max_num_batched_tokens": budget,
            **{name: summary[name] for name in ("median_itl_ms", "p99_itl_ms", "median_ttft_ms", "p99_ttft_ms",
                                                "output_throughput", "mean_batch_size")}}


def _told(rows: Rows, rate: float) -> tuple[str, ...]:
    small, large = rows[0], rows[-1]
    best = min(rows, key=lambda row: row["p99_ttft_ms"] or 0.0)
    enough = next(row for row in rows if _keeps_up(row, rows))
    overload = "" if enough is small else " (overload: the queue grows for as long as requests come)"
    return (
        f"At {rate:,.4g} requests/s, the gap between two tokens (ITL, p99) goes from {ms(small['p99_itl_ms'])} with a "
        f"budget of {small['max_num_batched_tokens']:,} tokens a step to {ms(large['p99_itl_ms'])} with "
        f"{large['max_num_batched_tokens']:,}" + (": whoever decodes waits for the prompts in the same step." if
                                                  (large["p99_itl_ms"] or 0) > (small["p99_itl_ms"] or 0) else "."),
        f"The first token comes soonest with the smallest budget: its p99 is {ms(small['p99_ttft_ms'])}."
        if best is small else
        f"The first token takes the other way: its p99 falls from {ms(small['p99_ttft_ms'])}{overload} to "
        f"{ms(best['p99_ttft_ms'])} at {best['max_num_batched_tokens']:,}, for small chunks read a prompt in many "
        "steps, and each of them costs one reading of the weights.",
        f"From {enough['max_num_batched_tokens']:,} on the output is the same, {number(enough['output_throughput'])} "
        f"to {number(large['output_throughput'])} tokens/s" + (
            "." if enough is small else f"; with {small['max_num_batched_tokens']:,} the engine does not keep up with "
                                        f"the requests, and serves {number(small['output_throughput'])}."),
    )


def _keeps_up(row: dict[str, Any], rows: Rows) -> bool:
    """Whether it serves as much as the best of them, but for a fiftieth."""
    return (row["output_throughput"] or 0) >= 0.98 * max(each["output_throughput"] or 0 for each in rows)


def _table(rows: Rows, rate: float) -> Table:
    names = {"ITL, median": "median_itl_ms", "ITL, p99": "p99_itl_ms", "TTFT, median": "median_ttft_ms",
             "TTFT, p99": "p99_ttft_ms"}
    cells = tuple((f"{row['max_num_batched_tokens']:,}", *(ms(row[name]) for name in names.values()),
                   number(row["output_throughput"]), number(row["mean_batch_size"])) for row in rows)
    return Table(f"The token budget of a step (vllm, {SLOTS} slots, {rate:,.4g} requests/s)",
                 ("tokens a step", *names, "output tokens/s", "effective batch"), cells)
