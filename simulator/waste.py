"""Waste: the time that idle slots cost beside the time that padding costs, and how full the batch was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.ledger import Ledger, durations, times, useful_rows
from simulator.recorder import Record

IDLE_PARTS = ("held", "stalled", "blocked_cap", "blocked_budget", "blocked_memory", "blocked_fragmentation",
              "blocked_batch", "blocked_step", "forming")
"""Parts of the slot ledger in which a slot is held for nothing, or is empty while somebody waits."""


@dataclass(frozen=True)
class Waste:
    """Slot-seconds lost, each counted once.

    Attributes:
        idle_slots: Slots that compute nothing although they are held or somebody waits for one.
        finished_rows: Slots of finished requests that compute all the same.
        padded_positions: In the slots that do compute, the share of padded token positions in the step's positions.
            Padded context adds no position and is not counted.
    """

    idle_slots: float
    finished_rows: float
    padded_positions: float

    @property
    def padding(self) -> float:
        """Slot-seconds lost to padding, in rows and in positions."""
        return self.finished_rows + self.padded_positions


def waste(record: Record, slots: Ledger) -> Waste:
    """What the run lost, by the steps and the slot ledger."""
    steps, took = record.steps, durations(record)
    finished = times(steps["spent"], took)
    computing = steps["decodes"] + steps["chunks"]
    padded = steps["padding"] - steps["spent"]
    positions = np.maximum(steps["decodes"] + steps["prompt"] + padded, 1)
    share = float((took * (computing * padded / positions)).sum())
    idle = sum(slots.parts[name] or 0 for name in IDLE_PARTS) - finished
    return Waste(idle / 1e9, finished / 1e9, share / 1e9)


def effective_batch(record: Record) -> float | None:
    """Sequences that compute new tokens: the mean over all steps, weighted by their duration; idle time is left out."""
    took = durations(record)
    busy = int(took.sum())
    return times(useful_rows(record), took) / busy if busy else None
