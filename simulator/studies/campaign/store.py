"""Store: a directory with a file for each point that was measured. Only one process at a time writes there.

A file is there whole or not at all, and its name says what was asked, so that another campaign takes up what it shares
with an earlier one. It knows no backend.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simulator.documents import bytes_of
from simulator.errors import FileChanged, InputError
from simulator.saved import write_whole
from simulator.scenario import Scenario
from simulator.studies.campaign.answers import Found
from simulator.studies.campaign.kept import identity, text_of_point, value_in

POINTS, LOCK = "points", ".lock"
DRAFT = re.compile(r"\.[0-9a-f]{16}\.json\.[0-9]+")
"""What `write_whole` calls a point's file until it is whole."""
KEPT = "what was measured before is kept; --resume goes on from there"


class Store:
    """Keeps what points came to, each the summary of a run; use it in a `with` block, which holds the lock.

    Args:
        directory: Made if it is not there.
        what: Is measured, in words; values of something else are not taken up.
        resume: Take up what is there; otherwise a directory with points in it is refused.
        force: Take up a directory also where none of its points is asked for.
        told: Hears, in a line, of a file that is of no use.
    """

    def __init__(self, directory: str | Path, what: str = "", *, resume: bool = False, force: bool = False,
                 told: Callable[[str], None] | None = None) -> None:
        self.path, self._what, self._force = Path(directory), what, force
        self._asked: set[Path] = set()
        self._points, self._resume, self._told = self.path / POINTS, resume, told or (lambda line: None)
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        """Take the lock. Raises InputError where another run has it, or where there are points already."""
        from filelock import FileLock, Timeout
        try:
            self._points.mkdir(parents=True, exist_ok=True)
            if (self.path / LOCK).is_symlink():
                raise InputError(f"{self.path / LOCK} is a link, and what it leads to would be emptied: remove it, or "
                                 "give another directory")
            self._lock.enter_context(FileLock(self.path / LOCK, timeout=0))
        except Timeout:
            raise InputError(f"{self.path} is being written by another run: wait for it, or give another directory"
                             ) from None
        except (OSError, NotImplementedError) as error:
            raise unusable(self.path, error) from None
        try:
            if not self._resume and self.count():
                raise InputError(f"{self.path} has the points of an earlier run: give --resume to go on with it, or "
                                 "another directory")
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._lock.close()

    def count(self) -> int:
        """How many points it has."""
        return sum(1 for _ in self._points.glob("*.json"))

    def others(self) -> int:
        """How many of them nobody has asked for since it was opened."""
        return sum(1 for path in self._points.glob("*.json") if path not in self._asked)

    def known(self, points: Mapping[str, Scenario]) -> dict[str, Found[Any]]:
        """Those of the points that are there. They must have their traces at hand.

        Raises InputError where points are there, but none that is asked for: summaries of the one would replace those
        of the other.
        """
        self._asked |= {self._path(scenario) for scenario in points.values()}
        if not self._force and 0 < self.count() == self.others():
            raise InputError(f"{self.path} has {self.count():,} points of other settings, and none that is asked for "
                             "now: give another directory, or --force to leave them out of its summaries")
        self._tidy()
        found = {}
        for key, scenario in points.items():
            path = self._path(scenario)
            if os.path.lexists(path) and not path.is_file():
                raise InputError(f"{path} is not a regular file: remove it, and its point is measured again")
            if path.exists() and (value := self._read(path, scenario)) is not None:
                found[key] = Found(scenario, value)
        return found

    def _tidy(self) -> None:
        """Take away what a killed run left half-written: nothing that somebody else may have put there."""
        if self._points.is_symlink():
            return
        for each in os.scandir(self._points):
            if DRAFT.fullmatch(each.name) and each.is_file(follow_symlinks=False):
                os.unlink(each)

    def keep(self, key: str, scenario: Scenario, value: Any) -> Any:
        """Write a value, and give it back as it will be read. Raises InputError if the disk does not take it."""
        path = self._path(scenario)
        text = text_of_point(key, path.stem, scenario, value)
        try:
            write_whole(path, text)
        except OSError as error:
            raise unusable(path, error) from None
        return json.loads(text)["value"]

    def _path(self, scenario: Scenario) -> Path:
        return self._points / f"{identity(scenario, self._what)}.json"

    def _read(self, path: Path, scenario: Scenario) -> dict[str, Any] | None:
        """The value in a file; None, with a line that says why, if it is not of this point."""
        try:
            content = bytes_of(path)
        except InputError as error:
            raise InputError(f"{error}: {KEPT}") from None
        try:
            return value_in(content, str(path), path.stem, scenario)
        except FileChanged:
            raise
        except InputError as error:
            self._told(f"{error}: its point is measured again")
            return None


def unusable(path: Path, error: Exception) -> InputError:
    """What to tell of a file that cannot be written or read, and what comes next."""
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(f"{path}: {reason}: {KEPT}")
