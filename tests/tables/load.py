"""How much it takes: the README's table of loads, each case in a process of its own.

``python tests/tables/load.py`` prints it; ``--quick`` takes a tenth of everything; names of cases after it choose some.
Time is CPU time, so that what else the machine does hardly counts. The cases are in tests/loads.py.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown import table

HERE = Path(__file__)
sys.path.insert(0, str(HERE.parents[1]))

from loads import CASES  # noqa: E402 - it lies one folder up


def alone(name: str, scale: float) -> tuple[object, ...]:
    """A row: a case by its name, in a process of its own."""
    print(name, file=sys.stderr)
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, str(HERE), "--one", name, str(scale)], cwd=folder, capture_output=True,
                              text=True, check=False)
    took = time.monotonic() - start
    if done.returncode:
        return name, "-", f"{took:,.0f} s", "-", done.stderr.strip().splitlines()[-1]
    found = json.loads(done.stdout)
    return name, f"{found['cpu']:,.1f} s", f"{took:,.0f} s", f"{found['peak']:,.0f} MiB", found["came"]


def here(name: str, scale: float) -> None:
    """Run a case in this process and print what it took, its imports included."""
    came = CASES[name](scale)
    used = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(each.ru_utime + each.ru_stime for each in (used, children))
    print(json.dumps({"cpu": cpu, "peak": max(used.ru_maxrss, children.ru_maxrss) / 1024, "came": came}))


def main(words: list[str]) -> None:
    if words[:1] == ["--one"]:
        here(words[1], float(words[2]))
        return
    quick = "--quick" in words
    chosen = [word for word in words if word != "--quick"] or list(CASES)
    print(table(["load", "CPU", "wall", "peak memory", "what came of it"],
                [alone(name, 0.1 if quick else 1.0) for name in chosen]))


if __name__ == "__main__":
    main(sys.argv[1:])
