"""The files of a recording: which scenarios a directory holds, and what stands in them, line by line.

It checks that they are there and are JSON. What the fields mean is the engine's business.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from cost_models import choose
from simulator.documents import MOST_BYTES, bytes_of, decoded, json_of, quoted
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED

PARTS: Mapping[str, tuple[str, ...]] = {
    "options": (".options.json", ".opts.json"),
    "requests": (".requests.jsonl", ".requests.jsonl.gz"),
    "trace": (".trace.jsonl", ".trace.jsonl.gz"),
}
"""What a scenario consists of, and how the files' names may end."""

MOST_BLOCKS = 1 << 40
"""Of a pool, whatever a block is; so many times the tokens of one stay within 64 bits."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """One scenario: what an engine was asked, and what it did.

    Attributes:
        name: What the names of its files begin with.
        paths: Its files by what they hold, see PARTS.
    """

    name: str
    paths: Mapping[str, Path]

    @cached_property
    def options(self) -> Line:
        """The engine's settings, as they stand in the file."""
        return _object(_text(self.paths["options"]), str(self.paths["options"]))

    def requests(self) -> Iterator[tuple[str, Line]]:
        """Each request, and where it stands, in words."""
        return lines(self.paths["requests"])

    def trace(self) -> TraceLines:
        """The recorded decisions, from the first on."""
        return TraceLines(self.paths["trace"])


class TraceLines:
    """A trace file, read as it is asked for: a header that may be absent, the steps, a footer that may be absent.

    Attributes:
        header: What the recorder says of itself; None if it says nothing.
        footer: Its totals; None if there are none, or while steps are left.
    """

    def __init__(self, path: Path) -> None:
        self._lines = lines(path)
        self._next = next(self._lines, None)
        self.header = self._take("header")
        self.footer = self._take("footer")

    def step(self) -> tuple[str, Line] | None:
        """Where the next step stands, in words, and the step; None if there is none."""
        here = self._next
        if here is not None:
            self._next = next(self._lines, None)
            self.footer = self._take("footer")
        return here

    def _take(self, part: str) -> Line | None:
        """The content of the next line, if it is this part."""
        if self._next is None or part not in self._next[1]:
            return None
        where, line = self._next
        if not isinstance(line[part], dict):
            raise InputError(f"{where}: {part} must be a JSON object, not {quoted(line[part])}")
        self._next = next(self._lines, None)
        if part == "footer" and self._next is not None:
            raise InputError(f"{self._next[0]}: a line after the footer, which must be the last")
        content: Line = line[part]
        return content


def find(directory: Path) -> list[Recording]:
    """All scenarios in a directory, by name. Raises InputError if one lacks a file."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(directory.iterdir()):
        for part, endings in PARTS.items():
            for ending in endings:
                if path.name.endswith(ending) and path.name != ending:
                    _add(found.setdefault(path.name.removesuffix(ending), {}), part, path)
    return [_complete(directory, name, found[name]) for name in sorted(found)]


def lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Each line of a JSONL file as an object, and where it stands; empty lines are passed over."""
    for number, text in enumerate(_text(path).split("\n"), 1):
        if text.strip():
            where = f"{path}, line {number}"
            yield where, _object(text, where)


def known_fields(row: Line, known: tuple[str, ...], where: str) -> None:
    """Refuse a row with a field that is not known."""
    for field in row:
        choose(f"field in {where}:", field, known)


def known_options(recording: Recording, known: Line) -> Line:
    """A recording's options with the engine's own for those that it leaves out; a comment may stand among them."""
    for name in recording.options:
        choose(f"option in {recording.paths['options']}:", name, [*known, "comment"])
    return known | recording.options


def name_of(row: Line, where: str) -> str:
    """The id of a request."""
    name = row.get("id")
    if not isinstance(name, str) or not name:
        raise InputError(f"{where}: id must be a word, not {name!r}")
    return name


def whole(row: Line, field: str, where: str, *, least: int | None = 0, most: int = UNLIMITED,
          default: int | None = None) -> int:
    """A whole number of a row; `default` if it is absent. Raises InputError for anything else."""
    value = row.get(field, default)
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        said = f"not {quoted(value)}" if field in row else "and is missing"
        raise InputError(f"{where}: {field} must be a whole number{bound}, {said}")
    if value > most:
        raise InputError(f"{where}: {field} must be at most {most}, not {quoted(value)}")
    return value


def _add(paths: dict[str, Path], part: str, path: Path) -> None:
    if part in paths:
        raise InputError(f"{paths[part]} and {path.name} are the same part of one scenario: remove one of them")
    paths[part] = path


def _complete(directory: Path, name: str, paths: dict[str, Path]) -> Recording:
    for part, endings in PARTS.items():
        if part not in paths:
            raise InputError(f"{directory}: scenario '{name}' has no {part}: add {name}{endings[0]}")
    return Recording(name, paths)


def _text(path: Path) -> str:
    content = bytes_of(path)
    return decoded(_unpacked(content, path) if path.suffix == ".gz" else content, str(path))


def _unpacked(content: bytes, path: Path) -> bytes:
    try:
        unpacked = gzip.GzipFile(fileobj=BytesIO(content)).read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole gzip file ({error})") from None
    if len(unpacked) > MOST_BYTES:
        raise InputError(f"{path}: expands to more than {MOST_BYTES >> 20} MiB")
    return unpacked


def _object(text: str, where: str) -> Line:
    value = json_of(text, where)
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be a JSON object, not {text.strip()[:40]}")
    return value
