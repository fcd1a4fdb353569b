"""Doors: when no replica takes a request, because each has as many outstanding as it may have. They know no queue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from simulator.areas import area_of_intervals
from simulator.columns import Ints
from simulator.fleet import Life
from simulator.record import NEVER
from simulator.served import Served


class Shut(NamedTuple):
    """Intervals in which who comes is refused, or waits outside: their bounds, in ns, one after another."""

    start: Ints
    end: Ints

    def within(self, start: Ints, end: Ints) -> int:
        """For how long it is shut in all of these intervals together, ns."""
        until, since = (area_of_intervals(self.start, self.end, np.ones_like(self.start), edges)
                        for edges in (end, start))
        return int((until - since).sum())


def shut(replicas: Iterable[tuple[Served, Life]], limit: int) -> Shut:
    """When none of these replicas takes a request, each of which has at most `limit` outstanding."""
    found = [_places(served, life, limit) for served, life in replicas]
    at, by = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(at, kind="stable")
    at, free = at[order], np.cumsum(by[order])
    taken = np.flatnonzero((free[:-1] == 0) & (at[1:] > at[:-1]))    # of several changes at an instant, the last counts
    return Shut(at[taken], at[taken + 1])


def _places(served: Served, life: Life, limit: int) -> tuple[Ints, Ints]:
    """When the free places of a replica change, and by how many; a drained one has none."""
    sent, gone = served.record.sent[:, 1], np.concatenate((served.left, served.record.cancelled[:, 1]))
    drained = NEVER if life.drained is None else life.drained
    at = np.concatenate(([life.ready or 0], sent, gone))
    by = np.repeat([limit, -1, 1], [1, len(sent), len(gone)])
    here = at < drained
    return np.append(at[here], drained), np.append(by[here], -by[here].sum())
