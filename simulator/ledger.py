"""Ledgers: where every slot-nanosecond, token position and KV-token-nanosecond of a run went. They add up exactly.

Slots and tokens are summed over plans: inside a stretch their numbers do not change, and only the queue may fill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.columns import Ints
from simulator.memory import Memory
from simulator.record import Record
from simulator.recorder import CODES, OBSTACLES
from simulator.slots import Gaps, Slots

SLOT_PARTS: dict[str, str] = {
    "decode": "computes a new output token",
    "prefill": "computes prompt tokens for the first time",
    "recompute": "computes again what a preemption threw away",
    "held": "finished, but held until others are done",
    "stalled": "holds a slot, but takes no part in the step",
    "blocked_cap": "empty: the queue is stopped by the cap on sequences",
    "blocked_budget": "empty: the queue is stopped by the token budget",
    "blocked_memory": "empty: the queue is stopped by a lack of free memory",
    "blocked_fragmentation": "empty: the queue is stopped by a lack of a long enough hole in memory",
    "blocked_batch": "empty: the queue is stopped by a batch that lets nobody in",
    "blocked_step": "empty: the queue is looked at again after the step",
    "forming": "empty: no step runs while the policy waits for more requests",
    "no_queue": "empty: nobody waits",
    "idle": "empty: no step runs, nobody waits",
}
"""The parts of the slot ledger, in words."""
TOKEN_PARTS: dict[str, str] = {
    "useful": "computed for the first time",
    "padding": "computed for nothing",
    "recompute": "computed again after a preemption",
}
"""The parts of the token ledger, in words."""
KV_PARTS: dict[str, str] = {
    "holding": "holds the KV of a token",
    "reserved": "reserved by a request that has not filled it",
    "internal": "rounding: the unused rest of a block or interval",
    "external": "free, but in holes too short for the head of the queue",
    "free": "free",
}
"""The parts of the KV ledger, in words."""
FEW = 16
"""Rows that Python's own integers add up as fast as numpy."""


@dataclass(frozen=True)
class Ledger:
    """A total, and the parts that add up to it.

    Attributes:
        unit: Of all amounts.
        of: What the total is, in words.
        total: In the unit; None where it has no bound.
        parts: Amount by part; None for a part that has no bound.
        words: What each part is.
    """

    unit: str
    of: str
    total: int | None
    parts: Mapping[str, int | None]
    words: Mapping[str, str]

    def __post_init__(self) -> None:
        known = sum(amount for amount in self.parts.values() if amount is not None)
        if self.total is not None and known != self.total:
            raise ArithmeticError(f"the {self.unit} of the ledger come to {known}, not to {self.total}")

    def share(self, *names: str) -> float | None:
        """These parts over the total; None if the total is 0 or has no bound."""
        amounts = [self.parts[name] for name in names]
        if not self.total or None in amounts:
            return None
        return sum(amount for amount in amounts if amount is not None) / self.total

    def rows(self) -> list[dict[str, object]]:
        """A row a part: its name, its words, its amount and its share."""
        return [{"part": name, "means": self.words[name], self.unit: amount, "share": self.share(name)}
                for name, amount in self.parts.items()]


def times(amounts: Ints, durations: Ints) -> int:
    """The sum of amount x duration, exact: 64 bits do not hold a pool's tokens times a day's nanoseconds."""
    largest = int(np.abs(amounts).max(initial=0)) * int(np.abs(durations).max(initial=0))
    rows = (1 << 63) // (largest + 1)    # of which 64 bits hold the sum for certain
    if rows < FEW:
        return sum(amount * lasts for amount, lasts in zip(amounts.tolist(), durations.tolist(), strict=True))
    return sum(int(amounts[at:at + rows] @ durations[at:at + rows]) for at in range(0, len(amounts), rows))


def durations(record: Record) -> Ints:
    """How long all steps of each plan last together, ns."""
    return record.plan_ends - record.plan("start")


def useful_rows(record: Record) -> Ints:
    """Sequences that compute new tokens in each step of a plan."""
    return record.plan("decodes") + record.plan("chunks") - record.plan("redoing")


def slot_ledger(record: Record, gaps: Gaps, slots: Slots) -> Ledger:
    """Slots x time from the first request sent to the end of the last step. A row takes all the time of its step."""
    plan, lasts, queued = record.plan, durations(record), record.plan_ends - record.queued_from
    empty, vacant = slots.count - plan("running"), slots.count - gaps.in_slots
    stalled = plan("running") - plan("decodes") - plan("chunks") - plan("held")
    parts = {"decode": times(plan("decodes"), lasts), "prefill": times(plan("chunks") - plan("redoing"), lasts),
             "recompute": times(plan("redoing"), lasts), "held": times(plan("held"), lasts),
             "stalled": times(stalled, lasts) + times(gaps.in_slots, gaps.end - gaps.start)}
    for code, obstacle in enumerate(OBSTACLES):
        parts[f"blocked_{obstacle or 'step'}"] = times(empty * (plan("blocked") == code), queued)
    parts |= {"forming": times(vacant, gaps.end - gaps.waited_from), "no_queue": times(empty, lasts - queued),
              "idle": times(vacant, gaps.waited_from - gaps.start)}
    return Ledger("slot-ns", f"{slots.count} slots: {slots.meaning}", slots.count * _span(record),
                  {name: parts[name] for name in SLOT_PARTS}, SLOT_PARTS)


def token_ledger(record: Record) -> Ledger:
    """Token positions computed in all steps. A row that decodes computes one."""
    decodes, prompt, redone, padding = (times(record.plan(name), record.plan("steps")) for name in
                                        ("decodes", "prompt", "redone", "padding"))
    parts = {"useful": decodes + prompt - redone, "padding": padding, "recompute": redone}
    return Ledger("token positions", "token positions computed", decodes + prompt + padding, parts, TOKEN_PARTS)


def kv_ledger(record: Record, gaps: Gaps, memory: Memory, unlimited: bool) -> Ledger:
    """KV capacity x time from the first request sent to the end of the last step.

    A step is charged with what it holds at its end. Between steps all memory is free, unless requests keep their
    slots: then it is charged as in the step before.
    """
    took = record.ends - record.starts
    kept = gaps.in_slots > 0
    np.add.at(took, gaps.after[kept], (gaps.end - gaps.start)[kept])
    holding = record.step("resident") + record.step("decodes") + record.step("prompt")
    promised = np.where(record.step("promised") < 0, holding, record.step("promised"))
    used = record.step("used") * memory.block_size
    parts: dict[str, int | None] = {"holding": times(holding, took), "reserved": times(promised - holding, took),
                                    "internal": times(used - promised, took), "external": None, "free": None}
    if unlimited:
        return Ledger("token-ns", "KV cache without a bound", None, parts, KV_PARTS)
    capacity = memory.capacity * memory.block_size
    torn = record.step("blocked") == CODES["fragmentation"]
    if torn.any():
        torn &= record.step("waiting") > 0
    idle = int((gaps.end - gaps.start)[~kept].sum())
    parts["external"] = times((capacity - used) * torn, took)
    parts["free"] = times((capacity - used) * ~torn, took) + capacity * idle
    return Ledger("token-ns", f"{capacity:,} tokens of KV cache", capacity * _span(record), parts, KV_PARTS)


def _span(record: Record) -> int:
    """From the first request sent to the end of the last step, ns."""
    return int(record.ends[-1] - record.sent[:, 1].min()) if len(record.ends) else 0
