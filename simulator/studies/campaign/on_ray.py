"""Workers of a Ray cluster. Loaded where they are asked for, for it needs Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from socket import create_connection
from typing import Any

import ray

from simulator.errors import InputError
from simulator.studies.campaign.cluster import Futures, parallel
from simulator.studies.campaign.session import PATIENCE_S, Session, first_line
from traces import Trace

DEATHS = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError)


@contextmanager
def opened(address: str | None, traces: Sequence[Trace]) -> Iterator[Session]:
    """The cluster at this address; a Ray that runs already is used and left running."""
    mine = not ray.is_initialized()
    if mine:
        _start(address)
    try:
        task = ray.remote(max_retries=0)(_call)
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        futures = Futures(lambda *args: task.remote(*args).future(), slots, DEATHS)
        yield Session([ray.put(trace) for trace in traces], parallel(futures))
    finally:
        if mine:
            ray.shutdown()


def _call(call: Callable[..., Any], *args: Any) -> Any:
    """Ray wants a function of its own, and opens what stands for an object only in the arguments of that."""
    return call(*args)


def _start(address: str | None) -> None:
    """Ray itself would knock for minutes at a door behind which nobody is."""
    if address and address != "auto":
        host, _, port = address.rpartition("/")[2].rpartition(":")
        try:
            create_connection((host, int(port)), PATIENCE_S).close()
        except (OSError, ValueError) as error:
            raise InputError(f"no Ray head answers at {address} ({first_line(error)}): start one with "
                             "`ray start --head`, or give its address with --scheduler") from None
    try:
        ray.init(address=address or os.environ.get("RAY_ADDRESS", "local"), logging_level=logging.CRITICAL,
                 include_dashboard=None if address else False, log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"Ray at {address or 'this machine'} does not let us in ({first_line(error)}): it wants the "
                         "same versions of Ray and Python, and its token where it asks for one") from None
