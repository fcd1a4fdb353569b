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


class Stopped(KeyboardInterrupt):
    """Somebody outside asks the command to end.

    Attributes:
        signal: By which signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = number


class Stopper:
    """What has been heard of.

    Attributes:
        stopped: What was raised; None as long as nobody has asked. An import in C may have made another error of it.
    """

    def __init__(self) -> None:
        self.stopped: Stopped | None = None
        self._hook = sys.unraisablehook

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Unwind; who asks again means it."""
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        self.stopped = Stopped(number)
        raise self.stopped

    def lost(self, unraisable: Any) -> None:
        """Ask again where Python lets no error through, such as while it frees an object."""
        if unraisable.exc_value is None or unraisable.exc_value is not self.stopped:
            self._hook(unraisable)
            return
        signal.signal(self.stopped.signal, self.hear)
        signal.raise_signal(self.stopped.signal)


@contextmanager
def stoppable(*, whole: bool) -> Iterator[Stopper]:
    """Listen meanwhile. Whom the caller told not to heed a signal, such as nohup, does not.

    With `whole` this is all that the process does: a signal that comes later, while Python leaves, just ends it.
    """
    stopper = Stopper()
    if threading.current_thread() is not threading.main_thread():
        yield stopper    # Python lets no other thread listen
        return
    before = {number: heard for number in SIGNALS if (heard := signal.getsignal(number)) is not signal.SIG_IGN}
    hook, sys.unraisablehook = sys.unraisablehook, stopper.lost
    for number in before:
        signal.signal(number, stopper.hear)
    try:
        yield stopper
    finally:
        for number, heard in before.items():
            signal.signal(number, signal.SIG_DFL if whole else heard)
        sys.unraisablehook = hook
