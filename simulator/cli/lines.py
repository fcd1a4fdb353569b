"""Words on stderr: one thought, one line. It imports nothing that could be missing."""

from __future__ import annotations

import sys


def note(text: str) -> None:
    """A line on stderr."""
    print(one_line(text), file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    folded = " ".join(text.split())
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in folded)
