"""A progress bar on stderr, where somebody is looking at it; a line now and then, where one goes to a file."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from simulator.cli.lines import note, one_line

EVERY_S = 30
"""Between two lines of a log."""


class Rate(ProgressColumn):
    """How many a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.3g} {self._unit}/s", style="dim")


class Bar:
    """Hand `one` or `many` to whoever reports progress. Silent without a terminal, or if asked to be.

    Args:
        title: Of what is going on.
        unit: What is counted.
        quiet: Say nothing.
        log: Without a terminal, say a line now and then: for what may take hours.
        open_ended: Nobody knows how many there will be, for each round decides on the next: then no time left is told.
    """

    def __init__(self, title: str, *, unit: str = "requests", quiet: bool = False, log: bool = False,
                 open_ended: bool = False) -> None:
        seen = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
            TextColumn(f"{unit} asked for so far" if open_ended else unit), Rate(unit), TimeElapsedColumn(),
            *(() if open_ended else (TimeRemainingColumn(),)), console=Console(stderr=True), transient=True,
            disable=not seen)
        self._task = self._bar.add_task(one_line(title), total=None)
        self._log = Log(title, unit, open_ended=open_ended) if log and not seen and not quiet else None

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self._bar.disable:    # before rich 15 a disabled one leaves an empty line
            self._bar.stop()

    def one(self, answered: int, accepted: int) -> None:
        """How far a single run has got."""
        self._bar.update(self._task, completed=answered, total=accepted)
        if self._log:
            self._log.hear(answered, accepted)

    def many(self, title: str, answered: int, accepted: int) -> None:
        """How far several runs have got, and which one is running."""
        self._bar.update(self._task, description=one_line(title), completed=answered, total=accepted)
        if self._log:
            self._log.hear(answered, accepted)


class Log:
    """Progress as lines: how many, how fast, how long still; of what is open-ended, how many were asked for so far."""

    def __init__(self, title: str, unit: str, *, open_ended: bool = False) -> None:
        self._title, self._unit, self._open_ended = title, unit, open_ended
        self._start: tuple[float, int] | None = None
        self._told = monotonic()

    def hear(self, done: int, of: int) -> None:
        """A line, unless there was one a moment ago. What is there at the first call does not count for the rate."""
        now = monotonic()
        if self._start is None:
            self._start = now, done
        since, before = self._start
        if now - self._told < EVERY_S or done == before:
            return
        self._told, rate = now, (done - before) / (now - since)
        told = f"{self._title}: {done:,} of {of:,} {self._unit}"
        speed = f"{rate:.3g} {self._unit}/s"
        note(f"{told} asked for so far, {speed}" if self._open_ended else
             f"{told}, {speed}, {(of - done) / rate:,.0f} s left")
