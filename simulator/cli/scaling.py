"""The flags that say where the runs of a campaign take place, and how stubbornly: see `options`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from typer import Option

from simulator.cli import complete, values
from simulator.cli.flags import Flags
from simulator.errors import InputError
from simulator.studies.campaign import RETRIES, Backend

SCALE = "Scale"


@dataclass(frozen=True)
class Places(Flags):
    """Where runs take place."""

    backend: Annotated[str, Option(metavar="local|dask|ray", autocompletion=complete.backends, rich_help_panel=SCALE,
                                   help="Processes of this machine, or those of a cluster.")] = "local"
    scheduler: Annotated[str | None, Option(metavar="ADDRESS", rich_help_panel=SCALE, help=(
        "Of Dask's scheduler, such as tcp://HOST:8786, or of Ray's head; Ray starts one here if not given."))] = None
    workers: Annotated[str | None, Option(metavar="N", rich_help_panel=SCALE, help=(
        "Runs at once on this machine, each in a process; as many as there are cores if not given."))] = None
    @property
    def chosen(self) -> Backend:
        """Where the runs take place."""
        if self.scheduler == "":
            raise InputError("--scheduler must be an address, not ''")
        workers = cores() if self.workers is None else values.count("--workers", self.workers)
        return Backend(self.backend, workers or 0, self.scheduler)


@dataclass(frozen=True)
class Scaling(Places):
    """The same, and how often a run is tried."""

    retries: Annotated[str, Option(metavar="N", rich_help_panel=SCALE, help=(
        "Tries beyond the first of a run that fails, or whose process dies."))] = str(RETRIES)

    @property
    def tries(self) -> int:
        """Beyond the first."""
        return values.count("--retries", self.retries) or 0


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
