"""Waste: the time that idle slots cost beside the time that padding costs, and how full the batch was."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.areas import times
from simulator.ledger import Ledger, durations, useful_rows
from simulator.record import Record

IDLE_PARTS = ("held", "behind_prefill", "stalled", "blocked_cap", "blocked_budget", "blocked_memory",
              "blocked_fragmentation", "blocked_batch", "blocked_step", "forming")
"""Parts of the slot ledger in which a slot is held for nothing, or is empty while somebody waits."""


@dataclass(frozen=True)
class Waste:
    """Slot-seconds lost, each counted once.

    Attributes:
        idle_slots: Slots that do nothing useful although they are held or somebody waits for one. A finished request
            holds its slot for nothing, whether its row still computes or not.
        padding: In the slots that do something useful, the time by which padding makes their steps longer: padded
            prompts, padded contexts and the rows of finished requests that compute along.
    """

    idle_slots: float
    padding: float


def waste(record: Record, slots: Ledger) -> Waste:
    """What the run lost, by its plans and its slot ledger."""
    idle = sum(slots.parts[part] or 0 for part in IDLE_PARTS)
    padding = times(record.plan("decodes") + record.plan("chunks"), record.plan("excess"))
    return Waste(idle / 1e9, padding / 1e9)


def effective_batch(record: Record) -> float | None:
    """Sequences that compute new tokens: the mean over all steps, weighted by their duration; idle time is left out."""
    took = durations(record)
    busy = int(took.sum())
    return times(useful_rows(record), took) / busy if busy else None
