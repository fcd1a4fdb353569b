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

from rich.console import Console

PIPED_WIDTH = 120
"""Columns of a table that goes to a file or a pipe, unless COLUMNS says otherwise."""


class Answers(Console):
    """A console on stdout that leaves a closed pipe to `main`."""

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
        return Answers(highlight=False, soft_wrap=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isascii() and columns.isdecimal() and int(columns) else PIPED_WIDTH
    return Answers(file=Trimmed(sys.stdout), width=width, highlight=False, soft_wrap=False)


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
