"""Ledgers: where every slot-nanosecond, token position and KV-token-nanosecond of a run went. They add up exactly.

`levels` says what there is of each part at each instant; here the parts get their words, and are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulator.areas import times
from simulator.columns import Ints
from simulator.counting import counted
from simulator.frozen import Kept
from simulator.levels import Levels, kv_levels, slot_levels, token_levels
from simulator.memory import Memory
from simulator.record import Record
from simulator.slots import Gaps, Slots

SLOT_PARTS: dict[str, str] = {
    "decode": "computes a new output token",
    "prefill": "computes prompt tokens for the first time",
    "recompute": "computes again what a preemption threw away",
    "held": "finished, but held until others are done",
    "behind_prefill": "holds a slot, but waits while the prompts of others are computed",
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
    "cached": "free, but still holds KV that somebody may find again",
    "free": "free, and holds nothing",
}
"""The parts of the KV ledger, in words."""
LEDGERS = {"slots": SLOT_PARTS, "tokens": TOKEN_PARTS, "kv": KV_PARTS}
"""All ledgers by name, with their parts."""


@dataclass(frozen=True)
class Ledger(Kept):
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
        super().__post_init__()
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


def durations(record: Record) -> Ints:
    """How long all steps of each plan last together, ns."""
    return record.plan_ends - record.plan("start")


def useful_rows(record: Record) -> Ints:
    """Sequences that compute new tokens in each step of a plan."""
    return record.plan("decodes") + record.plan("chunks") - record.plan("redoing")


def slot_ledger(record: Record, gaps: Gaps, slots: Slots, lasts: int) -> Ledger:
    """Slots x time, for as long as the replica is charged."""
    return Ledger("slot-ns", f"{counted(slots.count, 'slot')}: {slots.meaning}", slots.count * lasts,
                  added_up(slot_levels(record, gaps, slots), SLOT_PARTS), SLOT_PARTS)


def token_ledger(record: Record) -> Ledger:
    """Token positions computed in all steps."""
    parts = added_up(token_levels(record), TOKEN_PARTS)
    total = sum(times(record.plan(name), record.plan("steps")) for name in ("decodes", "prompt", "padding"))
    return Ledger("token positions", "token positions computed", total, parts, TOKEN_PARTS)


def kv_ledger(record: Record, gaps: Gaps, memory: Memory, unlimited: bool, lasts: int) -> Ledger:
    """KV capacity x time, for as long as the replica is charged."""
    parts = added_up(kv_levels(record, gaps, memory, unlimited), KV_PARTS)
    if unlimited:
        return Ledger("token-ns", "KV cache without a bound", None, parts, KV_PARTS)
    capacity = memory.capacity * memory.block_size
    return Ledger("token-ns", f"{capacity:,} tokens of KV cache", capacity * lasts, parts, KV_PARTS)


def added_up(levels: Levels, words: Mapping[str, str]) -> dict[str, int | None]:
    """The amount of each part over the whole run; None for one of which nothing is said."""
    return {name: sum(level.total() for level in levels[name]) if name in levels else None for name in words}


def together(ledgers: Sequence[Ledger]) -> Ledger:
    """The ledgers of several replicas as one; a single one is itself."""
    first = ledgers[0]
    if len(ledgers) == 1:
        return first
    parts = {name: _sum(ledger.parts[name] for ledger in ledgers) for name in first.parts}
    return Ledger(first.unit, f"{len(ledgers)} x {first.of}", _sum(ledger.total for ledger in ledgers), parts,
                  first.words)


def _sum(amounts: Iterable[int | None]) -> int | None:
    """The sum; None as soon as one amount has no bound."""
    known = list(amounts)
    return None if None in known else sum(amount for amount in known if amount is not None)
