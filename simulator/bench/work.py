"""What one attempt of a workload is: simulate a scenario, read a file, run a whole command. And what it took."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from simpy import Environment

import traces
from simulator.scenario import Scenario
from simulator.simulation import run
from traces import Trace

MIB = 1 << 20
KIB = 1 << 10


class Work(NamedTuple):
    """What one attempt took and did.

    Attributes:
        cpu_s: CPU seconds, user and system; of a simulation without its summary.
        summary_s: CPU seconds of the summary; None where there is none.
        plans, steps, events: Plans of the policy, steps they stand for, and SimPy events; None outside a simulation.
        peak_mib: Peak memory where the work was done in a process of its own.
    """

    cpu_s: float
    summary_s: float | None = None
    plans: int | None = None
    steps: int | None = None
    events: int | None = None
    peak_mib: float | None = None

    @property
    def whole_s(self) -> float:
        """CPU seconds with the summary."""
        return self.cpu_s + (self.summary_s or 0.0)


Attempt = Callable[[], Work]
"""Does the work once, from what was prepared before."""


def simulating(scenario: Scenario) -> Attempt:
    """From a scenario with its trace in memory to a Result, and from there to its summary."""
    def attempt() -> Work:
        env, start = Environment(initial_time=0), process_time()
        result = run(scenario, env=env)
        simulated = process_time()
        result.summary()
        return Work(simulated - start, process_time() - simulated, len(result.record.plans), len(result.record.ends),
                    next(env._eid))    # SimPy numbers its events

    return attempt


def reading(trace: Trace, folder: Path) -> Attempt:
    """From a CSV file to a trace."""
    file, rows = written(trace, folder), len(trace)

    def attempt() -> Work:
        start = process_time()
        found = traces.load(file, unit="ns")
        lasted = process_time() - start
        assert len(found) == rows
        return Work(lasted)

    return attempt


def commanding(arguments: Sequence[str]) -> Attempt:
    """A whole `batchsim` command: Python's start, the imports and the printing included."""
    def attempt() -> Work:
        before = _children()[0]
        subprocess.run([sys.executable, "-P", "-m", "simulator.cli", *arguments], stdout=subprocess.DEVNULL, check=True)
        after, peak = _children()
        return Work(after - before, peak_mib=peak)

    return attempt


def written(trace: Trace, folder: Path) -> Path:
    """The trace as a CSV file, arrivals in ns."""
    file = folder / "trace.csv"
    with file.open("w", encoding="ascii") as lines:
        lines.write("arrival,prompt_tokens,output_tokens\n")
        for row in zip(trace.arrival, trace.prompt, trace.output, strict=True):
            lines.write("{},{},{}\n".format(*row))
    return file


def _children() -> tuple[float, float]:
    """CPU seconds of all processes waited for, and the peak memory of the largest in MiB."""
    import resource  # which Windows lacks
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else KIB
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit / MIB
