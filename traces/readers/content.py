"""What is in a file: lines of CSV or JSON, whole JSON documents, a Parquet table, or the members of an archive.

The kind is found from the content, never from the name. What the columns mean is not known here (`dialect`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from traces.errors import TraceError, plain
from traces.readers import values
from traces.readers.archive import Member, is_tar, members, members_of_folder
from traces.readers.documents import PEEK, Expand, Found, Records, documents, expanded, in_each, in_member, keys_of
from traces.readers.parquet import PARQUET_MAGIC, parquet_names, parquet_rows
from traces.readers.rows import BadRow, Split
from traces.readers.source import Lines, opened
from traces.readers.text import BLANKS, csv_rows, csv_split, json_object, json_split, members_split, separator_of, texts


class Tabular(Protocol):
    """A file's rows, once it is known which columns are wanted.

    label: the file as errors call it.
    keys: the columns of a table, or the keys of the first documents.
    """

    label: str
    keys: list[str]

    def rows(self, names: Sequence[str], optional: Sequence[str], expand: Expand | None) -> tuple[Any, Split]:
        """The rows, and how they are split into the columns `names`, of which `optional` may be absent."""


@dataclass
class CsvLines:
    """A header and rows of CSV, with `separator` between the columns."""

    label: str
    keys: list[str]
    lines: Lines
    separator: str

    def rows(self, names: Sequence[str], optional: Sequence[str], expand: Expand | None) -> tuple[Any, Split]:
        return self.lines, csv_split(self.keys, names, self.separator)


@dataclass
class JsonLines:
    """An object a line."""

    label: str
    keys: list[str]
    lines: Lines

    def rows(self, names: Sequence[str], optional: Sequence[str], expand: Expand | None) -> tuple[Any, Split]:
        if expand is None:
            return self.lines, json_split(names, optional)
        return Records(self.label, expanded(self._documents(), expand)), members_split(names, optional)

    def _documents(self) -> Iterator[Found]:
        while line := self.lines.take(1):
            place = self.lines.place(1)
            try:
                yield from ((place, json_object(text)) for text in texts(line))
            except BadRow as bad:
                yield place, bad


@dataclass
class Documents:
    """JSON documents that are no lines, or rows of a table that is no text."""

    label: str
    keys: list[str]
    found: Callable[[Sequence[str]], Iterator[Found]]

    def rows(self, names: Sequence[str], optional: Sequence[str], expand: Expand | None) -> tuple[Any, Split]:
        found = self.found(names)
        return (Records(self.label, found if expand is None else expanded(found, expand)),
                members_split(names, optional))


@dataclass
class Members:
    """Files of an archive or a folder; `keys` holds the name of the first."""

    label: str
    keys: list[str]
    found: Iterator[Member]


Content = Tabular | Members
"""What any file may hold."""


@contextmanager
def content_of(path: Path) -> Iterator[Content]:
    """Open `path` and tell what is in it."""
    label = plain(str(path))
    if path.is_dir():
        yield _in_members(label, members_of_folder(path, label))
        return
    with opened(path) as stream:
        if stream.peek(4).startswith(PARQUET_MAGIC):
            yield Documents(label, parquet_names(path, label), lambda names: parquet_rows(path, label, names))
        elif is_tar(stream.peek(512)):
            yield _in_members(label, members(stream, label))
        else:
            yield _in_text(label, stream)


def _in_text(label: str, stream: BufferedReader) -> Content:
    lines = Lines(label, stream)
    _skip_blank(lines)
    start = lines.peek(1)[0].strip()
    if start.startswith(b"version https://git-lfs"):
        raise TraceError(f"{label}: a pointer of Git LFS, not the file itself; fetch it with `git lfs pull`")
    if start.startswith(b"[") or (start.startswith(b"{") and start.endswith((b"{", b"[", b","))):
        return _in_document(lines)
    if start.startswith(b"{"):
        return JsonLines(label, _json_keys(lines), lines)
    return CsvLines(label, *_header(lines))


def _skip_blank(lines: Lines) -> None:
    """Go to the first line that holds something."""
    while line := lines.peek(1):
        if line[0].strip(BLANKS.encode() + b"\n"):
            return
        lines.take(1)
    raise TraceError(f"{lines.label}: the file is empty")


def _header(lines: Lines) -> tuple[list[str], Lines, str]:
    """The column names on the first line, which is taken; the lines below it; what stands between columns."""
    first = lines.take(1)
    try:
        header = texts(first)
        separator = separator_of(header[0])
        names = [name.strip() for name in csv_rows(header, separator)[0]]
    except BadRow as bad:
        raise TraceError(f"{lines.label}, {bad.at(lines.place(1))}") from None
    if all(values.is_number(name) or values.is_stamp(name) for name in names):
        raise TraceError(f"{lines.label}, {lines.place(1)}: no column names here, only values; add a header")
    return names, lines, separator


def _json_keys(lines: Lines) -> list[str]:
    """All keys of the objects on the first lines, in order of appearance."""
    keys: dict[str, None] = {}
    first_fault = None
    for number, line in enumerate(lines.peek(PEEK), lines.number):
        try:
            for text in texts([line]):
                keys |= dict.fromkeys(json_object(text))
        except BadRow as bad:
            first_fault = first_fault or bad.at(f"line {number}")
    if not keys:
        raise TraceError(f"{lines.label}, {first_fault or f'line {lines.number}: the JSON object is empty'}")
    return list(keys)


def _in_document(lines: Lines) -> Content:
    """One JSON document that takes several lines: an object, or an array of them."""
    found = documents(f"from line {lines.number}", lines.rest())
    place, bad = found[0] if found else ("", None)
    if isinstance(bad, BadRow):
        raise TraceError(f"{lines.label}, {bad.at(place)}")
    return Documents(lines.label, keys_of(lines.label, found), lambda _: iter(found))


def _in_members(label: str, found: Iterator[Member]) -> Content:
    """Pools of clients stay files; other members must be JSON documents."""
    first = next(found, None)
    if first is None:
        raise TraceError(f"{label}: holds no files")
    every = chain([first], found)
    if not first.name.endswith((".json", ".jsonl")) or "chunk-" in first.name:
        return Members(label, [first.name], every)
    start = in_member(first)
    return Documents(label, keys_of(label, start), lambda _: chain(start, in_each(found)))
