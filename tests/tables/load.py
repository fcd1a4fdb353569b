"""How much it takes: the README's table of loads, each case in a process of its own.

``python tests/tables/load.py`` prints it; names of cases choose some.
Time is CPU time, so that what else the machine does hardly counts. A row is printed as soon as it is there, and a case
that passes its limit says so in its row. The cases are in tests/loads.py.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from asking import options
from markdown import line, table

HERE = Path(__file__)
sys.path.insert(0, str(HERE.parents[1]))

from loads import CASES  # noqa: E402 - it lies one folder up

CPU_LIMIT, WALL_LIMIT = 240, 1500
"""Seconds: of each process of a case, and of a case on a machine that does much else."""
QUICK = 0.1
"""Of everything."""


def label(name: str, scale: float) -> str:
    """What a case is when its size, the number of three digits or more in its name, is scaled."""
    return re.sub(r"\d[\d,]*\d\d", lambda size: f"{int(size[0].replace(',', '')) * scale:,.0f}", name)


def alone(name: str, scale: float, cpu: int = CPU_LIMIT, wall: float = WALL_LIMIT) -> tuple[object, ...]:
    """A row: a case by its name, in a process of its own that may take so many seconds."""
    what = label(name, scale)
    print(what, file=sys.stderr)
    start = time.monotonic()
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = subprocess.run([sys.executable, str(HERE), "--one", name, str(scale), str(cpu)], cwd=folder,
                                  capture_output=True, text=True, check=False, timeout=wall)
    except subprocess.TimeoutExpired:
        return what, "-", f"{wall:,.0f} s", "-", f"**stopped: not done in {wall:,.0f} s of wall time**"
    took = time.monotonic() - start
    if done.returncode == -signal.SIGXCPU:
        return what, f"{cpu:,} s", f"{took:,.0f} s", "-", f"**stopped: not done in {cpu:,} s of CPU time**"
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return what, "-", f"{took:,.0f} s", "-", said[-1]
    found = json.loads(done.stdout)
    return what, f"{found['cpu']:,.1f} s", f"{took:,.0f} s", f"{found['peak']:,.0f} MiB", found["came"]


def here(name: str, scale: float, cpu_limit: int) -> None:
    """Run a case in this process and print what it took, its imports included."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    came = CASES[name](scale)
    used = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(each.ru_utime + each.ru_stime for each in (used, children))
    print(json.dumps({"cpu": cpu, "peak": max(used.ru_maxrss, children.ru_maxrss) / 1024, "came": came}))


def main(names: list[str], quick: bool) -> None:
    """Print a row for each of these cases, or for all."""
    print(table(["load", "CPU", "wall", "peak memory", "what came of it"], []), flush=True)
    for name in names or CASES:
        print(line(alone(name, QUICK if quick else 1.0)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        here(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
    else:
        asked = options(__doc__)
        asked.add_argument("names", nargs="*", choices=[*CASES, []], metavar="CASE", help="; ".join(CASES))
        asked.add_argument("--quick", action="store_true", help="a tenth of everything")
        main(**vars(asked.parse_args()))
