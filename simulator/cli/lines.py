"""Words on stderr: one thought, one line. It imports nothing that could be missing."""

from __future__ import annotations

import os
import re
import sys

LONG = 300
"""Characters of a word that are shown; a path of this length can still be told from others."""


def note(text: str) -> None:
    """A line on stderr; if nobody reads it, nothing is lost."""
    try:
        print(one_line(text), file=sys.stderr, flush=True)
    except OSError:
        sink(sys.stderr)


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    folded = " ".join(text.split())
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in folded)


def brief(text: str) -> str:
    """The text with words cut that nobody would read to the end."""
    return re.sub(rf"(\S{{{LONG}}})\S+", r"\1...", text)


def sink(stream: object) -> None:
    """Let what is left of a stream that takes no more go nowhere, or Python complains of it at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())    # type: ignore[attr-defined]
