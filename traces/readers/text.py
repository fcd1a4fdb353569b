"""Lines of text to columns of raw values: CSV with a header, or JSON with an object a line.

Semicolons or tabs may take the place of commas. One line is one row; blank lines are no rows. What the values must be
is not known here (`values`).
"""

import csv
import json
from collections.abc import Sequence

from traces.readers.rows import BadRow, Split

BLANKS = " \t\r\v\f"
"""A line of these alone is no row."""
SEPARATORS = ",;\t"
"""What stands between columns, the usual one first."""


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


def csv_split(header: Sequence[str], names: Sequence[str], separator: str = ",") -> Split:
    """Splits CSV rows that have as many fields as `header` into the columns `names`."""
    width = len(header)
    picks = [header.index(name) for name in names]

    def split(raw: Sequence[bytes]) -> Sequence[Sequence[object]]:
        lines = texts(raw)
        if (fields := _unquoted(lines, width, separator)) is not None:
            return [fields[pick::width] for pick in picks]
        rows = csv_rows(lines, separator)
        if len(rows) != len(lines):
            raise BadRow("row", lines[0], "is not a CSV row on one line")
        if any(len(row) != width for row in rows):
            raise BadRow("row", lines[0], f"must have {width} fields, not {len(rows[0])}")
        columns = list(zip(*rows, strict=True)) or [()] * width
        return [columns[pick] for pick in picks]

    return split


def _unquoted(lines: Sequence[str], width: int, separator: str) -> list[str] | None:
    """The fields of all lines in one list, several times as fast; None where quotes or odd rows need the full rules."""
    text = separator.join(lines)
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
        text = separator.join(lines)
    if '"' in text or "\r" in text or {line.count(separator) for line in lines} != {width - 1}:
        return None
    return text.split(separator)


def separator_of(header: str) -> str:
    """What stands between the columns of a header: a comma, or a semicolon or tab where no comma splits it."""
    return next((each for each in SEPARATORS if _splits(header, each)), SEPARATORS[0])


def _splits(header: str, separator: str) -> bool:
    try:
        return len(csv_rows([header], separator)[0]) > 1
    except BadRow:    # what a quote ends at is another one
        return False


def csv_rows(lines: Sequence[str], separator: str = ",") -> list[list[str]]:
    """The fields of each line; raises BadRow where quotes are wrong."""
    try:
        return list(csv.reader(lines, strict=True, delimiter=separator))
    except csv.Error as fault:
        raise BadRow("row", lines[0], f"is not a CSV row on one line ({fault})") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


# Numbers with a point stay text, so that they become integers without a float in between.
_decode = json.JSONDecoder(parse_float=str, parse_constant=str, object_pairs_hook=_once).decode


def json_split(names: Sequence[str], optional: Sequence[str]) -> Split:
    """Splits JSON lines into the values of the keys `names`."""
    members = members_split(names, optional)

    def split(raw: Sequence[bytes]) -> Sequence[Sequence[object]]:
        return members(list(map(json_object, texts(raw))))

    return split


def members_split(names: Sequence[str], optional: Sequence[str]) -> Split:
    """Splits objects into the values of the keys `names`; an absent one of `optional` is None."""
    free = set(optional)

    def split(rows: Sequence[dict[str, object] | BadRow]) -> Sequence[Sequence[object]]:
        for row in rows:
            if isinstance(row, BadRow):    # a row that could not even be taken apart
                raise row
        return [[row.get(name) for row in rows] if name in free else [_member(row, name) for row in rows]    # type: ignore[arg-type, union-attr]
                for name in names]

    return split


def json_object(line: str) -> dict[str, object]:
    """The object on a line; raises BadRow for anything else."""
    value = json_value(line)
    if not isinstance(value, dict):
        raise BadRow("row", line, "must be a JSON object")
    return value


def json_value(text: str) -> object:
    """Any JSON; raises BadRow."""
    try:
        value: object = _decode(text)
    except (ValueError, RecursionError) as fault:
        raise BadRow("row", text, f"is not valid JSON ({str(fault).partition(':')[0].lower()})") from None
    return value


def _member(row: dict[str, object], name: str) -> object:
    if name not in row:
        raise BadRow(name, None, "is missing")
    return row[name]
