"""Measuring: one case in a process of its own, the best of some attempts, and the peak memory of the first.

CPU time, not wall time: it hardly depends on what else the machine does. Peak memory is that of a process which does
nothing else, so it holds Python, numpy, the simulator and the trace as well as the simulation.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import simulator
from simulator.bench.work import KIB, MIB, Work
from simulator.bench.workloads import WORKLOADS, Case
from simulator.errors import InputError

MOST, ENOUGH_S = 5, 10.0
"""Attempts at a case unless somebody says how many: so many, but no more once they took so many CPU seconds."""


class Measurement(NamedTuple):
    """What the best attempt at a case took.

    Attributes:
        workload, policy, rows: The case.
        attempts: How many there were.
        cpu_s, summary_s, plans, steps, events: See `work.Work`.
        peak_mib: Peak memory in MiB; None where the system does not tell.
    """

    workload: str
    policy: str
    rows: int
    attempts: int
    cpu_s: float
    summary_s: float | None
    plans: int | None
    steps: int | None
    events: int | None
    peak_mib: float | None

    @property
    def whole_s(self) -> float:
        """CPU seconds with the summary."""
        return self.cpu_s + (self.summary_s or 0.0)

    @property
    def rates(self) -> dict[str, float | None]:
        """Speeds. Those of requests count the summary, those of plans and steps the simulation alone."""
        def a_piece(count: int | None) -> float | None:
            return self.cpu_s * 1e6 / count if count else None

        return {"requests_per_s": self.rows / self.whole_s, "steps_per_s": self.steps and self.steps / self.cpu_s,
                "us_per_plan": a_piece(self.plans), "us_per_step": a_piece(self.steps),
                "us_per_request": self.whole_s * 1e6 / self.rows}

    def to_dict(self) -> dict[str, Any]:
        """All of it as one flat record."""
        return self._asdict() | self.rates


def measure(case: Case, repeat: int | None) -> Measurement:
    """Measure a case in this process, which should do nothing else."""
    with TemporaryDirectory() as folder:
        attempt = WORKLOADS[case.workload].prepare(case, Path(folder))
        works, peak = [attempt()], peak_mib()
        while not _is_enough(works, repeat):
            gc.collect()
            works.append(attempt())
    best = min(works, key=lambda work: work.whole_s)
    return Measurement(*case[:3], len(works), best.cpu_s, best.summary_s, best.plans, best.steps, best.events,
                       best.peak_mib or peak)


def _is_enough(works: list[Work], repeat: int | None) -> bool:
    if repeat is not None:
        return len(works) >= repeat
    return len(works) >= MOST or sum(work.whole_s for work in works) >= ENOUGH_S


def peak_mib() -> float | None:
    """The most memory that this process has had at once, in MiB.

    Linux hands the peak of whoever started a process on to it, if one asks `getrusage`; its own stands in /proc.
    """
    if (status := Path("/proc/self/status")).exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * KIB / MIB
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MIB


def measure_apart(case: Case, repeat: int | None) -> Measurement:
    """Measure a case in a fresh process. Raises InputError for what cannot be run there."""
    question = json.dumps({"case": case._asdict(), "repeat": repeat})
    # A process group of its own: an interrupt reaches this process alone, which then ends the other one.
    done = subprocess.run([sys.executable, "-P", "-m", "simulator.bench", question], capture_output=True, text=True,
                          env=_environment(), check=False, process_group=0)
    named = f"{case.workload} with {case.rows:,} requests"
    if done.returncode < 0:
        raise InputError(f"{named}: the process was killed by signal {-done.returncode}; "
                         "if memory is short, try --quick or another workload")
    if done.returncode:
        raise RuntimeError(f"{named}: {done.stderr.strip().splitlines()[-1:]}")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise InputError(f"{named}: {answer['error']}")
    return Measurement(**answer)


def _environment() -> dict[str, str]:
    """The fresh process runs this very package, wherever it was started."""
    home = str(Path(simulator.__file__).parents[1])
    known = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([home, known] if known else [home])}
