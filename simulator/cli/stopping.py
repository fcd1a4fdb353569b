"""Ctrl-C, SIGTERM and SIGHUP: the first one unwinds what runs, so that drafts are removed; a second one kills.

It imports nothing that takes long, for a signal may come before anything is there.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
SOON_S = 0.01
"""When Python is out of where it lets no error through."""


class Stopped(KeyboardInterrupt):
    """Somebody outside asks the command to end.

    Attributes:
        signal: By which signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = number


class Stopper:
    """Hears what is asked from outside, from `listen` on.

    Attributes:
        stopped: What was raised; None as long as nobody has asked. Somebody's code may have made another error of it,
            or swallowed it.
    """

    def __init__(self) -> None:
        self.stopped: Stopped | None = None
        self._hook = sys.unraisablehook
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """From here on there is something to tidy up. A signal that the caller had ignored, as nohup does, stays so."""
        if threading.current_thread() is not threading.main_thread():
            return    # Python lets no other thread listen
        self._before = {number: heard for number in SIGNALS
                        if (heard := signal.getsignal(number)) is not signal.SIG_IGN}
        for number in self._before:
            signal.signal(number, self._hear)
        sys.unraisablehook = self._lost

    def leave(self, *, whole: bool) -> None:
        """Hear no more. With `whole` nothing else is to come, and a signal while Python leaves ends the process."""
        for number, heard in self._before.items():
            signal.signal(number, signal.SIG_DFL if whole else heard)
        sys.unraisablehook = self._hook

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Unwind; who asks again means it."""
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        self.stopped = Stopped(number)
        raise self.stopped

    def _lost(self, unraisable: Any) -> None:
        """Ask again where Python lets no error through, such as while it frees an object."""
        if unraisable.exc_value is None or unraisable.exc_value is not self.stopped:
            self._hook(unraisable)
        elif hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._again)
            signal.setitimer(signal.ITIMER_REAL, SOON_S)

    def _again(self, number: int, frame: FrameType | None) -> None:
        assert self.stopped is not None
        raise self.stopped


@contextmanager
def stoppable(*, whole: bool) -> Iterator[Stopper]:
    """One that hears, once it listens, until the end; see `Stopper.leave` for `whole`."""
    stopper = Stopper()
    try:
        yield stopper
    finally:
        stopper.leave(whole=whole)
