"""Following: one request from the client's hand to the end of its stay, moment by moment, and who sat beside it.

It reads the record of a run and knows nothing of the policy's code, as `ending` does, whose last words it repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.counting import counted
from simulator.ledger import useful_rows
from simulator.occupancy import Piece, Stay, occupancy
from simulator.record import Record
from simulator.result import Result
from simulator.studies.ending import Ending, ending
from simulator.tables import Table

if TYPE_CHECKING:
    import pandas as pd

Bar = tuple[str, float, float, str, int]
"""A row's label, start and end (s), what happens, and the request to which it happens."""


@dataclass(frozen=True)
class Moment:
    """Something that a request does for a while.

    Attributes:
        kind: "queue", "back in the queue", or one of `occupancy.KINDS`.
        first_step, last_step: The steps that begin in it; None if none does.
        start_s, end_s: Seconds.
        words: What happens, with numbers.
    """

    kind: str
    first_step: int | None
    last_step: int | None
    start_s: float
    end_s: float
    words: str


def moments(result: Result, request: int) -> list[Moment]:
    """The life of `request`, which must have finished, in the order of time."""
    end = ending(result, request)
    return [_moment(result, end, piece) for piece in _pieces(result.record, request)]


def moments_table(result: Result, request: int, label: str) -> Table:
    """The same as a table."""
    found = moments(result, request)
    rows = tuple((one.words, _steps(one), f"{one.start_s:,.3f}", f"{one.end_s:,.3f}") for one in found)
    return Table(f"{label}: request {request}, step by step", ("", "steps", "from (s)", "until (s)"), rows)


def moment_records(result: Result, request: int) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [asdict(moment) for moment in moments(result, request)]


def strip_frame(result: Result, request: int) -> pd.DataFrame:
    """Bars for a figure: whom `request` waited for, itself, its slot, and who waits for that slot.

    Columns: row, label, start_s, end_s, kind, request.
    """
    import pandas as pd
    end, record = ending(result, request), result.record
    rows: list[list[Bar]] = []
    if end.longest is not None:
        rows.append(_bars(record, end.longest, f"request {end.longest}, the longest beside it"))
    rows.append(_bars(record, request, f"request {request}"))
    rows.append(_slot_bars(record, request))
    if end.successor is not None:
        rows.append(_bars(record, end.successor, f"request {end.successor}, who comes next"))
    bars = [(row, *bar) for row, found in enumerate(rows, 1) for bar in found]
    return pd.DataFrame(bars, columns=["row", "label", "start_s", "end_s", "kind", "request"])


def _pieces(record: Record, request: int) -> list[Piece]:
    """What it does from the moment it is sent: it waits wherever it is in no slot."""
    now = int(record.sent[record.sent[:, 0] == request][-1, 1])
    pieces: list[Piece] = []
    for stay in _stays(record, request):
        pieces += [(now, stay.since, "back in the queue" if pieces else "queue"), *stay.pieces]
        now = stay.until
    return [piece for piece in pieces if piece[0] < piece[1]]


def _stays(record: Record, request: int) -> list[Stay]:
    return [stay for stay in occupancy(record) if stay.request == request]


def _bars(record: Record, request: int, label: str) -> list[Bar]:
    return [(label, start / 1e9, end / 1e9, "queue" if "queue" in kind else kind, request)
            for start, end, kind in _pieces(record, request)]


def _slot_bars(record: Record, request: int) -> list[Bar]:
    """Everybody who sits in the slot that the request has at last."""
    stays = list(occupancy(record))
    slot = [stay.slot for stay in stays if stay.request == request][-1]
    return [("its slot", start / 1e9, end / 1e9, kind, stay.request)
            for stay in stays if stay.slot == slot for start, end, kind in stay.pieces]


def _moment(result: Result, end: Ending, piece: Piece) -> Moment:
    start, stop, kind = piece
    record = result.record
    first = int(np.searchsorted(record.starts, start))
    last = int(np.searchsorted(record.starts, stop)) - 1
    words = WORDS[kind](result, end, slice(first, last + 1))
    some = first <= last
    return Moment(kind, first if some else None, last if some else None, start / 1e9, stop / 1e9, words)


def _queued(result: Result, end: Ending, steps: slice) -> str:
    return "in the queue: every slot that it may have is taken, or its batch has not begun"


def _preempted(result: Result, end: Ending, steps: slice) -> str:
    return "in the queue again: memory ran out, and it had to give up its slot"


def _read(result: Result, end: Ending, steps: slice) -> str:
    return f"its prompt of {counted(end.prompt, 'token')} is read, in {_chunks(result.record, steps)}"


def _again(result: Result, end: Ending, steps: slice) -> str:
    return f"catches up with what the preemption took, in {_chunks(result.record, steps)}"


def _chunks(record: Record, steps: slice) -> str:
    """Prompt and lost tokens of all who compute some in these steps."""
    tokens, rows = (int(record.step(name)[steps].sum()) for name in ("prompt", "chunks"))
    return f"{_count(steps)} with {counted(rows, 'chunk')} of {counted(tokens, 'token')} in all"


def _written(result: Result, end: Ending, steps: slice) -> str:
    """How long a token takes, and how many share the step."""
    record = result.record
    took = record.ends[steps] - record.starts[steps]
    rows = _useful(record, steps)
    return (f"a token a step: {_count(steps)} of {took.mean() / 1e6:,.1f} ms on average; {counted(rows[0], 'row')} "
            f"{'does' if rows[0] == 1 else 'do'} useful work in the first, {rows[-1]:,} in the last")


def _stalled(result: Result, end: Ending, steps: slice) -> str:
    return f"keeps its slot, but {_count(steps, 'leaves', 'leave')} it out"


def _held(result: Result, end: Ending, steps: slice) -> str:
    tokens = counted(end.longest_output or 0, "token")
    whom = "the batch" if end.longest is None else f"request {end.longest} with its {tokens}"
    rows = _useful(result.record, steps)
    return (f"finished, but held for {whom}: {_count(steps, 'does', 'do')} nothing for it; of the rows, {rows[0]:,} "
            f"are useful at first and {rows[-1]:,} at last")


WORDS: dict[str, Callable[[Result, Ending, slice], str]] = {
    "queue": _queued, "back in the queue": _preempted, "prefill": _read, "recompute": _again, "decode": _written,
    "stalled": _stalled, "held": _held}
"""What is said of each kind."""


def _useful(record: Record, steps: slice) -> Any:
    return np.repeat(useful_rows(record), record.plan("steps"))[steps]


def _count(steps: slice, one: str = "", many: str = "") -> str:
    """How many steps, and the form of the verb that goes with it."""
    number = steps.stop - steps.start
    return f"1 step {one}".rstrip() if number == 1 else f"{number:,} steps {many}".rstrip()


def _steps(moment: Moment) -> str:
    if moment.first_step is None or moment.last_step is None:
        return "-"
    same = moment.first_step == moment.last_step
    return f"{moment.first_step:,}" if same else f"{moment.first_step:,} to {moment.last_step:,}"
