"""Workers of a Dask cluster. Loaded where they are asked for, for it needs Dask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import distributed

from simulator.errors import InputError
from simulator.studies.campaign.cluster import Futures, parallel
from simulator.studies.campaign.session import PATIENCE_S, Session, first_line
from traces import Trace

DESERTED_S = 60
"""How long a campaign waits without a worker before it gives up."""


class Cargo(distributed.WorkerPlugin):
    """The traces, which each worker gets once, also one that joins later or starts anew.

    As results of tasks they would be gone with the workers that hold them.
    """

    def __init__(self, name: str, traces: Sequence[Trace]) -> None:
        self.name, self.traces = name, tuple(traces)


@contextmanager
def opened(address: str, traces: Sequence[Trace]) -> Iterator[Session]:
    """The workers of the scheduler at this address. Raises InputError if there are none, or none any more."""
    _hush()
    with _client(address) as client:
        cargo, deserted = f"batchsim-{uuid4().hex}", Event()
        client.register_plugin(Cargo(cargo, traces))
        submit = partial(client.get_executor(pure=False).submit, _call, cargo)
        futures = Futures(submit, sum(client.ncores().values()), (distributed.KilledWorker,))
        _watch(client, futures, deserted)
        try:
            yield Session(range(len(traces)), parallel(futures))
        except CancelledError:
            what = "has lost all its workers" if deserted.is_set() else "is gone"
            raise InputError(f"the Dask scheduler at {address} {what}: start what is missing, and go on with --resume"
                             ) from None
        finally:
            deserted.set()


def _call(cargo: str, call: Callable[..., Any], place: int, *rest: Any) -> Any:
    """On a worker: call with the trace that lies at this place."""
    plugin: Any = distributed.get_worker().plugins[cargo]
    return call(plugin.traces[place], *rest)


def _client(address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address} ({first_line(error)}): start one with "
                         "`dask scheduler`, or give its address with --scheduler") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError:
        client.close()
        raise InputError(f"the Dask scheduler at {address} has no workers: start some with `dask worker {address}`"
                         ) from None
    return client


def _watch(client: Any, futures: Futures, deserted: Event) -> None:
    """Dask itself would wait for new workers for ever. Ends when the event is set by somebody else."""
    def watch() -> None:
        without = 0
        while not deserted.wait(1):
            without = 0 if client.scheduler_info().get("workers") else without + 1
            if without >= DESERTED_S:
                deserted.set()
                futures.abort_everything()

    Thread(target=watch, daemon=True).start()


def _hush() -> None:
    """What is to be said of a lost worker, we say."""
    for name in ["distributed", *logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
