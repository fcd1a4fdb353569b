"""Recorder: what happens on a replica, written down as columns of integers. It reads none of it.

A row of ``plans`` stands for one step, or for a stretch of steps that differ only in their context. Tokens are kept as
spans of consecutive steps, never one by one: a million requests make hundreds of millions of gaps.
"""

from __future__ import annotations

from array import array
from struct import Struct, pack

import numpy as np

from simulator.columns import Ints, PackedRows, packed
from simulator.record import Record

PLAN_COLUMNS = (
    "start",        # ns
    "steps",        # how many alike follow one another
    "decodes",      # useful rows that compute one token
    "context",      # KV tokens of those rows before the first step
    "chunks",       # rows that compute prompt or lost tokens
    "prompt",       # tokens those compute
    "redone",       # tokens of these that a preemption had thrown away
    "redoing",      # rows that compute such tokens
    "spent",        # rows of finished requests that compute all the same
    "padding",      # token positions computed for nothing, in each step
    "running",      # requests that hold a slot
    "held",         # of these, finished ones
    "waiting",      # requests in the queue
    "resident",     # tokens with KV before the first step
    "promised",     # tokens that reservations cover; -1 where nothing is reserved
    "empty",        # free blocks that hold nothing in the first step; -1 where no KV outlives its holder
    "blocked",      # index into OBSTACLES
    "paused",       # 1 where the decoding set took no part
    "excess",       # ns by which padding makes all of the steps together longer
)
OBSTACLES = (None, "cap", "budget", "memory", "fragmentation", "batch")
"""Why the head of the queue stayed out, by its code in the `blocked` column."""
ONE, PAIR, TRIPLE, SPAN = (Struct(kinds).pack for kinds in ("q", "2q", "3q", "3i"))
"""Rows as bytes: arrays take them five times as fast as numbers."""
CODES = {word: code for code, word in enumerate(OBSTACLES)}


class Recorder:
    """Append-only columns that a replica fills while it runs."""

    def __init__(self) -> None:
        self.plans = PackedRows(PLAN_COLUMNS)
        self.ends = array("q")      # end of every step, ns
        self.used = array("q")      # blocks held in every step
        self.rests = array("q")     # steps run before the replica had nothing to run, and blocks that held nothing then
        self.spans = array("i")     # request, first step, last step of a run of consecutive tokens
        self.stays = array("q")     # request, when it took its slot, when it gave it up
        self.sent = array("q")      # request, when the client sent it
        self.refused = array("q")   # request, when it was refused
        self.cancelled = array("q")    # request, when it was gone after its client cancelled it, the next step
        self.found = self.asked = 0    # prompt tokens at hand when requests were first admitted, and all of theirs
        self.out_of_range = 0       # steps outside the cost model's measured range

    def ran(self, ends: list[int], used: list[int]) -> None:
        """Steps ended at these instants, and held so many blocks each."""
        if len(ends) == 1:
            self.ends.frombytes(ONE(ends[0]))
            self.used.frombytes(ONE(used[0]))
        else:
            kinds = f"{len(ends)}q"
            self.ends.frombytes(pack(kinds, *ends))
            self.used.frombytes(pack(kinds, *used))

    def rest(self, empty: int) -> None:
        """There is nothing to run; the first word on it stands until a step runs."""
        if not self.rests or self.rests[-2] != len(self.ends):
            self.rests.extend((len(self.ends), empty))

    def cancel(self, index: int, now: int) -> None:
        """Request `index`, cancelled by its client, is gone; what it emitted lies before the next step."""
        self.cancelled.extend((index, now, len(self.ends)))

    def admit(self, found: int, prompt: int) -> None:
        """Somebody is admitted for the first time, and finds the KV of so many tokens of the prompt at hand."""
        self.found += found
        self.asked += prompt

    def span(self, index: int, first: int, last: int) -> None:
        """Request `index` emitted one token in each of the steps `first` to `last`."""
        self.spans.frombytes(SPAN(index, first, last))

    def stay(self, index: int, since: int, until: int) -> None:
        """Request `index` held a slot between two instants."""
        self.stays.frombytes(TRIPLE(index, since, until))

    def freeze(self) -> Record:
        """The columns as read-only arrays."""
        return Record(self.plans.table(), _frozen(self.ends), packed(_frozen(self.used)), _frozen(self.rests, 2),
                      _frozen(self.spans, 3), _frozen(self.stays, 3), _frozen(self.sent, 2), _frozen(self.refused, 2),
                      _frozen(self.cancelled, 3), self.out_of_range, self.found, self.asked)


def _frozen(column: array[int], width: int | None = None) -> Ints:
    """The values as they lie there, not copied; with a width, as rows."""
    values = np.frombuffer(column, column.typecode) if column else np.empty(0, column.typecode)
    values.flags.writeable = False
    return values if width is None else values.reshape(-1, width)
