"""Where answers go: to stdout, in words or as one JSON document."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from io import StringIO
from math import isinf, isnan
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

PIPED_WIDTH = 120
"""Columns of a table that goes to a file or a pipe, unless COLUMNS says otherwise."""


class Harmless(ConsoleRenderable):
    """What is to be printed, with nothing in its text that a terminal would obey: names come from files."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._inner, options):
            yield Segment(text if control or text.isprintable() else _spelled(text), style, control)


class Spelling(RenderHook):
    """Makes all that a console prints harmless."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [Harmless(each) for each in renderables]


def _spelled(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


class Answers(Console):
    """A console on stdout that obeys no name, and leaves a closed pipe to `main`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, soft_wrap=False, **options)
        self.push_render_hook(Spelling())

    def on_broken_pipe(self) -> None:
        raise


class Trimmed(StringIO):
    """Hands text on to a file without the blanks at the ends of its lines."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file = file

    @property
    def encoding(self) -> str:    # type: ignore[override]
        """What the file can bear decides which lines tables are drawn with."""
        return self._file.encoding

    def write(self, text: str) -> int:
        return self._file.write(re.sub(r" +\n", "\n", text))

    def flush(self) -> None:
        self._file.flush()


def answers() -> Console:
    """The console for answers, as wide as the terminal; a pipe or a file gets no blanks at the ends of lines."""
    if sys.stdout.isatty():
        return Answers()
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else PIPED_WIDTH
    return Answers(file=Trimmed(sys.stdout), width=width)


def print_json(document: object) -> None:
    """One document on stdout."""
    sys.stdout.write(as_json(document))


def as_json(document: object) -> str:
    """A JSON document with a final newline; infinities become words and what is no number becomes null."""
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """The same value in JSON's own kinds."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return None if isnan(value) else str(value) if isinf(value) else value
    return value
