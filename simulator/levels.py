"""Levels: how much of each part of a ledger there is at each instant of a run. `ledger` adds them up.

Slots and tokens are told by plans: inside a stretch their numbers do not change, and only the queue may fill. Slots and
KV lie on the clock of the run, in ns; token positions on a clock that counts steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simulator.areas import Level
from simulator.columns import Ints, Packed, packed
from simulator.memory import Memory
from simulator.record import Record
from simulator.recorder import CODES, OBSTACLES
from simulator.slots import Gaps, Slots

Levels = Mapping[str, tuple[Level, ...]]
"""By part of the ledger: levels that add up."""


def _level(start: Ints, end: Ints, amount: Packed) -> Level:
    """A level whose amounts take few bytes: all parts of a long run are there at once."""
    return Level(start, end, packed(amount))


def slot_levels(record: Record, gaps: Gaps, slots: Slots) -> Levels:
    """Slots by what they are for. A row takes all the time of its step."""
    plan, start, end, queued = record.plan, record.plan("start"), record.plan_ends, record.queued_from
    empty, vacant = slots.count - plan("running"), slots.count - gaps.in_slots
    left_out = plan("running") - plan("decodes") - plan("chunks") - plan("held")
    behind = (plan("paused") > 0) & (plan("chunks") > 0)
    levels: dict[str, tuple[Level, ...]] = {
        "decode": (_level(start, end, plan("decodes")),),
        "prefill": (_level(start, end, plan("chunks") - plan("redoing")),),
        "recompute": (_level(start, end, plan("redoing")),),
        "held": (_level(start, end, plan("held")),),
        "behind_prefill": (_level(start, end, left_out * behind),),
        "stalled": (_level(start, end, left_out * ~behind), _level(gaps.start, gaps.end, gaps.in_slots))}
    for code, obstacle in enumerate(OBSTACLES):
        levels[f"blocked_{obstacle or 'step'}"] = (_level(queued, end, empty * (plan("blocked") == code)),)
    levels["forming"] = (_level(gaps.waited_from, gaps.end, vacant),)
    levels["no_queue"] = (_level(start, queued, empty),)
    levels["idle"] = (_level(gaps.start, gaps.waited_from, vacant),)
    return levels


def token_levels(record: Record) -> Levels:
    """Token positions by what they are for, on a clock that counts steps. A row that decodes computes one."""
    plan, first = record.plan, record.firsts
    positions = {"useful": plan("decodes") + plan("prompt") - plan("redone"), "padding": plan("padding"),
                 "recompute": plan("redone")}
    return {name: (_level(first, first + plan("steps"), amount),) for name, amount in positions.items()}


def kv_levels(record: Record, gaps: Gaps, memory: Memory, unlimited: bool) -> Levels:
    """Tokens of KV cache by what they hold; without a bound nothing is said of what is free.

    A step is charged with what it holds at its end. Between steps all memory is free, unless requests keep their slots:
    then it is charged as in the step before.
    """
    tokens = _tokens_held(record, memory.block_size)
    if not unlimited:
        tokens |= _tokens_free(record, memory)
    kept, starts = gaps.in_slots > 0, record.starts
    levels: dict[str, tuple[Level, ...]] = {
        name: (_level(starts, record.ends, amount),
               _level(gaps.start[kept], gaps.end[kept], amount[gaps.after[kept]])) for name, amount in tokens.items()}
    if not unlimited:
        rest = gaps.start[~kept], gaps.end[~kept]
        cached = _cached_at_rest(record, gaps.after[~kept], memory)
        levels["cached"] += (_level(*rest, cached),)
        levels["free"] += (_level(*rest, memory.capacity * memory.block_size - cached),)
    return levels


def _tokens_held(record: Record, block_size: int) -> dict[str, Packed]:
    """What requests hold in each step."""
    holding = record.step("resident") + record.step("decodes") + record.step("prompt")
    promised = np.where(record.step("promised") < 0, holding, record.step("promised"))
    return {"holding": packed(holding), "reserved": packed(promised - holding),
            "internal": packed(record.step("used") * block_size - promised)}


def _tokens_free(record: Record, memory: Memory) -> dict[str, Packed]:
    """What nobody holds in each step."""
    free, empty = memory.capacity - record.step("used"), record.step("empty")
    cached = np.where(empty < 0, 0, free - empty)
    torn = record.step("blocked") == CODES["fragmentation"]
    if torn.any():
        torn &= record.step("waiting") > 0
    size = memory.block_size
    return {"external": packed((free - cached) * torn * size), "cached": packed(cached * size),
            "free": packed((free - cached) * ~torn * size)}


def _cached_at_rest(record: Record, after: Ints, memory: Memory) -> Ints:
    """Tokens that hold reusable KV while nothing runs, after each of these steps."""
    if not len(record.rests):
        return np.zeros(len(after), np.int64)
    steps, empty = record.rests.T
    at = np.searchsorted(steps, after + 1)
    return (memory.capacity - empty[at]) * memory.block_size
