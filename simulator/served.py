"""Served: what one replica's slots and KV cache were used for, while it was there. It knows no other replica."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from simulator.columns import Ints
from simulator.frozen import Kept
from simulator.ledger import Ledger, kv_ledger, slot_ledger
from simulator.levels import Levels, kv_levels, slot_levels
from simulator.memory import Memory
from simulator.record import Record
from simulator.setup import Setup
from simulator.slots import Gaps, Slots, gaps_between, is_unlimited


@dataclass(frozen=True, eq=False)
class Served(Kept):
    """One replica's part of a run.

    Attributes:
        setup: The scenario, resolved.
        record: All that happened on the replica.
        there: From when to when it is charged, ns.
        slots: What it is charged for.
        memory: An empty memory like its own.
        answered: Rows of the trace whose requests it answered, in order.
        left: When each of them gave up its slot for good, ns.
    """

    setup: Setup
    record: Record
    there: tuple[int, int]
    slots: Slots
    memory: Memory
    answered: Ints
    left: Ints

    @cached_property
    def gaps(self) -> Gaps:
        """The times in which it runs no step."""
        return gaps_between(self.record, self.left, self.there)

    @property
    def lasts(self) -> int:
        """How long it is charged, ns."""
        return self.there[1] - self.there[0]

    @cached_property
    def slot_ledger(self) -> Ledger:
        """Where every slot-nanosecond went."""
        return slot_ledger(self.record, self.gaps, self.slots, self.lasts)

    @cached_property
    def kv_ledger(self) -> Ledger:
        """Where every token-nanosecond of KV cache went."""
        return kv_ledger(self.record, self.gaps, self.memory, self._without_bound, self.lasts)

    def levels(self, name: str) -> Levels:
        """The parts of its ledger of "slots" or "kv" over time."""
        if name == "slots":
            return slot_levels(self.record, self.gaps, self.slots)
        return kv_levels(self.record, self.gaps, self.memory, self._without_bound)

    @property
    def _without_bound(self) -> bool:
        return is_unlimited(self.setup) or self.memory.unbounded
