"""Saved results: files that are there whole or not at all, and their way back. It knows no run, only its JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulator.documents import document_of
from simulator.errors import InputError
from simulator.kinds import RESULT, meant_as
from simulator.plausible import check

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


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the JSON of a saved result. Raises InputError if it is none."""
    with meant_as(RESULT, path):
        return result_of(path, document_of(path))


def result_of(path: str | os.PathLike[str], document: Any) -> dict[str, Any]:
    """What a file says, if a run can have left it. Raises InputError, which begins with the path."""
    if not isinstance(document, dict):
        raise InputError(f"{path}: is not a result: it holds a {type(document).__name__}, not one record")
    missing = [name for name in ("backend", "completed", "duration") if name not in document]
    if missing:
        raise InputError(f"{path}: is not a result: it lacks {', '.join(missing)}")
    check(document, str(path))
    return document
