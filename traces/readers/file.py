"""One trace file from end to end: recognise it, name its columns, read its rows, build the Trace.

The rules for single values are in `values`, for rows in `rows`, for column names in `dialect`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traces.errors import TraceError, plain
from traces.readers import values
from traces.readers.dialect import Dialect
from traces.readers.rows import (
    BLANKS,
    BadRow,
    Gathered,
    Split,
    csv_rows,
    csv_split,
    gather,
    json_object,
    json_split,
    parser,
    texts,
)
from traces.readers.source import Source, opened
from traces.trace import Int64, ReadReport, Trace

PEEK = 100
"""Lines looked at to find the shape, the columns and the kind of times."""


def read_file(
    path: Path,
    dialects: Sequence[Dialect],
    columns: Mapping[str, str] | None,
    unit: str | None,
    lenient: bool,
    limit: int | None,
) -> Trace:
    """The trace in `path`, read as the first of `dialects` that recognises it; see `traces.load`."""
    with opened(path) as source:
        _skip_blank(source)
        shape = dialects[0].shape if len(dialects) == 1 else _shape(source)
        keys = _header(source) if shape == "csv" else _json_keys(source)
        dialect = _recognised(dialects, shape, keys)
        names = dialect.names(keys, columns, source.label)
        split = csv_split(keys, list(names.values())) if shape == "csv" else json_split(list(names.values()))
        rules = _rules(source, names, split, dialect.unit_of(unit))
        rows = gather(source, parser(split, names, rules, dialect.check), list(names), lenient, limit)
    return _trace(path, dialect, rows)


def _skip_blank(source: Source) -> None:
    """Go to the first line that holds something."""
    while line := source.peek(1):
        if line[0].strip(BLANKS.encode() + b"\n"):
            return
        source.take(1)
    raise TraceError(f"{source.label}: the file is empty")


def _shape(source: Source) -> str:
    start = source.peek(1)[0].lstrip()
    if start.startswith(b"["):
        raise TraceError(f"{source.label}: one JSON array is not read; write one JSON object on each line")
    return "jsonl" if start.startswith(b"{") else "csv"


def _header(source: Source) -> list[str]:
    """The column names on the first line, which is taken."""
    number = source.number
    try:
        names = [name.strip() for name in csv_rows(texts(source.take(1)))[0]]
    except BadRow as bad:
        raise TraceError(f"{source.label}, {bad.at(number)}") from None
    if all(values.is_number(name) or values.is_stamp(name) for name in names):
        raise TraceError(f"{source.label}, line {number}: no column names here, only values; add a header")
    return names


def _json_keys(source: Source) -> list[str]:
    """All keys of the objects on the first lines, in order of appearance."""
    keys: dict[str, None] = {}
    first_fault = None
    for number, line in enumerate(source.peek(PEEK), source.number):
        try:
            for text in texts([line]):
                keys |= dict.fromkeys(json_object(text))
        except BadRow as bad:
            first_fault = first_fault or bad.at(number)
    if not keys:
        raise TraceError(f"{source.label}, {first_fault or f'line {source.number}: the JSON object is empty'}")
    return list(keys)


def _recognised(dialects: Sequence[Dialect], shape: str, keys: Sequence[str]) -> Dialect:
    """The dialect that names these columns, else the open table of this shape."""
    sure = (dialect for dialect in dialects if dialect.recognises(shape, keys))
    open_table = (dialect for dialect in dialects if dialect.shape == shape and not dialect.columns)
    return next(sure, None) or next(open_table, dialects[0])


def _rules(source: Source, names: Mapping[str, str], split: Split, unit: str | None) -> dict[str, values.Rule]:
    """The rule for each role; that of the arrivals depends on how the first ones are written."""
    rules: dict[str, values.Rule] = {
        "prompt": values.tokens,
        "output": values.tokens,
        "max_tokens": values.tokens,
        "tenant": values.tenant,
        "priority": values.priority,
        "hash_ids": values.block_ids,
    }
    if "arrival" in names:
        position = list(names).index("arrival")
        rules["arrival"] = _time_rule(source.label, names["arrival"], _first(source, split, position), unit)
    return rules


def _first(source: Source, split: Split, position: int) -> Iterable[object]:
    """Values of one column on the first lines, as far as they can be split."""
    for line in source.peek(PEEK):
        try:
            yield from split(texts([line]))[position]
        except BadRow:
            continue


def _time_rule(label: str, name: str, first: Iterable[object], unit: str | None) -> values.Rule:
    for value in first:
        if values.is_stamp(value):
            return values.stamp
        if values.is_number(value):
            if unit is None:
                raise TraceError(
                    f"{label}: times in column {plain(name)} are plain numbers, their unit is not guessed: "
                    f"give the unit (s, ms, us or ns) beside --columns arrival={plain(name)}"
                )
            return values.time_in(unit)
    return values.stamp if unit is None else values.time_in(unit)


def _trace(path: Path, dialect: Dialect, rows: Gathered) -> Trace:
    """The rows in order of arrival, the first at 0."""
    label = plain(str(path))
    if not len(rows):
        first = f" ({len(rows.rejected)} bad ones, the first in {rows.rejected[0]})" if rows.rejected else ""
        raise TraceError(f"{label}: no usable rows{first}")
    arrival = _times(rows)
    order = np.argsort(arrival, kind="stable")
    blocks = _picked(rows, "hash_ids", order)
    return Trace(
        name=plain(path.name),
        arrival=arrival[order] - arrival.min(),
        prompt=_numbers(rows, "prompt")[order],
        output=_numbers(rows, "output")[order],
        max_tokens=_numbers(rows, "max_tokens")[order] if "max_tokens" in rows.columns else None,
        tenant=_picked(rows, "tenant", order),
        priority=_numbers(rows, "priority")[order] if "priority" in rows.columns else None,
        hash_ids=blocks,
        hash_block=None if blocks is None else dialect.hash_block,
        source=label,
        report=_report(dialect.name, rows, arrival),
    )


def _numbers(rows: Gathered, role: str) -> Int64:
    return np.array(rows.columns[role], dtype=np.int64)


def _times(rows: Gathered) -> Int64:
    """Arrivals in file order; all 0 in a file without times."""
    return _numbers(rows, "arrival") if "arrival" in rows.columns else np.zeros(len(rows), dtype=np.int64)


def _picked(rows: Gathered, role: str, order: Int64) -> tuple[Any, ...] | None:
    if role not in rows.columns:
        return None
    return tuple(rows.columns[role][row] for row in order.tolist())


def _report(format: str, rows: Gathered, arrival: Int64) -> ReadReport:
    """Out of order is a row stamped earlier than some row above it."""
    early = int(np.count_nonzero(arrival < np.maximum.accumulate(arrival)))
    return ReadReport(format, len(rows) + len(rows.rejected), tuple(rows.rejected), early)
