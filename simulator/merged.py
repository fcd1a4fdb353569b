"""Merged: the records of several replicas as one. It measures nothing.

The steps of the replicas stand one after another, so they are numbered through, and their ends are in order within each
replica only. Of a request that was sent several times, only what its last try did is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints, Packed
from simulator.record import Record
from simulator.router import Routed

NOWHERE = -1


def merged(records: Sequence[Record], routed: Routed, rows: int) -> Record:
    """All that happened on the replicas, and what the router did, over a trace of so many rows."""
    last = last_replicas(routed, rows)
    refused, cancelled = _pairs(routed.refused), _pairs(routed.cancelled)
    return Record(
        np.concatenate([record.plans for record in records]), np.concatenate([record.ends for record in records]),
        np.concatenate([record.used for record in records]), np.zeros((0, 2), np.int64),
        np.concatenate(list(_spans(records, last))),
        np.concatenate([_kept(record.last_stays, last, number) for number, record in enumerate(records)]),
        _pairs(routed.sent), refused, np.column_stack((cancelled, np.zeros(len(cancelled), np.int64))),
        sum(record.out_of_range for record in records), sum(record.found for record in records),
        sum(record.asked for record in records))


def last_replicas(routed: Routed, rows: int) -> Ints:
    """The number of the replica that had the last try of each request; -1 if none had any."""
    request, number = _pairs(routed.to).T
    last = np.full(rows, NOWHERE, np.int64)
    last[request] = number    # of the same request, the last one stands
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
