"""Where answers go: to stdout, in words or as one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from math import isinf, isnan
from typing import Any

from rich.console import Console

PIPED_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where nothing needs to be folded."""


class Answers(Console):
    """A console on stdout that leaves a closed pipe to `main`."""

    def on_broken_pipe(self) -> None:
        raise


def answers() -> Console:
    """The console for answers, as wide as the terminal, or wide where there is none."""
    return Answers(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, soft_wrap=False)


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
