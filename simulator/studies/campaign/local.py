"""Processes of this machine, by joblib's own backend, which gives large arrays to all of them in one file."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from time import sleep
from typing import Any

from joblib import Parallel
from joblib.externals.loky.process_executor import TerminatedWorkerError

from simulator.studies.campaign.session import Session
from traces import Trace

WATCH_S = 1
"""How often a process looks whether its parent is there."""


UNHEARD = {signal.SIGINT, signal.SIGHUP} if hasattr(signal, "SIGHUP") else {signal.SIGINT}
"""What a terminal sends to all processes at once."""
QUIET = "ignore:resource_tracker"
"""What Python is told so that joblib, tidying up after a run that was killed, does not talk of it."""


@contextmanager
def opened(workers: int, traces: Sequence[Trace]) -> Iterator[Session]:
    """So many processes; one is this one."""
    parallel = Parallel(workers, backend="loky", return_as="generator_unordered", batch_size=1,
                        initializer=_leave_with, initargs=(os.getpid(), _folder()))

    def run(calls: Iterator[Any]) -> Iterator[Any]:
        with _deaf_children():
            answers = parallel(calls)    # starts the processes
        try:
            for answer in answers:    # noqa: UP028    what is closed early closes this one first, in silence
                yield answer
        finally:
            with warnings.catch_warnings(action="ignore"):
                answers.close()

    with warnings.catch_warnings(), _silent_manager():
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)    # one that was idle; another one starts
        yield Session(traces, run, (TerminatedWorkerError,))


@contextmanager
def _silent_manager() -> Iterator[None]:
    """Joblib's own thread, told to forget what waits, may look for it all the same: nobody is to hear of that."""
    before = threading.excepthook

    def heard(error: threading.ExceptHookArgs) -> None:
        if type(error.thread).__name__ != "_ExecutorManagerThread":
            before(error)

    threading.excepthook = heard
    try:
        yield
    finally:
        threading.excepthook = before


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that start meanwhile leave Ctrl-C to this one, which ends them, and heeds it once they have started."""
    told = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{told},{QUIET}" if told else QUIET
    masked = hasattr(signal, "pthread_sigmask")
    if masked:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
        resource_tracker.ensure_running()    # when it starts, it takes SIGINT out of the mask
        signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
    try:
        yield
    finally:
        if told is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = told
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _folder() -> str | None:
    """Where this process stands; None if that folder is gone. Processes that stand elsewhere are not used again."""
    with suppress(OSError):
        return os.getcwd()
    return None


def _leave_with(parent: int, folder: str | None) -> None:
    """Have this process stand where its parent does, and end soon after it, which may be killed without a word."""
    if folder is not None:
        os.chdir(folder)

    def watch() -> None:
        while os.getppid() == parent:
            sleep(WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
