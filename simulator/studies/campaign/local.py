"""Processes of this machine, by joblib's own backend, which gives large arrays to all of them in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from time import sleep

from joblib import Parallel
from joblib.externals.loky.process_executor import TerminatedWorkerError

from simulator.studies.campaign.session import Session
from traces import Trace

WATCH_S = 1
"""How often a process looks whether its parent is there."""


@contextmanager
def opened(workers: int, traces: Sequence[Trace]) -> Iterator[Session]:
    """So many processes; one is this one."""
    yield Session(traces, Parallel(workers, backend="loky", return_as="generator_unordered", batch_size=1,
                                   initializer=_leave_with, initargs=(os.getpid(),)), (TerminatedWorkerError,))


def _leave_with(parent: int) -> None:
    """Have this process end soon after its parent, which may be killed without a word."""
    def watch() -> None:
        while os.getppid() == parent:
            sleep(WATCH_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
