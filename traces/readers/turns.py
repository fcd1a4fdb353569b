"""Conversations: which row is the turn before which, and what later turns repeat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traces.errors import TraceError

Int64 = npt.NDArray[np.int64]
ROOTS = ("", "-1")
"""How files say that a row has no turn before it."""


@dataclass(frozen=True)
class Turns:
    """Rows in order of arrival as turns: the row before each or -1, its conversation, and how many lost theirs."""

    parent: Int64
    session: tuple[str, ...]
    orphans: int = 0


def by_session(sessions: Sequence[str]) -> Turns:
    """The turn before is the row before of the same conversation; rows without a name are none."""
    last: dict[str, int] = {}
    parent = np.full(len(sessions), -1, dtype=np.int64)
    for row, session in enumerate(sessions):
        if session:
            parent[row] = last.get(session, -1)
            last[session] = row
    return Turns(parent, tuple(sessions))


def by_id(ids: Sequence[str], parents: Sequence[str], sessions: Sequence[str] | None) -> Turns:
    """The turn before is named; a conversation without a name of its own is called as its first row is.

    A row whose turn before is not among the rows, or comes later, starts a conversation and is an orphan.
    """
    places: dict[str, int] = {}
    parent = np.full(len(ids), -1, dtype=np.int64)
    named = list(ids) if sessions is None else list(sessions)
    orphans = 0
    for row, (one, before) in enumerate(zip(ids, parents, strict=True)):
        if before not in ROOTS:
            parent[row] = places.get(before, -1)
            orphans += parent[row] < 0
            if sessions is None and parent[row] >= 0:
                named[row] = named[parent[row]]
        places[one] = row
    return Turns(parent, tuple(named), int(orphans))


def accumulated(prompt: Int64, output: Int64, parent: Int64) -> tuple[Int64, Int64]:
    """Whole prompts from increments, and how much of each repeats the turns before it.

    Raises TraceError where a conversation grows beyond all bounds.
    """
    whole, repeated = prompt.tolist(), [0] * len(prompt)
    for row, before in enumerate(parent.tolist()):
        if before >= 0:
            repeated[row] = whole[before] + int(output[before])
            whole[row] += repeated[row]
    if max(whole, default=0) > 1 << 53:
        raise TraceError("prompts added up over a conversation exceed 2^53 tokens; are they cumulative already?")
    return np.array(whole, dtype=np.int64), np.array(repeated, dtype=np.int64)
