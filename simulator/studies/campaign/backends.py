"""Backends: where the points of a campaign run, by name. joblib and the engines are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from simulator import checks
from simulator.errors import InputError, choose
from simulator.studies.campaign.session import Session
from traces import Trace

BACKENDS = ("local", "dask", "ray")


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
        object.__setattr__(self, "workers", checks.whole("workers", self.workers))
        if self.name == "dask" and not self.address:
            raise InputError("backend dask needs the address of its scheduler: give --scheduler tcp://HOST:8786")
        if self.name == "local" and self.address:
            raise InputError("backend local has no scheduler: give --backend dask or ray, or leave out --scheduler")

    def open(self, traces: Sequence[Trace], points: int) -> AbstractContextManager[Session]:
        """Ship the traces, and be ready for so many points. Raises InputError if the cluster cannot be reached."""
        if self.name == "local":
            from simulator.studies.campaign import local
            return local.opened(min(self.workers, points), traces)
        try:
            if self.name == "dask":
                from simulator.studies.campaign import on_dask
                return on_dask.opened(str(self.address), traces)
            from simulator.studies.campaign import on_ray
            return on_ray.opened(self.address, traces)
        except ImportError:
            raise InputError(f"backend {self.name} is not installed: pip install 'batchsim[{self.name}]'") from None
