"""An account of saved runs, from their JSON alone: `batchsim run` writes numbers, a page needs sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulator.account import Account
from simulator.counting import counted
from simulator.limits import LIMITS
from simulator.run_tables import shown, tables

Record = Mapping[str, Any]


def account_of(runs: Mapping[str, Record]) -> Account:
    """Question, answer and tables of runs by the names to show. What batchsim did not write fails anyhow."""
    told = {label: [*_told(run)] for label, run in runs.items()}
    answer = next(iter(told.values())) if len(runs) == 1 else [
        _most(runs), *(f"{label}: {' '.join(sentences)}" for label, sentences in told.items())]
    return Account(_question(runs), tuple(answer), tuple(tables(runs)), _words(runs, "facts"),
                   tuple(f"{label}: {line}" if len(runs) > 1 else line for label, run in runs.items()
                         for line in run["remarks"]))


def _question(runs: Mapping[str, Record]) -> str:
    policies, traces = (" and ".join(dict.fromkeys(str(run[name]) for run in runs.values()))
                        for name in ("policy", "trace"))
    return f"How {'do' if ' and ' in policies else 'does'} {policies} serve {traces}?"


def _most(runs: Mapping[str, Record]) -> str:
    """Which run serves most."""
    ranked = sorted(runs, key=lambda label: -(runs[label]["output_throughput"] or 0.0))
    values = [f"{label} {shown(runs[label]['output_throughput'])}" for label in ranked]
    return f"Output tokens/s: {', '.join(values)}."


def _told(run: Record) -> Iterator[str]:
    """What was served, how it felt, and what stopped it."""
    if not run["completed"]:
        yield f"None of {counted(run['num_prompts'], 'request')} finishes."
        return
    yield (f"{run['completed']:,} of {run['num_prompts']:,} requests finish in {shown(run['duration'])} s: "
           f"{shown(run['output_throughput'])} output tokens/s, {shown(run['request_throughput'])} requests/s.")
    if run.get("median_ttft_ms") is not None and run.get("p99_ttft_ms") is not None:
        yield (f"The first token takes {shown(run['median_ttft_ms'])} ms for the median request and at most "
               f"{shown(run['p99_ttft_ms'])} ms for 99 in 100.")
    if run.get("median_tpot_ms") is not None:
        yield f"Each further token takes {shown(run['median_tpot_ms'])} ms for the median request."
    if run["request_goodput"] is not None:
        yield f"{shown(run['request_goodput'])} requests/s meet every objective ({run['goodput']})."
    stops = {name: run.get(f"stopped_by_{name}_share") or 0.0 for name in LIMITS}
    most = max(stops, key=lambda name: stops[name])
    yield (f"In {stops[most]:.0%} of the time in steps the {most.replace('_', ' ')} keeps others out, more than "
           "anything else." if stops[most] >= 0.005 else "Hardly ever does a request wait for a slot.")


def _words(runs: Mapping[str, Record], name: str) -> tuple[str, ...]:
    """What the runs say under this name, each once."""
    return tuple(dict.fromkeys(str(line) for run in runs.values() for line in run[name]))
