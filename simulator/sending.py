"""Sending: the requests of a setup as its client sends them: those that come by themselves, and those that follow.

It knows what the gate said and which prompts begin alike, and no clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from simulator.conversations import Conversations
from simulator.prefixes import prefixes
from simulator.request import Request
from simulator.setup import Setup

AT_ONCE = 1 << 16    # rows of a trace that become Python numbers together


def sending(setup: Setup) -> tuple[Iterator[Request], Conversations | None]:
    """The accepted requests that wait for nobody, in the order of arrival, and the conversations of those that do.

    Saturated clients do not think: a turn follows as soon as the one before it is answered.
    """
    requests, parent = Requests(setup), setup.trace.parent
    accepted = setup.verdict == 0
    if not setup.turns_wait or parent is None:
        return requests.at(accepted), None
    think = None if setup.scenario.load == "saturated" else setup.trace.think
    return requests.at(accepted & (parent < 0)), Conversations(parent, accepted, think, requests.one)


class Requests:
    """Makes the requests of a setup, by row of its trace."""

    def __init__(self, setup: Setup) -> None:
        trace = setup.trace
        self._columns = [trace.arrival, setup.prompt, setup.max_tokens]
        if trace.priority is not None:
            self._columns.append(trace.priority)
        self._shared = prefixes(trace)
        self._plain = not self._shared and trace.priority is None

    def at(self, wanted: NDArray[np.bool_]) -> Iterator[Request]:
        """The requests of the wanted rows, made as they are needed."""
        where = np.flatnonzero(wanted)
        for start in range(0, len(where), AT_ONCE):
            rows = where[start:start + AT_ONCE]
            columns = [column[rows].tolist() for column in self._columns]
            yield from map(Request if self._plain else self._made, rows.tolist(), *columns)

    def one(self, row: int) -> Request:
        """The request of one row."""
        return self._made(row, *(int(column[row]) for column in self._columns))

    def _made(self, row: int, arrival: int, prompt: int, max_tokens: int, priority: int = 0) -> Request:
        return Request(row, arrival, prompt, max_tokens, prefix=self._shared[row] if self._shared else (),
                       priority=priority)
