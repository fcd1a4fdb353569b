"""The benchmark as a whole: which cases are asked for, one process after another, and what they found."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from simulator import checks
from simulator.bench import report
from simulator.bench.measuring import Measurement, measure_apart
from simulator.bench.workloads import WORKLOADS, Case
from simulator.errors import choose
from simulator.policies.making import policy_class
from simulator.scenario import Scenario
from simulator.tables import Table
from simulator.version import __version__

QUICK_REPEAT = 2

Progress = Callable[[str, int, int], None]
"""Called before each case with (what runs, cases done, cases in all)."""


@dataclass(frozen=True)
class Bench:
    """What a benchmark found, case by case.

    Attributes:
        machine: Where: versions, processor, cores that may be used.
        measurements: One a case, in the order of WORKLOADS.
    """

    machine: dict[str, Any]
    measurements: tuple[Measurement, ...]

    def where(self) -> str:
        """The machine in one line."""
        return ", ".join(f"{name} {value}" for name, value in self.machine.items())

    def records(self) -> dict[str, Any]:
        """The machine and one flat record a case: what ``--json`` prints."""
        return {"machine": self.machine, "cases": [found.to_dict() for found in self.measurements]}

    def tables(self) -> list[Table]:
        """Speed of the workloads, speed of the policies, and counts; what was not measured is left out."""
        return report.tables(self.measurements)


def bench(workloads: Iterable[str] | None = None, *, policies: Iterable[str] | None = None, quick: bool = False,
          repeat: int | None = None, seed: int = 0, progress: Progress | None = None) -> Bench:
    """Measure the speed of batchsim on this machine, each case in a process of its own.

    Args:
        workloads: Names of WORKLOADS; all if not given.
        policies: Run every simulated workload with these instead of its own.
        quick: Small sizes, for a look.
        repeat: Attempts at each case, of which the best counts; None: 5, but fewer of what takes long, and 2 if quick.
        seed: Of everything drawn.
        progress: See Progress.
    """
    repeat, seed = checks.count("repeat", repeat), checks.whole("seed", seed, 0)
    asked, done = cases(workloads, policies, quick, seed), []
    for number, case in enumerate(asked):
        if progress:
            progress(report.label(case.workload, case.policy), number, len(asked))
        done.append(measure_apart(case, repeat or (QUICK_REPEAT if quick else None)))
    return Bench(_machine(), tuple(done))


def cases(workloads: Iterable[str] | None, policies: Iterable[str] | None, quick: bool, seed: int) -> list[Case]:
    """The cases asked for, in the order of WORKLOADS. Raises InputError for a name that is not known."""
    wanted = {choose("workload", name, WORKLOADS) for name in workloads or WORKLOADS}
    contenders = None if policies is None else tuple(dict.fromkeys(policies))
    for name in contenders or ():
        policy_class(name)
    Scenario(seed=seed)    # refuses what is no seed
    return [Case(name, policy, rows, seed) for name, workload in WORKLOADS.items() if name in wanted
            for policy in (contenders if contenders and workload.policies else workload.policies or ("",))
            for rows in (workload.quick if quick else workload.rows)]


def _machine() -> dict[str, Any]:
    """Where this ran, as far as it matters to the speed."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"batchsim": __version__, "python": f"{platform.python_implementation()} {platform.python_version()}",
            "numpy": version("numpy"), "simpy": version("simpy"), "system": platform.system(),
            "processor": _processor(), "cores": cores}


def _processor() -> str:
    """The processor's name where Linux tells it, else its kind."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as facts:
            return next(line.partition(":")[2].strip() for line in facts if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
