"""Bars of the timeline: who sat in which slot, from when to when, and what for. Knows the record, and no colour.

A slot is a place in the batch. No engine numbers its places; here a request takes the lowest free one when it is
admitted. The record says who emitted a token in which step, so every change of a bar falls on the end of a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.record import Record
    from simulator.result import Result

Ints = NDArray[np.int64]
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


def timeline_frame(result: Result, until: float | None = None) -> DataFrame:
    """One row a bar, up to `until` seconds (None: the whole run); bars that reach beyond are cut there.

    Columns: slot (counted from 1), start_s, end_s, kind (one of KINDS), request (row of the trace).
    Ordered by admission, and by time within a stay. A long run costs little more than what the window shows of it.
    """
    import pandas as pd

    record = result.record
    limit = _nanoseconds(until, record)
    rows = [(slot, start / 1e9, min(end, limit) / 1e9, kind, request)
            for slot, request, pieces in _stays(record, limit)
            for start, end, kind in pieces if start < min(end, limit)]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    types = ("int64", "float64", "float64", "object", "int64")
    names = ("slot", "start_s", "end_s", "kind", "request")
    return pd.DataFrame({name: pd.Series(column, dtype=kind)
                         for name, column, kind in zip(names, columns, types, strict=True)})


def window_of(record: Record, turns: int) -> float:
    """Seconds until the slots have served `turns` requests each on average: `turns` batches where batches are full."""
    ends = record.stays[:, 2]
    if not len(ends):
        return 0.0
    answers = min(turns * int(record.plan("running").max()), len(ends))
    return int(np.partition(ends, answers - 1)[answers - 1]) / 1e9


def tokens_until(record: Record, until: float) -> int:
    """Output tokens of all requests that had been emitted by `until` seconds."""
    steps = int(np.searchsorted(record.ends, round(until * 1e9), side="right"))
    begun = record.spans[record.spans[:, 1] < steps]
    return int(record.tokens_of(np.minimum(begun, [1 << 62, 1 << 62, steps - 1])).sum())


def _nanoseconds(until: float | None, record: Record) -> int:
    if until is not None:
        return round(until * 1e9)
    return int(record.stays[:, 2].max(initial=0))


def _stays(record: Record, limit: int) -> Iterator[tuple[int, int, list[Piece]]]:
    """Slot, request and pieces of each stay that begins before `limit` (ns), in the order of admission."""
    stays = record.stays[record.stays[:, 1] < limit]
    stays = stays[np.lexsort((stays[:, 0], stays[:, 1]))]
    runs = _runs_of(stays[:, 0], record)
    known: set[int] = set()
    for slot, (request, since, until) in zip(_slots(stays), stays.tolist(), strict=True):
        yield slot, request, _pieces(since, until, runs[request], request in known)
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
