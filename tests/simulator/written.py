"""Files that a test writes where it runs, and what a scenario keeps of them."""

from __future__ import annotations

from pathlib import Path

from simulator.documents import short_digest


def write(name: str, text: str) -> str:
    """Write a file, with the folders above it; gives back its name."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


def digest(name: str) -> str:
    """The digest of what the file holds now."""
    return short_digest(Path(name).read_bytes())
