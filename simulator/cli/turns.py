"""Turns: commands that write into one folder do so one by one. The lock is on the folder and leaves no file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    from fcntl import LOCK_EX, flock
except ImportError:    # Windows has none
    flock = None    # type: ignore[assignment]


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Wait until nobody else has its turn in this folder, and have it.

    Nobody waits where there is no such folder, or where the system or its file system has no such lock.
    """
    place = None
    try:
        if flock is not None:
            with suppress(OSError):
                place = os.open(folder, os.O_RDONLY)
                flock(place, LOCK_EX)
        yield
    finally:
        if place is not None:
            os.close(place)
