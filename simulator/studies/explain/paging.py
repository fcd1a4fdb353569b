"""Why does continuous batching need paged memory? The same requests through four memories, let in as slots get free.

Orca's rule admits at every step, and reserves prompt and declared output in one piece: by first fit, by buddies, or as
slots that may lie anywhere. vLLM's takes blocks as requests grow. So one row after the other drops a kind of waste.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulator.policies import Orca, Policy, Vllm
from simulator.recorder import CODES
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.setup import Setup, prepare
from simulator.studies.explain.answer import Answer, Rows, number, times_as
from simulator.tables import Table

QUESTION = "Why does it need paged memory?"
SLOTS = 512
FULL = 48
"""The pool is bounded to as many requests of mean size, where the GPU holds more: memory decides, not the slots."""
MEMORIES: dict[str, Policy] = {
    "first fit": Orca(max_bs=SLOTS, placement="first-fit"),
    "buddy": Orca(max_bs=SLOTS, placement="buddy"),
    "reserved, but anywhere": Orca(max_bs=SLOTS, placement="counted"),
    "paged": Vllm(max_num_seqs=SLOTS),
}
"""How memory is held, by its name in the answer."""

Run = Callable[[Scenario], Result]


def paging(scenario: Scenario, run: Run) -> Answer:
    """Ask it of the scenario's requests, all of them queued at the start."""
    base = scenario.but(load="saturated", max_concurrency=None, policy="vllm")
    setup = prepare(base)
    tokens, there = pool_of(setup), setup.deployment.kv_capacity_tokens
    base = base.but(kv_capacity_tokens=tokens)
    rows = [_row(name, run(base.but(policy=replace(policy)))) for name, policy in MEMORIES.items()]
    return Answer("paging", QUESTION, _told(rows, tokens, there), _table(rows, tokens), {"memories": rows})


def pool_of(setup: Setup) -> int:
    """Tokens of KV cache: as asked for, else as on the GPU, but no more than `FULL` requests of mean size take.

    It holds the longest reservation twice, so that no memory of the four has to refuse a request for good.
    """
    there = setup.deployment.kv_capacity_tokens
    if setup.scenario.kv_capacity_tokens is not None:
        return there
    mean = float((setup.prompt + setup.output).mean()) if len(setup.output) else 1.0
    return min(there, max(2 * setup.deployment.longest_declared, round(FULL * mean)))


def _row(memory: str, result: Result) -> dict[str, Any]:
    summary, record, ledger = result.summary(), result.record, result.kv_ledger
    stopped = record.step("waiting") > 0
    refused = {name: int((stopped & (record.step("blocked") == CODES[name])).sum())
               for name in ("fragmentation", "memory")}
    return {"memory": memory, "policy": result.policy.name, "steps": summary["steps"],
            "refused_with_enough_free": refused["fragmentation"], "refused_for_lack": refused["memory"],
            "effective_batch": summary["mean_batch_size"], "output_throughput": summary["output_throughput"],
            "preemptions": summary["preemptions"], "rejected": summary["rejected"],
            **{f"{part}_share": ledger.share(part) for part in ledger.parts}}


def _told(rows: Rows, tokens: int, there: int) -> tuple[str, ...]:
    first, buddy, _, paged = rows
    cut = f", cut from {there:,} so that memory decides and not the slots" if tokens < there else ""
    return (
        f"With {tokens:,} tokens of KV cache{cut}, first fit refused the head of the queue in "
        f"{first['refused_with_enough_free']:,} of {first['steps']:,} steps although enough tokens were free in all, "
        f"only not in one piece. It reserved {_share(first['reserved_share'])} of the pool for tokens that were not "
        f"there yet, or never came, and {_share(first['holding_share'])} held the KV of tokens.",
        f"Buddies refused so in {buddy['refused_with_enough_free']:,} of {buddy['steps']:,} steps; rounding took "
        f"{_share(buddy['internal_share'])} of their pool, and {_share(buddy['holding_share'])} held the KV of tokens.",
        f"With pages {_share(paged['holding_share'])} of it held the KV of tokens, and no refusal came while enough "
        "was free.",
        f"The effective batch was {number(first['effective_batch'])} with first fit, "
        f"{number(buddy['effective_batch'])} with buddies and {number(paged['effective_batch'])} with pages, which "
        f"served {times_as(paged['output_throughput'], first['output_throughput'])} the tokens of first fit.",
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _table(rows: Rows, tokens: int) -> Table:
    cells = tuple((row["memory"], number(row["effective_batch"]), number(row["output_throughput"]),
                   f"{row['refused_with_enough_free']:,}", f"{row['refused_for_lack']:,}", f"{row['steps']:,}",
                   *(_share(row[f"{part}_share"]) for part in ("holding", "reserved", "internal", "external")))
                  for row in rows)
    header = ("memory", "effective batch", "output tokens/s", "refused, enough free", "refused, too little", "steps",
              "holding", "reserved", "rounding", "in holes")
    return Table(f"Four memories of {tokens:,} tokens (saturated)", header, cells)
