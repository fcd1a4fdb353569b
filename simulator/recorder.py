"""Recorder: what happened on a replica, as columns of integers. It knows no metric and draws no conclusion.

A row of ``plans`` stands for one step, or for a stretch of steps that differ only in their context. Tokens are kept as
spans of consecutive steps, never one by one: a million requests make hundreds of millions of gaps.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from struct import Struct

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

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
    "blocked",      # index into OBSTACLES
    "paused",       # 1 where the decoding set took no part
    "excess",       # ns by which padding makes all of the steps together longer
)
OBSTACLES = (None, "cap", "budget", "memory", "fragmentation", "batch")
"""Why the head of the queue stayed out, by its code in the `blocked` column."""
_ROW = Struct(f"{len(PLAN_COLUMNS)}q")
CODES = {word: code for code, word in enumerate(OBSTACLES)}


class Recorder:
    """Append-only columns that a replica fills while it runs."""

    def __init__(self) -> None:
        self.plans = array("q")     # PLAN_COLUMNS, row after row
        self.ends = array("q")      # end of every step, ns
        self.used = array("q")      # blocks held in every step
        self.spans = array("q")     # request, first step, last step of a run of consecutive tokens
        self.stays = array("q")     # request, when it took its slot, when it gave it up
        self.sent = array("q")      # request, when the client sent it
        self.refused = array("q")   # request, when it was refused
        self.out_of_range = 0       # steps outside the cost model's measured range

    def plan(self, *row: int) -> None:
        """One step, or a stretch of steps alike, by PLAN_COLUMNS."""
        self.plans.frombytes(_ROW.pack(*row))

    def span(self, index: int, first: int, last: int) -> None:
        """Request `index` emitted one token in each of the steps `first` to `last`."""
        self.spans.extend((index, first, last))

    def stay(self, index: int, since: int, until: int) -> None:
        """Request `index` held a slot between two instants."""
        self.stays.extend((index, since, until))

    def freeze(self) -> Record:
        """The columns as read-only arrays."""
        return Record(_table(self.plans, len(PLAN_COLUMNS)), _frozen(self.ends), _frozen(self.used),
                      _table(self.spans, 3), _table(self.stays, 3), _table(self.sent, 2), _table(self.refused, 2),
                      self.out_of_range)


def _frozen(column: array[int]) -> Ints:
    values = np.frombuffer(column, np.int64) if column else np.empty(0, np.int64)
    values.flags.writeable = False
    return values


def _table(column: array[int], width: int) -> Ints:
    return _frozen(column).reshape(-1, width)


@dataclass(frozen=True, eq=False)
class Record:
    """All that happened on one replica.

    Attributes:
        plans: One row a plan; see PLAN_COLUMNS.
        ends: End of every step, ns.
        used: Blocks of memory held in every step.
        spans: Request, first step and last step of each run of tokens, in the order in which they ended. It has a token
            in the first step and in each step after it up to the last, but for those in which the set paused.
        stays: Request, start and end (ns) of each stay in a slot, in the order of their ends.
        sent: Request and when the client sent it (ns), in that order.
        refused: The same of requests that the engine refused at the door; they are not among those sent.
        out_of_range: Steps outside the cost model's measured range.
    """

    plans: Ints
    ends: Ints
    used: Ints
    spans: Ints
    stays: Ints
    sent: Ints
    refused: Ints
    out_of_range: int

    def plan(self, column: str) -> Ints:
        """One column of the plans."""
        return self.plans[:, PLAN_COLUMNS.index(column)]

    def fold(self) -> None:
        """Give up the spread columns; `steps` works them out again when it is asked."""
        self.__dict__.pop("steps", None)

    @cached_property
    def pauses(self) -> Ints:
        """Steps up to and including each in which the decoding set paused."""
        return np.cumsum(np.repeat(self.plan("paused"), self.plan("steps")))

    def tokens_of(self, spans: Ints) -> Ints:
        """Tokens that each of these spans stands for."""
        first, last = spans[:, 1], spans[:, 2]
        return last - first + 1 - (self.pauses[last] - self.pauses[first])

    @cached_property
    def steps(self) -> dict[str, Ints]:
        """Every step by itself: the plans' columns spread over their steps, and start, end and blocks used of each.

        What changes inside a stretch is worked out: contexts grow by one a row, and arrivals add to the queue.
        """
        repeats = self.plan("steps")
        alike = [name for name in PLAN_COLUMNS if name not in ("steps", "excess")]
        columns = {name: np.repeat(self.plan(name), repeats) for name in alike}
        first = np.cumsum(repeats) - repeats
        ahead = np.arange(len(self.ends)) - np.repeat(first, repeats)    # steps since the stretch began
        plan_start = columns["start"]
        columns["start"] = np.where(ahead == 0, plan_start, np.concatenate(([0], self.ends[:-1])))
        columns["end"], columns["used"] = self.ends, self.used
        columns["context"] = columns["context"] + ahead * columns["decodes"]
        columns["resident"] = columns["resident"] + ahead * columns["decodes"]
        arrivals = np.sort(self.sent[:, 1])
        columns["waiting"] = (columns["waiting"] + np.searchsorted(arrivals, columns["start"], side="right")
                              - np.searchsorted(arrivals, plan_start, side="right"))
        return columns
