"""Outcomes: how each request of a trace ended, why, and how often it was tried. It knows no latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.frozen import Kept
from simulator.gate import REFUSED, SKIPPED, TIMED_OUT, VERDICTS
from simulator.record import NEVER, Record
from simulator.timeline import Timeline

Words = NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Outcomes(Kept):
    """Columns with an entry a row of the trace.

    Attributes:
        status: "finished"; "rejected" by the gate; "failed": the engine refused its last try; "aborted": the client
            cancelled its last try; "skipped": it was never sent, for the turn before it was not answered; "unfinished".
        reason: Why it was rejected, refused, given up or skipped; None for the others.
        tries: How often it was sent, to be refused or not.
        asked, sent: When its first and its last try were sent, ns; -1 if it never was.
        timed_out: Tries that the client cancelled, in all.
    """

    status: Words
    reason: Words
    tries: Ints
    asked: Ints
    sent: Ints
    timed_out: int

    def count(self, status: str) -> int:
        """Requests that ended so."""
        return int((self.status == status).sum())

    @property
    def retried(self) -> int:
        """Tries beyond the first ones, in all."""
        return int(np.maximum(self.tries - 1, 0).sum())


def outcomes(verdict: NDArray[np.int8], follows: NDArray[np.bool_], record: Record, line: Timeline,
             refusal: str = REFUSED) -> Outcomes:
    """What became of the requests, given what the gate said of each, and which waited for another one's answer.

    `refusal` is what those are told that are refused.
    """
    rows = len(verdict)
    sent, refused, cancelled = (_latest(rows, events) for events in (record.sent, record.refused, record.cancelled))
    status = np.array(["unfinished", "rejected"], object)[(verdict > 0).astype(np.int8)]
    reason = words(VERDICTS, verdict)
    # Of both at one instant, the refusal is the later one: time passes before anybody is cancelled.
    for which, word, why in ((follows & (verdict == 0) & (sent < 0) & (refused < 0), "skipped", SKIPPED),
                             (cancelled > refused, "aborted", TIMED_OUT),
                             ((refused >= cancelled) & (refused >= 0), "failed", refusal),
                             (line.request, "finished", None)):
        status[which], reason[which] = word, why
    tries = np.bincount(np.concatenate((record.sent[:, 0], record.refused[:, 0])), minlength=rows)
    return Outcomes(status, reason, tries, _earliest(rows, record.sent, record.refused), np.maximum(sent, refused),
                    len(record.cancelled))


def words(known: tuple[Any, ...], codes: NDArray[Any]) -> Words:
    """The words of the codes; code 0 says nothing."""
    return np.array((None, *known[1:]), object)[codes]


def _earliest(rows: int, *events: Ints) -> Ints:
    """The first time at which each row has one of these events, ns; -1 without one."""
    column = np.full(rows, NEVER, np.int64)
    for each in events:
        np.minimum.at(column, each[:, 0], each[:, 1])
    return np.where(column == NEVER, -1, column)


def _latest(rows: int, events: Ints) -> Ints:
    """The last time at which each row has an event, ns; -1 without one."""
    column = np.full(rows, -1, np.int64)
    np.maximum.at(column, events[:, 0], events[:, 1])
    return column
