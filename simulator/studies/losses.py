"""Losses: seconds lost to idle slots beside seconds lost to padding. The common mistake is to blame padding."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.result import Result
from simulator.waste import IDLE_PARTS


@dataclass(frozen=True)
class Loss:
    """Where the time of one policy's saturated run went.

    Attributes:
        label: The policy.
        duration: Of its run as deployed, padding included, in seconds.
        idle: Seconds for which its slots stood idle: slot-seconds over slots, measured without padding.
        padding: Seconds by which padding the very same batches makes the run longer.
    """

    label: str
    duration: float
    idle: float
    padding: float


def loss(label: str, ragged: Result, padded: Result) -> Loss:
    """What a policy loses, from its run without and its run with padding; the same run twice if it never pads."""
    without, duration = (run.summary(metrics=())["duration"] or 0.0 for run in (ragged, padded))
    idle = sum(ragged.slot_ledger.parts[part] or 0 for part in IDLE_PARTS) / ragged.slots.count / 1e9
    return Loss(label, duration, idle, duration - without)
