"""How much it takes: the README's table of loads, each case in a process of its own.

``python tests/tables/load.py`` prints it; ``--quick`` takes a tenth of everything; names of cases after it choose some.
Time is CPU time, so that what else the machine does hardly counts. A row is printed as soon as it is there, and a case
that passes its limit says so in its row. The cases are in tests/loads.py.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import scripts
from markdown import line, table

HERE = Path(__file__)
sys.path.insert(0, str(HERE.parents[1]))

from loads import CASES, sized  # noqa: E402 - it lies one folder up

from simulator.errors import InputError, choose  # noqa: E402

QUICK = 0.1
CPU_LIMIT, WALL_LIMIT = 240, 1500
"""Seconds: of each process of a case, and of a case on a machine that does much else."""


def alone(name: str, scale: float, cpu: int = CPU_LIMIT, wall: float = WALL_LIMIT) -> tuple[object, ...]:
    """A row: a case by its name, in a process of its own that may take so many seconds."""
    print(name, file=sys.stderr)
    start = time.monotonic()
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = subprocess.run([sys.executable, str(HERE), "--one", name, str(scale), str(cpu)], cwd=folder,
                                  capture_output=True, text=True, check=False, timeout=wall)
    except subprocess.TimeoutExpired:
        return name, "-", f"{wall:,.0f} s", "-", f"**stopped: not done in {wall:,.0f} s of wall time**"
    took = time.monotonic() - start
    if done.returncode == -signal.SIGXCPU:
        return name, f"{cpu:,} s", f"{took:,.0f} s", "-", f"**stopped: not done in {cpu:,} s of CPU time**"
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return name, "-", f"{took:,.0f} s", "-", said[-1]
    found = json.loads(done.stdout)
    return name, f"{found['cpu']:,.1f} s", f"{took:,.0f} s", f"{found['peak']:,.0f} MiB", found["came"]


def here(name: str, scale: float, cpu_limit: int) -> None:
    """Run a case in this process and print what it took, its imports included."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    came = CASES[name](scale)
    used = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(each.ru_utime + each.ru_stime for each in (used, children))
    print(json.dumps({"cpu": cpu, "peak": max(used.ru_maxrss, children.ru_maxrss) / 1024, "came": came}))


def main(words: list[str]) -> None:
    if words[:1] == ["--one"]:
        here(words[1], float(words[2]), int(words[3]))
        return
    parser = scripts.Asked(__doc__)
    parser.add_argument("cases", nargs="*", type=case, metavar="CASE", help=f"all if not given: {'; '.join(CASES)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    asked = parser.parse_args(words)
    print(table(["load", "CPU", "wall", "peak memory", "what came of it"], []), flush=True)
    for name in asked.cases or CASES:
        scale = QUICK if asked.quick else 1.0
        print(line((sized(name, scale), *alone(name, scale)[1:])), flush=True)


def case(name: str) -> str:
    """A case by its name, else the nearest ones."""
    try:
        return choose("case", name, CASES)
    except InputError as error:
        raise scripts.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
