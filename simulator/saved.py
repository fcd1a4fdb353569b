"""Saved results: files that are there whole or not at all, and their way back. It knows no run, only its JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator.errors import InputError

MANIFEST = "manifest.json"
"""What a folder of results has beside them: each file with its checksum."""


def write_whole(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write a file whole or not at all; a text in pieces need never be in memory as one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if isinstance(content, bytes):
            draft.write_bytes(content)
        else:
            with draft.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines((content,) if isinstance(content, str) else content)
        os.replace(draft, path)
    except OSError as error:
        error.filename = str(path)    # nobody has heard of the draft, and a full disk names none
        raise
    finally:
        draft.unlink(missing_ok=True)


def parsed(path: Path) -> Any:
    """What a file of JSON says. Raises OSError, and ValueError for what is none, is nested without end, or holds half a
    character, which nobody could write again.
    """
    text = path.read_text("utf-8")
    try:
        document = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return document


def readable(path: str | os.PathLike[str]) -> str:
    """A path in characters: a byte that is none stands as \\xff."""
    return os.fsencode(path).decode(errors="backslashreplace")


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the JSON of a saved result. Raises InputError if it is none."""
    try:
        document = parsed(Path(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: is not a result: it holds a {type(document).__name__}, not one record")
    missing = [name for name in ("backend", "completed", "duration") if name not in document]
    if missing:
        raise InputError(f"{path}: is not a result: it lacks {', '.join(missing)}")
    return document
