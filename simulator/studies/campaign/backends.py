"""Backends: where the points of a campaign run. Each ships the traces once and answers through joblib.

Dask and Ray are loaded when they are asked for. It knows no store and counts no tries.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from socket import create_connection
from threading import Thread
from time import sleep
from typing import Any

from simulator import checks
from simulator.errors import InputError, choose
from traces import Trace

BACKENDS = ("local", "dask", "ray")
PATIENCE_S, WATCH_S = 20, 1
"""How long a cluster may take to answer; how often a process looks whether its parent is there."""


@dataclass(frozen=True)
class Session:
    """An open backend.

    Attributes:
        cargo: What stands for each of the traces in the arguments of a call.
        run: Takes joblib's delayed calls; gives their results as they come, None for a call whose worker died.
        deaths: Errors with which `run` ends if workers die, and nobody can say under which of the calls.
    """

    cargo: Sequence[Any]
    run: Callable[[Iterator[Any]], Iterator[Any]]
    deaths: tuple[type[Exception], ...] = ()


@dataclass(frozen=True)
class Backend:
    """Where points run.

    Attributes:
        name: One of BACKENDS.
        workers: Processes at once, of "local"; 1 is this one.
        address: Of Dask's scheduler, such as "tcp://10.0.0.1:8786", or of Ray's head; Ray starts one here if None.
    """

    name: str = "local"
    workers: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        choose("backend", self.name, BACKENDS)
        checks.count("workers", self.workers)
        if self.name == "dask" and not self.address:
            raise InputError("backend dask needs the address of its scheduler: give --scheduler tcp://HOST:8786")
        if self.name == "local" and self.address:
            raise InputError("backend local has no scheduler: give --backend dask or ray, or leave out --scheduler")

    def open(self, traces: Sequence[Trace], points: int) -> AbstractContextManager[Session]:
        """Ship the traces, and be ready for so many points. Raises InputError if the cluster cannot be reached."""
        if self.name == "dask":
            return _dask(str(self.address), traces)
        return _ray(self.address, traces) if self.name == "ray" else _local(min(self.workers, points), traces)


@contextmanager
def _local(workers: int, traces: Sequence[Trace]) -> Iterator[Session]:
    """Processes of this machine. joblib writes large arrays to a file once, which all of them map."""
    from joblib import Parallel
    from joblib.externals.loky.process_executor import TerminatedWorkerError
    yield Session(traces, Parallel(workers, backend="loky", return_as="generator_unordered", batch_size=1,
                                   initializer=_leave_with, initargs=(os.getpid(),)), (TerminatedWorkerError,))


def _leave_with(parent: int) -> None:
    """Have this process end soon after its parent, which may be killed without a word."""
    def watch() -> None:
        while os.getppid() == parent:
            sleep(WATCH_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def _dask(address: str, traces: Sequence[Trace]) -> Iterator[Session]:
    distributed = _module("distributed", "dask")
    _hush("distributed")
    try:
        client = distributed.Client(address, timeout=PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address} ({_first_line(error)}): start one with "
                         "`dask scheduler`, or give its address with --scheduler") from None
    with client:
        _await_workers(client, address)
        cargo = [client.submit(_unpacked, trace, pure=False) for trace in traces]
        executor = client.get_executor(pure=False)
        slots = sum(client.ncores().values())
        try:
            yield Session(cargo, _cluster(executor.submit, slots, distributed.KilledWorker))
        except CancelledError:
            raise InputError(f"the Dask scheduler at {address} is gone, and what ran there is lost: start it again, "
                             "and go on with --resume") from None


def _await_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError:
        raise InputError(f"the Dask scheduler at {address} has no workers: start some with "
                         f"`dask worker {address}`") from None


@contextmanager
def _ray(address: str | None, traces: Sequence[Trace]) -> Iterator[Session]:
    ray = _module("ray", "ray")
    mine = not ray.is_initialized()
    if mine:
        _start_ray(ray, address)
    try:
        task = ray.remote(max_retries=0)(_call)
        cargo = [ray.put(trace) for trace in traces]
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        deaths = (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError)
        yield Session(cargo, _cluster(lambda *args: task.remote(*args).future(), slots, *deaths))
    finally:
        if mine:
            ray.shutdown()


def _start_ray(ray: Any, address: str | None) -> None:
    """Ray itself would knock for minutes at a door behind which nobody is."""
    if address and address != "auto":
        host, _, port = address.rpartition("/")[2].rpartition(":")
        try:
            create_connection((host, int(port)), PATIENCE_S).close()
        except (OSError, ValueError) as error:
            raise InputError(f"no Ray head answers at {address} ({_first_line(error)}): start one with "
                             "`ray start --head`, or give its address with --scheduler") from None
    try:
        ray.init(address=address, include_dashboard=None if address else False, logging_level=logging.CRITICAL,
                 log_to_driver=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"Ray at {address or 'this machine'} does not let us in ({_first_line(error)}): it wants the "
                         "same versions of Ray and Python, and its token where it asks for one") from None


def _unpacked(trace: Trace) -> Trace:
    """A trace that comes as the result of a task, and not as data, can be had again when all who held it have died."""
    return trace


def _call(call: Callable[..., Any], *args: Any) -> Any:
    """Ray wants a function of its own, and opens what stands for an object only in the arguments of that."""
    return call(*args)


def _cluster(submit: Callable[..., Any], slots: int, *deaths: type[Exception]) -> Callable[..., Iterator[Any]]:
    """joblib over that engine. It sends all calls at once, so that workers which join later find work."""
    from joblib import Parallel

    from simulator.studies.campaign.cluster import Futures
    return Parallel(slots, backend=Futures(submit, slots, deaths), return_as="generator_unordered", batch_size=1,
                    pre_dispatch="all")


def _hush(package: str) -> None:
    """What is to be said of a lost worker, we say."""
    for name in [package, *logging.root.manager.loggerDict]:
        if name.partition(".")[0] == package:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _module(name: str, extra: str) -> Any:
    from importlib import import_module
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"backend {extra} is not installed: pip install 'batchsim[{extra}]'") from None


def _first_line(error: BaseException) -> str:
    with suppress(IndexError):
        return str(error).strip().splitlines()[0].rstrip(".:")
    return type(error).__name__
