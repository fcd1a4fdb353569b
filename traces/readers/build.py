"""Rows to a trace: sorted by arrival, turns linked, and a report of how it all was read."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from traces.columns import Int64
from traces.describe import time_of_day
from traces.errors import TraceError, plain
from traces.ragged import Ragged
from traces.readers.asked import DAY_NS, Asked, window_ns
from traces.readers.blocks import in_scopes
from traces.readers.content import Tabular
from traces.readers.rows import Gathered, Keep, gather, parser
from traces.readers.rules import checks_of, first_of, keep_of, rules_of, unit_is_idle
from traces.readers.turns import Turns, accumulated, by_id, by_session
from traces.report import ReadReport
from traces.trace import Trace
from traces.unlikely import unlikely

if TYPE_CHECKING:
    from traces.readers.dialect import Dialect

TIMELESS = "no arrival times: every request comes at 0; --request-rate gives them a process"


def read(dialect: "Dialect", content: Tabular, asked: Asked, path: Path) -> Trace:
    """The trace in `content`, read as `dialect` says."""
    names = dialect.names(content, asked)
    source, split = content.rows(list(names.values()), dialect.free(names), dialect.expand)
    position = list(names).index("arrival") if "arrival" in names else None
    first = [] if position is None else list(first_of(source, split, position))
    rules = rules_of(dialect, names, first, content.label, asked)
    keep = keep_of(dialect, rules.get("arrival"), first, content.label, asked)
    parse = parser(split, names, rules, checks_of(dialect, names))
    rows = gather(source, parse, list(names), asked.lenient, keep)
    if not len(rows):
        raise TraceError(f"{content.label}: no usable rows{_why(rows, asked, keep)}")
    trace = _trace(path, content.label, dialect, names, rows, asked)
    idle = unit_is_idle(names, rules, asked)
    note = _unheeded(names, asked) if idle else unlikely(trace.arrival, asked.unit)
    return trace if note is None else trace.noted(note)


def _unheeded(names: Mapping[str, str], asked: Asked) -> str:
    """That the unit of a caller decides nothing."""
    times = f"the times in column {plain(names['arrival'])} are dates" if "arrival" in names else "there are no times"
    return f"unit {asked.unit} has no effect: {times}; leave it out"


def _why(rows: Gathered, asked: Asked, keep: Keep) -> str:
    """Where all rows went."""
    counts = [f"{rows.outside:,} outside of the window {asked.window}"] * bool(rows.outside)
    if rows.reach and rows.outside and keep.window and asked.window:
        midnight = keep.window[0] - window_ns(asked.window)[0]
        first, last = (time_of_day(time - midnight) for time in rows.reach)
        counts[0] += f", for they come from {first} to {last}"
    counts += [f"{rows.failed:,} failed requests"] * bool(rows.failed)
    if rows.rejected:
        counts.append(f"{len(rows.rejected)} bad ones, the first in {rows.rejected[0]}")
    return f" ({', '.join(counts)})" if counts else ""


def _trace(path: Path, label: str, dialect: "Dialect", names: Mapping[str, str], rows: Gathered, asked: Asked) -> Trace:
    """The rows in order of arrival, the first at 0."""
    numbers = _Numbers(rows)
    arrival = numbers.get("arrival", np.zeros(len(rows), dtype=np.int64))
    order = np.argsort(arrival, kind="stable")
    columns: dict[str, Any] = {"arrival": arrival[order] - arrival.min()}
    columns |= {role: numbers[role][order] for role in ("prompt", "output")}
    for role in ("max_tokens", "priority"):
        if role in numbers and (role != "max_tokens" or numbers[role].min() > 0):
            columns[role] = numbers[role][order]
    if "tenant" in rows.columns:
        columns["tenant"] = _picked(rows, "tenant", order)
    turns = _turns(rows, order)
    if turns is not None:
        columns |= _linked(turns, numbers, columns, order, asked.prompts or dialect.prompts, label)
    elif asked.prompts == "increments":
        raise TraceError(f"{label}: increments need conversations; say --columns session=NAME")
    return Trace(name=plain(path.name), source=label, **columns, **_blocks(rows, numbers, dialect, order, label),
                 report=_report(dialect, names, rows, arrival, turns, asked))


class _Numbers(dict[str, Int64]):
    """The integer columns of the rows as arrays, in file order."""

    def __init__(self, rows: Gathered) -> None:
        super().__init__({role: np.frombuffer(column, dtype=np.int64) for role, column in rows.columns.items()
                          if not isinstance(column, list) and len(column)})


def _picked(rows: Gathered, role: str, order: Int64) -> tuple[Any, ...]:
    column = rows.columns[role]
    return tuple(column[row] for row in order.tolist())


def _turns(rows: Gathered, order: Int64) -> Turns | None:
    """How the rows follow each other, where the file tells."""
    picked = {role: _picked(rows, role, order) for role in ("session", "branch", "id", "parent")
              if role in rows.columns}
    sessions = picked.get("session")
    if sessions is not None and "branch" in picked:
        sessions = tuple(map(str.__add__, sessions, picked["branch"]))
    if "id" in picked and "parent" in picked:
        return by_id(picked["id"], picked["parent"], sessions)
    return by_session(sessions) if sessions is not None and any(sessions) else None


def _linked(turns: Turns, numbers: Mapping[str, Int64], columns: Mapping[str, Any], order: Int64, prompts: str,
            label: str) -> dict[str, Any]:
    """The columns that tell of turns."""
    parent, first = turns.parent, turns.parent < 0
    found: dict[str, Any] = {"session": turns.session, "parent": parent}
    if "think" in numbers:
        found["think"] = np.where(first, 0, numbers["think"][order])
    if prompts == "increments":
        try:
            found["prompt"], found["shared"] = accumulated(columns["prompt"], columns["output"], parent)
        except TraceError as fault:
            raise TraceError(f"{label}: {fault}") from None
    elif "shared" in numbers:
        before = columns["prompt"][parent] + columns["output"][parent]
        repeated = np.minimum(np.minimum(numbers["shared"][order], columns["prompt"]), before)
        found["shared"] = np.where(first, 0, repeated)
    return found


def _blocks(rows: Gathered, numbers: Mapping[str, Int64], dialect: "Dialect", order: Int64,
            label: str) -> dict[str, Any]:
    """The ids of prefix blocks and their size."""
    if "hash_ids" not in rows.columns or ("filled" in numbers and numbers["filled"].any()):
        return {}
    sizes = np.unique(numbers["hash_block"]).tolist() if "hash_block" in numbers else [dialect.hash_block]
    if len(sizes) > 1:
        raise TraceError(f"{label}: prefix blocks of several sizes ({sizes[0]}, {sizes[1]}, ...) in one trace")
    ids, lengths = np.frombuffer(rows.ids, dtype=np.int64), numbers["hash_ids"]
    if "scope" in rows.columns:
        ids = in_scopes(ids, lengths, rows.columns["scope"])
    return {"hash_ids": Ragged.parts(ids, lengths).take(order), "hash_block": sizes[0]}


def _report(dialect: "Dialect", names: Mapping[str, str], rows: Gathered, arrival: Int64, turns: Turns | None,
            asked: Asked) -> ReadReport:
    """Out of order is a row stamped earlier than some row above it."""
    early = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
    notes = [TIMELESS] * ("arrival" not in names)
    if turns is not None and turns.orphans:
        notes.append(f"{turns.orphans:,} turns start anew: the turn before them is not among the rows before them")
    return ReadReport(
        format=dialect.name,
        rows_in=len(rows) + len(rows.rejected) + rows.failed + rows.outside,
        rejected=tuple(rows.rejected),
        out_of_order=early,
        failed=rows.failed,
        outside=rows.outside,
        columns=tuple(f"{role}={name}" for role, name in names.items() if dialect.expand is None or role != name),
        prompts=None if turns is None else asked.prompts or dialect.prompts,
        clock=_clock(arrival) if "arrival" in names else None,
        notes=(*notes, *dialect.notes),
    )


def _clock(arrival: Int64) -> tuple[int, int]:
    """The first and the last time of day, by the midnight before the first row."""
    midnight = int(arrival[0]) // DAY_NS * DAY_NS
    return int(arrival.min()) - midnight, int(arrival.max()) - midnight
