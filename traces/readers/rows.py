"""Rows of text to columns of checked values: the part that every dialect shares.

Lines go through in batches, column by column, because that is several times as fast as row by row. When a
batch holds a bad row, its lines go through the same functions one at a time, so both ways agree and the
error names its line. One line is one row; blank lines are not rows.
"""

import csv
import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traces.errors import TraceError, plain, shown
from traces.readers.dialect import Batch
from traces.readers.source import Source
from traces.readers.values import Refused, Rule
from traces.trace import Reject

BATCH = 16_384
"""Lines at a time: enough to make the loop cheap, few enough to stay in a cache."""

Parse = Callable[[Sequence[str]], Batch]
"""Lines to checked values by role; raises BadRow."""

Split = Callable[[Sequence[str]], Sequence[Sequence[object]]]
"""Lines to columns, in the order of the names it was made for; raises BadRow."""


BLANKS = " \t\r\v\f"
"""A line of these alone is no row."""


class BadRow(Exception):
    """A row breaks a rule: the column ("row" for all of it), what it holds, and the rule."""

    def __init__(self, column: str, value: object, rule: str) -> None:
        super().__init__(column, value, rule)
        self.column, self.value, self.rule = column, value, rule

    def at(self, line: int) -> Reject:
        """The same fault with its line number."""
        return Reject(line, plain(self.column), shown(self.value), self.rule)


@dataclass
class Gathered:
    """Rows read so far: values by role in file order, and the rows left out."""

    columns: dict[str, Any]
    rejected: list[Reject] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["prompt"])

    def add(self, batch: Batch) -> None:
        """Append the rows of a batch."""
        for role, values in batch.items():
            self.columns[role].extend(values)


def gather(source: Source, parse: Parse, roles: Sequence[str], lenient: bool, limit: int | None) -> Gathered:
    """Read rows to the end of `source`, or to `limit` good ones; bad ones stop it unless `lenient`."""
    rows = Gathered({role: [] if role in ("tenant", "hash_ids") else array("q") for role in roles})
    while lines := source.take(BATCH if limit is None else min(BATCH, limit - len(rows))):
        first = source.number - len(lines)
        try:
            rows.add(parse(texts(lines)))
        except BadRow:
            _one_by_one(lines, first, parse, rows, None if lenient else source.label)
    return rows


def _one_by_one(lines: Sequence[bytes], first: int, parse: Parse, rows: Gathered, label: str | None) -> None:
    """Add the good ones of `lines`. With a `label` the first bad one raises, without it is left out."""
    for number, line in enumerate(lines, first):
        try:
            rows.add(parse(texts([line])))
        except BadRow as bad:
            reject = bad.at(number)
            if label is not None:
                raise TraceError(f"{label}, {reject}") from None
            rows.rejected.append(reject)


def texts(lines: Sequence[bytes]) -> list[str]:
    """Lines as text without their ends, blank ones left out."""
    data = b"".join(lines)
    if b"\0" in data:
        raise BadRow("row", data[:80], "holds a NUL byte; is this a text file?")
    try:
        text = data.decode()
    except UnicodeDecodeError as fault:
        raise BadRow("row", data[:80], f"is not UTF-8 ({fault.reason} at byte {fault.start})") from None
    return [line for line in text.split("\n") if line.strip(BLANKS)]


def parser(
    split: Split, names: Mapping[str, str], rules: Mapping[str, Rule], check: Callable[[Batch], None] | None
) -> Parse:
    """The function from lines to checked values by role, for the given columns and their rules."""

    def parse(lines: Sequence[str]) -> Batch:
        raw = split(lines)
        batch = {
            role: _converted(name, rules[role], values) for (role, name), values in zip(names.items(), raw, strict=True)
        }
        if check is not None:
            check(batch)
        return batch

    return parse


def _converted(name: str, rule: Rule, values: Sequence[object]) -> list[Any]:
    try:
        return list(map(rule, values))
    except Refused as broken:
        # Of many values it is not known which: the caller then tries them line by line.
        raise BadRow(name, values[0], str(broken)) from None


def csv_split(header: Sequence[str], names: Sequence[str]) -> Split:
    """Splits CSV rows that have as many fields as `header` into the columns `names`."""
    width = len(header)
    picks = [header.index(name) for name in names]

    def split(lines: Sequence[str]) -> Sequence[Sequence[object]]:
        rows = csv_rows(lines)
        if len(rows) != len(lines):
            raise BadRow("row", lines[0], "is not a CSV row on one line")
        if any(len(row) != width for row in rows):
            raise BadRow("row", lines[0], f"must have {width} fields, not {len(rows[0])}")
        columns = list(zip(*rows, strict=True)) or [()] * width
        return [columns[pick] for pick in picks]

    return split


def csv_rows(lines: Sequence[str]) -> list[list[str]]:
    """The fields of each line; raises BadRow where quotes are wrong."""
    try:
        return list(csv.reader(lines, strict=True))
    except csv.Error as fault:
        raise BadRow("row", lines[0], f"is not a CSV row on one line ({fault})") from None


# Numbers with a point stay text, so that they become integers without a float in between.
_decode = json.JSONDecoder(parse_float=str, parse_constant=str).decode


def json_split(names: Sequence[str]) -> Split:
    """Splits JSON lines into the values of the keys `names`."""

    def split(lines: Sequence[str]) -> Sequence[Sequence[object]]:
        rows = list(map(json_object, lines))
        return [[_member(row, name) for row in rows] for name in names]

    return split


def json_object(line: str) -> dict[str, object]:
    """The object on a line; raises BadRow for anything else."""
    try:
        value = _decode(line)
    except (ValueError, RecursionError) as fault:
        raise BadRow("row", line, f"is not valid JSON ({str(fault).partition(':')[0].lower()})") from None
    if not isinstance(value, dict):
        raise BadRow("row", line, "must be a JSON object")
    return value


def _member(row: dict[str, object], name: str) -> object:
    if name not in row:
        raise BadRow(name, None, "is missing")
    return row[name]
