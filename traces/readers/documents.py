"""JSON documents to flat rows: the documents of a text or of an archive's members, and the rows that each holds.

Whatever cannot be taken apart stands in its place as the BadRow that it is, so that it is refused, or left out and
counted, like any other bad row. What the documents mean is not known here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from traces.errors import TraceError
from traces.readers.archive import Member
from traces.readers.rows import BadRow
from traces.readers.text import json_value, texts

PEEK = 100
"""Rows looked at to find the columns and the kind of times."""
Expand = Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
"""A document to flat rows of our own column names; raises BadRow."""
Found = tuple[str, Any]
"""A place and the document there, or the BadRow that it is."""


class Records:
    """Flat rows from documents, in order."""

    def __init__(self, label: str, found: Iterator[Found]) -> None:
        self.label = label
        self._found = found
        self._ahead: list[Found] = []
        self._taken: list[str] = []

    def peek(self, n: int) -> list[Any]:
        """The next `n` rows, which stay to be taken."""
        self._ahead += islice(self._found, max(n - len(self._ahead), 0))
        return [row for _, row in self._ahead[:n]]

    def take(self, n: int) -> list[Any]:
        """The next `n` rows, fewer at the end."""
        rows = self.peek(n)
        self._taken = [place for place, _ in self._ahead[:n]]
        del self._ahead[:n]
        return rows

    def place(self, before: int) -> str:
        """Where the row stands that was taken `before` rows ago."""
        return self._taken[-before]


def documents(place: str, content: bytes) -> list[Found]:
    """The objects of one JSON text."""
    try:
        value = json_value("\n".join(texts([content])))
    except BadRow as bad:
        return [(place, bad)]
    if isinstance(value, list):
        return [(f"item {at}", one if isinstance(one, dict) else BadRow("row", one, "must be a JSON object"))
                for at, one in enumerate(value, 1)]
    return [(place, value)]


def keys_of(label: str, documents: Sequence[Found]) -> list[str]:
    """All keys of the first documents, in order of appearance; raises TraceError where there are none."""
    keys = dict.fromkeys(key for _, one in documents[:PEEK] if isinstance(one, dict) for key in one)
    if not keys:
        raise TraceError(f"{label}: no JSON object with keys in it")
    return list(keys)


def expanded(found: Iterator[Found], expand: Expand) -> Iterator[Found]:
    """The flat rows of each document, each with its place."""
    for place, document in found:
        if isinstance(document, BadRow):
            yield place, document
            continue
        try:
            for at, row in enumerate(expand(document), 1):
                yield f"{place}, request {at}", row
        except BadRow as bad:
            yield place, bad


def in_each(found: Iterator[Member]) -> Iterator[Found]:
    """The documents of all members."""
    for member in found:
        yield from in_member(member)


def in_member(member: Member) -> list[Found]:
    """The documents of one member: lines of JSON by its ending, else one text."""
    if member.name.endswith(".jsonl"):
        return [(f"{member.name}, line {at}", one) for at, line in enumerate(member.content.splitlines(), 1)
                for _, one in documents("", line) if line.strip()]
    return [(member.name, one) for _, one in documents("", member.content)]
