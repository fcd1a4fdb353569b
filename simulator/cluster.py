"""Cluster: what several replicas and their router did, once the clock has stopped. It measures nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints, Packed
from simulator.fleet import Life
from simulator.frozen import Kept
from simulator.record import Record
from simulator.router import Routed

NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Cluster(Kept):
    """Replicas by number, from 0 on, in the order in which they were ready.

    Attributes:
        records: All that happened on each replica.
        lives: From when to when each replica was there that was ever ordered, in that order.
        last: The number of the replica that had the last try of each row of the trace; -1 if none had any.
        whole: The records as one. The steps of the replicas stand one after another and are numbered through, so their
            ends are in order within each replica only. Of a request that was sent several times, only what its last
            try did is kept.
    """

    records: tuple[Record, ...]
    lives: tuple[Life, ...]
    last: Ints
    whole: Record

    @property
    def served(self) -> list[Life]:
        """The lives of those that were ready, by number."""
        return sorted((life for life in self.lives if life.ready is not None), key=lambda life: life.ready or 0)

    @property
    def gave_up(self) -> Ints:
        """When clients hung up on requests that waited at the router, ns."""
        at_replicas = {tuple(row) for record in self.records for row in record.cancelled[:, :2].tolist()}
        everywhere = self.whole.cancelled[:, :2].tolist()
        return np.array([at for row, at in everywhere if (row, at) not in at_replicas], np.int64)

    def paid(self) -> list[tuple[int, int]]:
        """From when to when each replica is paid for, within the run: its first request sent, its last step's end."""
        return [self.paid_for(life) for life in self.lives]

    def paid_for(self, life: Life) -> tuple[int, int]:
        """The same of one of them."""
        return self._within(life.ordered, life.stopped)

    def there(self) -> list[tuple[int, int]]:
        """From when to when each replica that was ready could run something, within the run."""
        return [self._within(life.ready or 0, life.stopped) for life in self.served]

    def _within(self, since: int, until: int | None) -> tuple[int, int]:
        start, end = self.whole.bounds
        last = end if until is None else min(until, end)
        return min(max(since, start), last), last


def cluster(records: Sequence[Record], lives: Sequence[Life], routed: Routed, rows: int) -> Cluster:
    """What replicas and router did, over a trace of so many rows."""
    last = _last_replicas(_pairs(routed.to), rows)
    cancelled = _pairs(routed.cancelled)
    whole = Record(
        np.concatenate([record.plans for record in records]), np.concatenate([record.ends for record in records]),
        np.concatenate([record.used for record in records]), np.zeros((0, 2), np.int64),
        np.concatenate(list(_spans(records, last))),
        np.concatenate([_kept(record.last_stays, last, number) for number, record in enumerate(records)]),
        _pairs(routed.sent), _pairs(routed.refused),
        np.column_stack((cancelled, np.zeros(len(cancelled), np.int64))),    # of tries before the last no span is left
        sum(record.out_of_range for record in records), sum(record.found for record in records),
        sum(record.asked for record in records))
    return Cluster(tuple(records), tuple(lives), last, whole)


def _last_replicas(to: Ints, rows: int) -> Ints:
    last = np.full(rows, NOWHERE, np.int64)
    last[to[:, 0]] = to[:, 1]    # of the same request, the last one stands
    return last


def _spans(records: Sequence[Record], last: Ints) -> Iterator[NDArray[np.int64]]:
    """The spans of last tries, with the steps of all replicas numbered through."""
    first = 0
    for number, record in enumerate(records):
        yield _kept(record.last_spans, last, number) + np.array([0, first, first])
        first += len(record.ends)


def _kept(rows: Packed, last: Ints, number: int) -> Packed:
    """The rows of those requests whose last try this replica had."""
    return rows[last[rows[:, 0]] == number]


def _pairs(values: array[int]) -> Ints:
    return np.array(values, np.int64).reshape(-1, 2)
