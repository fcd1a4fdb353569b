"""Limits: what keeps others out of the batch, as shares of the time in which steps run. It knows no metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from simulator.areas import area_of_intervals, times
from simulator.columns import Ints
from simulator.doors import Shut
from simulator.ledger import durations
from simulator.record import Record
from simulator.recorder import CODES

STOPPED_BY: dict[str, tuple[str | None, ...]] = {
    "cap": ("cap",),
    "budget": ("budget",),
    "memory": ("memory", "fragmentation"),
    "batch": ("batch",),
    "step": (None,),
}
"""Why a queue stands still, by the obstacles that a policy names: the cap on sequences, the token budget of a step, too
little free memory, a batch that lets nobody in, and a step in progress, after which the queue is looked at again."""
QUEUE_LIMIT = "queue_limit"
"""Why nobody comes to an empty queue: every replica has as many requests outstanding as it may have."""
LIMITS = ("cap", "budget", "memory", "batch", QUEUE_LIMIT)
"""The reasons that last: all but the step in progress."""


def limits(records: Iterable[Record], door: Shut | None = None) -> dict[str, float] | None:
    """Shares of the time in steps, over all records: "nothing" where nobody waits, else why the queue stands still.

    Where nobody waits at a replica while the door is shut, QUEUE_LIMIT keeps others out; without a door nothing is said
    of that. The shares add up to 1. None if no step ran.
    """
    busy, found = 0, dict.fromkeys(("nothing", *STOPPED_BY, *([] if door is None else [QUEUE_LIMIT])), 0)
    for record in records:
        start, queued = record.plan("start"), record.queued_from
        busy += int(durations(record).sum())
        found["nothing"] += int((queued - start).sum())
        if door is not None:
            kept_out = door.within(start, queued)
            found["nothing"] -= kept_out
            found[QUEUE_LIMIT] += kept_out
        waits = record.plan_ends - queued
        for name, stops in _stops(record).items():
            found[name] += times(stops, waits)
    return {name: time / busy for name, time in found.items()} if busy else None


def waited(record: Record, since: Ints, until: Ints) -> dict[str, Ints]:
    """How long several requests waited for each reason, each from `since` to `until` (ns), in steps of this record.

    What is left is time in which no step ran.
    """
    start, end = record.plan("start"), record.plan_ends
    areas = {name: [area_of_intervals(start, end, stops, edge) for edge in (since, until)]
             for name, stops in _stops(record).items()}
    return {name: after - before for name, (before, after) in areas.items()}


def _stops(record: Record) -> Mapping[str, Ints]:
    """By reason, 1 for each plan that has it, else 0."""
    blocked = record.plan("blocked")
    return {name: np.isin(blocked, [CODES[obstacle] for obstacle in obstacles]).astype(np.int64)
            for name, obstacles in STOPPED_BY.items()}
