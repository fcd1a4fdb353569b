"""What can go wrong, by whose fault. Knows nothing of commands and exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import cost_models
from cost_models.base import on_one_line


class InputError(ValueError):
    """The caller asked for something that cannot be: a name, a value, a combination. The message is one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(on_one_line(message))


class FileChanged(InputError):
    """A file that a scenario names is not what it was when it was first read, so that runs would not go together."""


Change = Literal["changed", "gone", "new", "run"]
"""What can be with a file: it has changed, is not here now, was not there, or is run by this process as it was."""
CHANGES: dict[Change, str] = {
    "changed": "has changed since it was first read, and what is done with it must go together: restore it, or begin "
               "again",
    "gone": "was there when it was first read, and is not here now: restore it, or have it on every machine that runs "
            "points",
    "new": "was not there when the policy that imports it was first read: take it away, or begin again in a new Python",
    "run": "has changed since it was first read, and Python runs a module once: restore it, or begin again in a new "
           "Python"}


def file_changed(path: str, how: Change = "changed") -> FileChanged:
    """The complaint about this file."""
    return FileChanged(f"{path} {CHANGES[how]}")


class PolicyError(RuntimeError):
    """A policy broke its contract: it returned what cannot be run."""


class StalledError(RuntimeError):
    """The simulation ran out of events while requests were still waiting or running."""


def choose(kind: str, name: str, known: Iterable[str], listed: str = "") -> str:
    """Return `name` if it is known; else raise InputError, one line with the nearest name and all known ones.

    Of very many names it has the most alike, and `listed`: where all of them are.
    """
    try:
        return cost_models.choose(kind, name, known, listed)
    except cost_models.CostModelError as error:
        raise InputError(str(error)) from None
