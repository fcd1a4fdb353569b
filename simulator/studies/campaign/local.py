"""Processes of this machine, by joblib's own backend, which gives large arrays to all of them in one file."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import Thread
from time import sleep
from typing import Any

from joblib import Parallel
from joblib.externals.loky.process_executor import TerminatedWorkerError

from simulator.studies.campaign.session import Session
from traces import Trace

WATCH_S = 1
"""How often a process looks whether its parent is there."""


QUIET = "ignore:resource_tracker"
"""What Python is told so that joblib, tidying up after a run that was killed, does not talk of it."""


@contextmanager
def opened(workers: int, traces: Sequence[Trace]) -> Iterator[Session]:
    """So many processes; one is this one."""
    parallel = Parallel(workers, backend="loky", return_as="generator_unordered", batch_size=1,
                        initializer=_leave_with, initargs=(os.getpid(),))

    def run(calls: Iterator[Any]) -> Iterator[Any]:
        with _deaf_children():
            answers = parallel(calls)    # starts the processes
        try:
            for answer in answers:    # noqa: UP028    what is closed early closes this one first, in silence
                yield answer
        finally:
            with warnings.catch_warnings(action="ignore"):
                answers.close()

    yield Session(traces, run, (TerminatedWorkerError,))


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that start meanwhile leave Ctrl-C to this one, which ends them, and heeds it when they have started."""
    told = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{told},{QUIET}" if told else QUIET
    masked = hasattr(signal, "pthread_sigmask")
    if masked:
        resource_tracker.ensure_running()    # it would take the mask away
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if told is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = told
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_with(parent: int) -> None:
    """Have this process end soon after its parent, which may be killed without a word."""
    def watch() -> None:
        while os.getppid() == parent:
            sleep(WATCH_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
