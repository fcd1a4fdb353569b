"""Ideas: static and continuous batching side by side, each cell filled with what one run measured.

It reads the record of a run and knows nothing of the policy but its name and what it decides about at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.areas import times
from simulator.counting import counted
from simulator.ledger import durations, useful_rows
from simulator.record import Record
from simulator.result import Result
from simulator.tables import Table


@dataclass(frozen=True)
class Idea:
    """What one run shows of the idea behind its policy.

    Attributes:
        unit: What the policy decides about at once.
        memberships: Sets of running requests that followed one another.
        batch_steps, batch_s: Mean life of such a set, in steps and seconds.
        held_share: Share of taken slot-time in which a finished request held the slot.
        effective_batch: Time-weighted mean of useful rows a step, and its 10th and 90th percentile.
        output_throughput: Output tokens a second.
        decisions: Times at which somebody entered or left, a share of all steps.
        kv_peak_tokens: Most tokens with KV at once.
        kv_taken_tokens: Most tokens of memory set aside at once.
    """

    unit: str
    memberships: int
    batch_steps: float
    batch_s: float
    held_share: float
    effective_batch: tuple[float, float, float]
    output_throughput: float | None
    decisions: float
    kv_peak_tokens: int
    kv_taken_tokens: int


def idea(result: Result) -> Idea:
    """Measure one run."""
    record, plan = result.record, result.record.plan
    duration = durations(record)
    taken = times(plan("running"), duration)
    changes = _changes(record)
    total = len(record.ends)
    return Idea(
        result.policy.unit, len(changes), total / len(changes), float(duration.sum()) / len(changes) / 1e9,
        times(plan("held"), duration) / taken, _spread(useful_rows(record), duration),
        result.summary()["output_throughput"], len(changes) / total,
        int((plan("resident") + plan("steps") * plan("decodes") + plan("prompt")).max()),
        int(record.used.max()) * result.block_size)


def _changes(record: Record) -> Any:
    """Instants at which somebody took a slot: each begins another set of running requests."""
    return np.unique(record.stays[:, 1])


def _spread(rows: Any, duration: Any) -> tuple[float, float, float]:
    """Time-weighted mean, 10th and 90th percentile."""
    order = np.argsort(rows, kind="stable")
    share = np.cumsum(duration[order]) / duration.sum()
    low, high = (float(rows[order][np.searchsorted(share, at)]) for at in (0.1, 0.9))
    return float((rows * duration).sum() / duration.sum()), low, high


def side_by_side(results: Mapping[str, Result]) -> Table:
    """The ideas behind several runs, question by question."""
    measured = [idea(result) if len(result.record.ends) else None for result in results.values()]
    rows = tuple((question, *("-" if one is None else answer(one) for one in measured)) for question, answer in _ROWS)
    ideas = "Two ideas" if len(results) == 2 else "The ideas"
    return Table(f"{ideas}, side by side (saturated)", ("", *results), rows)


_ROWS = (
    ("scheduling unit", lambda one: one.unit),
    ("batch lifetime", lambda one: f"{one.batch_steps:,.1f} steps, {one.batch_s:,.3f} s"),
    ("slots finished, still held", lambda one: f"{one.held_share:.1%} of taken slot-time"),
    ("effective batch over time", lambda one: "{:,.1f}; {:,.0f} to {:,.0f} in 80% of the time".format(
        *one.effective_batch)),
    ("throughput", lambda one: f"{one.output_throughput or 0:,.0f} output tokens/s"),
    ("scheduler work: make up",
     lambda one: f"{counted(one.memberships, 'batch')}, one in {1 / one.decisions:,.1f} steps"),
    ("KV need at the peak", lambda one: f"{counted(one.kv_peak_tokens, 'token')}, {one.kv_taken_tokens:,} set aside"),
)
