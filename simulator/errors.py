"""What can go wrong, by whose fault. Knows nothing of commands and exit codes."""

from __future__ import annotations

from collections.abc import Iterable

import cost_models
from cost_models.base import on_one_line


class InputError(ValueError):
    """The caller asked for something that cannot be: a name, a value, a combination. The message is one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(on_one_line(message))


class FileChanged(InputError):
    """A file that a scenario names is not what it was when it was first read, so that runs would not go together."""


def file_changed(path: str, *, gone: bool = False) -> FileChanged:
    """The complaint about this file; `gone`: there is none where one looks now, maybe on another machine."""
    if gone:
        return FileChanged(f"{path} was there when it was first read, and is not here now: restore it, or have it on "
                           "every machine that runs points")
    return FileChanged(f"{path} has changed since it was first read, and what is done with it must go together: "
                       "restore it, or begin again")


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
