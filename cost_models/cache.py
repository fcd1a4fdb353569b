"""Keep what was expensive to ask: one JSON file an answer, in the user's cache. It knows no answer.

A file is whole or absent; one that cannot be read is asked for again, and a cache that cannot be written is no error.
"""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from cost_models.base import CostModelError

T = TypeVar("T")
MOST_BYTES = 16 << 20
"""Of an answer; the largest table has a tenth of it."""


def cached(name: str, read: Callable[[object], T], ask: Callable[[], dict[str, Any]]) -> T:
    """What ``read`` makes of the stored answer, or of a new one, which is then stored under the name."""
    path = directory() / name
    try:
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            return read(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError, CostModelError):
        pass
    answer = ask()
    found = read(answer)
    _store(path, json.dumps(answer))
    return found


def directory() -> Path:
    """Where XDG_CACHE_HOME says, else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "batchsim"


def _store(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
