"""A progress bar on stderr, where somebody is looking at it."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bar:
    """Hand `one` or `many` to whoever reports progress. Silent without a terminal, or if asked to be.

    Args:
        title: Of what is going on.
        unit: What is counted.
        quiet: Say nothing.
    """

    def __init__(self, title: str, *, unit: str = "requests", quiet: bool = False) -> None:
        seen = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit),
            TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True, disable=not seen)
        self._task = self._bar.add_task(title, total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._bar.stop()

    def one(self, answered: int, accepted: int) -> None:
        """How far a single run has got."""
        self._bar.update(self._task, completed=answered, total=accepted)

    def many(self, title: str, answered: int, accepted: int) -> None:
        """How far several runs have got, and which one is running."""
        self._bar.update(self._task, description=title, completed=answered, total=accepted)
