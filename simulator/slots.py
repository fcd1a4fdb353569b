"""Slots: how many there are, and what a replica does between its steps. The ground on which the ledgers stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.columns import Ints
from simulator.frozen import Kept
from simulator.memory import UNLIMITED, Memory
from simulator.record import Record
from simulator.setup import Setup


@dataclass(frozen=True)
class Slots:
    """The denominator of slot utilisation.

    Attributes:
        count: Slots of the replica.
        meaning: What makes them so many, in words.
    """

    count: int
    meaning: str


def count_slots(setup: Setup, memory: Memory, most_running: int) -> Slots:
    """The policy's cap, or the most requests that memory would hold where that is less.

    Memory holds at least as many as ever ran at once, and as many as its capacity takes of the accepted requests' mean
    footprint. A cap of 1,024 with room for 200 would look worse than it is.
    """
    cap = max(most_running, setup.policy.slots)
    if is_unlimited(setup):
        bound = most_running if cap >= UNLIMITED else cap
    else:
        bound = max(most_running, _memory_bound(setup, memory))
    if cap <= bound:
        return Slots(cap, "the policy's cap")
    if bound == most_running:
        return Slots(bound, "the most that ever ran at once")
    return Slots(bound, "the most requests of mean size that memory holds")


def _memory_bound(setup: Setup, memory: Memory) -> int:
    """How many requests of the accepted ones' mean footprint fill the memory; 0 if there are none."""
    footprints = setup.footprint[setup.verdict == 0]
    tokens = int(footprints.sum())
    return memory.capacity * memory.block_size * len(footprints) // tokens if tokens else 0


def is_unlimited(setup: Setup) -> bool:
    """Whether the KV cache has no bound."""
    return setup.deployment.kv_capacity_tokens >= UNLIMITED


@dataclass(frozen=True, eq=False)
class Gaps(Kept):
    """The times between steps in which none runs, in ns.

    Attributes:
        after: Index of the step before each gap; -1 before the first.
        start, end: Its bounds.
        in_slots: Requests that hold a slot all the same.
        waited_from: When requests began to wait within it; its end if none does.
    """

    after: Ints
    start: Ints
    end: Ints
    in_slots: Ints
    waited_from: Ints


def gaps_between(record: Record, left: Ints, there: tuple[int, int]) -> Gaps:
    """Every gap while the replica is there, cut where a client hangs up in it, given when those left who were answered.

    Nobody is admitted in a gap, so a queue only grows between the cuts.
    """
    sent = np.sort(record.sent[:, 1])
    before, after = np.append(there[0], record.plan_ends), np.append(record.plan("start"), there[1])
    idle = after > before
    start, end = _cut(before[idle], after[idle], record.cancelled[:, 1])
    in_slots = _until(record.stays[:, 1], start) - _until(record.stays[:, 2], start)
    waiting = _until(sent, start) - _until(left, start) - _until(record.cancelled[:, 1], start) - in_slots
    next_sent = np.append(sent, end[-1:])[_until(sent, start)]
    return Gaps(_until(record.ends, start) - 1, start, end, in_slots,
                np.minimum(np.where(waiting > 0, start, next_sent), end))


def _cut(start: Ints, end: Ints, at: Ints) -> tuple[Ints, Ints]:
    """The gaps between `start` and `end`, those in two that have one of the instants inside."""
    inside = np.setdiff1d(at[_until(start, at) > _until(end, at)], start)
    return np.sort(np.concatenate((start, inside))), np.sort(np.concatenate((end, inside)))


def _until(events: Ints, instants: Ints) -> Ints:
    """How many of the events lie at or before each instant."""
    return np.searchsorted(np.sort(events), instants, side="right")
