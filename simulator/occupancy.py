"""Occupancy: who sat in which slot, from when to when, and what for. It knows the record, and draws nothing.

A slot is a place in the batch. No engine numbers its places; here a request takes the lowest free one when it is
admitted. The record says who emitted a token in which step, so every change falls on the end of a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from simulator.columns import Ints
from simulator.record import Record

Piece = tuple[int, int, str]
"""Start and end (ns) of what a request does, and its kind."""
Run = tuple[int, int, int, bool]
"""Tokens of a request in steps that follow one another: start and end of the first step, end of the last (ns), and
whether the first step computes no chunk at all, so that its token comes from a decode."""

KINDS = ("prefill", "decode", "recompute", "stalled", "held")
"""What a request in a slot may be doing:

prefill: from admission to the end of the step that emits its first token; waits between chunks of a prompt included.
decode: it emits a token in each step.
recompute: the same as prefill, for one that a preemption has thrown out before.
stalled: it could go on, but the steps leave it out: the token budget is spent, or others read their prompts alone.
held: it has emitted its last token, and still has its slot.
"""


class Stay(NamedTuple):
    """A request in a slot.

    Attributes:
        slot: Counted from 1.
        request: Row of the trace.
        since, until: When it took the slot and gave it up, ns.
        pieces: What it did meanwhile, without gaps.
    """

    slot: int
    request: int
    since: int
    until: int
    pieces: list[Piece]


def occupancy(record: Record, limit: int | None = None) -> Iterator[Stay]:
    """Every stay that begins before `limit` (ns; None: all), in the order of admission."""
    stays = record.stays if limit is None else record.stays[record.stays[:, 1] < limit]
    stays = stays[np.lexsort((stays[:, 0], stays[:, 1]))]
    runs = _runs_of(stays[:, 0], record)
    known: set[int] = set()
    for slot, (request, since, until) in zip(_slots(stays), stays.tolist(), strict=True):
        yield Stay(slot, request, since, until, _pieces(since, until, runs[request], request in known))
        known.add(request)


def _slots(stays: Ints) -> Iterator[int]:
    """The lowest slot that is free when each stay begins; `stays` are in the order of their beginnings."""
    free: list[int] = []
    taken: list[tuple[int, int]] = []    # (end, slot)
    for since, until in stays[:, 1:].tolist():
        while taken and taken[0][0] <= since:
            heappush(free, heappop(taken)[1])
        slot = heappop(free) if free else len(taken) + 1
        heappush(taken, (until, slot))
        yield slot


def _runs_of(requests: Ints, record: Record) -> dict[int, list[Run]]:
    """For each of these requests its runs of tokens in consecutive steps, latest first."""
    wanted = np.zeros(int(requests.max(initial=-1)) + 1, bool)
    wanted[requests] = True
    spans = record.spans
    spans = spans[spans[:, 0] < len(wanted)]
    spans = _without_pauses(spans[wanted[spans[:, 0]]], record)
    spans = spans[np.argsort(-spans[:, 1], kind="stable")]
    starts = record.starts[spans[:, 1]].tolist()
    ends = record.ends[spans[:, 1:]].tolist()
    chunkless = (record.step("chunks") == 0)[spans[:, 1]].tolist()
    runs: dict[int, list[Run]] = {request: [] for request in requests.tolist()}
    for request, start, (first, last), decodes in zip(spans[:, 0].tolist(), starts, ends, chunkless, strict=True):
        runs[request].append((start, first, last, decodes))
    return runs


def _without_pauses(spans: Ints, record: Record) -> Ints:
    """The spans, cut where the decoding set pauses: a token in every step of each."""
    paused = record.pauses
    since, until = (np.searchsorted(paused, spans[:, at], side="right") for at in (1, 2))
    pieces = until - since + 1
    whole = np.repeat(np.arange(len(spans)), pieces)
    piece = np.arange(len(whole)) - np.repeat(np.cumsum(pieces) - pieces, pieces)    # 0, 1, ... in each span
    after = since[whole] + piece
    edges = np.concatenate(([-1], paused, [-1]))
    first = np.where(piece == 0, spans[whole, 1], edges[after] + 1)
    last = np.where(piece == pieces[whole] - 1, spans[whole, 2], edges[after + 1] - 1)
    return np.column_stack((spans[whole, 0], first, last))[first <= last]


def _pieces(since: int, until: int, runs: list[Run], again: bool) -> list[Piece]:
    """What a request does in one stay. Takes the runs that fall into the stay from the end of `runs`."""
    catching_up = "recompute" if again else "prefill"
    pieces: list[Piece] = []
    now = since
    while runs and runs[-1][1] <= until:
        start, first, last, decodes = runs.pop()
        if now > since:
            pieces += [(now, start, "stalled"), (start, first, "decode")]
        elif again and decodes:    # its KV was at hand again, but for the token that it emitted last
            pieces += [(since, start, catching_up), (start, first, "decode")]
        else:
            pieces.append((since, first, catching_up))
        pieces.append((first, last, "decode"))
        now = last
    pieces.append((now, until, _rest(now == since, bool(runs), catching_up)))
    return _joined(pieces)


def _rest(emitted_nothing: bool, more_to_come: bool, catching_up: str) -> str:
    """What it did between its last token in a stay and the end of the stay."""
    if emitted_nothing:
        return catching_up
    return "stalled" if more_to_come else "held"


def _joined(pieces: list[Piece]) -> list[Piece]:
    """The pieces that last, neighbours of one kind made one."""
    joined: list[Piece] = []
    for start, end, kind in pieces:
        if start == end:
            continue
        if joined and joined[-1][1:] == (start, kind):
            joined[-1] = (joined[-1][0], end, kind)
        else:
            joined.append((start, end, kind))
    return joined
