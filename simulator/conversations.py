"""Conversations: which turns follow an answer, and when. They know the trace's turns, and neither server nor limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simulator.request import Request


class Conversations:
    """The later turns of a trace. Each waits for the answer to the turn before it, and then as long as its user thinks.

    A conversation ends with the first turn that is not answered: what would have followed it is skipped.

    Args:
        parent: The row of the turn before each row; -1 for none.
        accepted: Which rows may be sent at all.
        think: ns from the answer until the next turn is sent, by row. Without it a turn is sent at its own time, or
            with the answer if that comes later.
        make: Makes the request of a row, at its own time.

    Attributes:
        left: Later turns that may yet be sent.
        skipped: Those that never will.
    """

    def __init__(self, parent: NDArray[np.int64], accepted: NDArray[np.bool_], think: NDArray[np.int64] | None,
                 make: Callable[[int], Request]) -> None:
        self._accepted, self._think, self._make = accepted.tolist(), think, make
        self._following: dict[int, list[int]] = {}
        self._from = [int(each) for each in self._accepted]    # accepted rows from each on, itself among them
        for row, before in reversed(list(enumerate(parent.tolist()))):
            if before >= 0:
                self._following.setdefault(before, []).append(row)
                self._from[before] += self._from[row]
        self.skipped = 0
        self.left = int((accepted & (parent >= 0)).sum())
        for row in np.flatnonzero(~accepted & (parent < 0)).tolist():
            self._skip(self._from[row])

    def after(self, row: int, now: int) -> list[Request]:
        """The turns that the answer to this row allows, each with the time at which it is due."""
        turns = []
        for each in reversed(self._following.get(row, ())):
            if self._accepted[each]:
                turns.append(turn := self._make(each))
                turn.arrival = max(now, turn.arrival) if self._think is None else now + int(self._think[each])
            else:
                self._skip(self._from[each])
        return turns

    def sent(self) -> None:
        """A later turn is on its way."""
        self.left -= 1

    def lose(self, row: int) -> int:
        """This row will not be answered; returns how many turns are skipped for it."""
        lost = self._from[row] - 1
        self._skip(lost)
        return lost

    def _skip(self, turns: int) -> None:
        self.skipped += turns
        self.left -= turns
