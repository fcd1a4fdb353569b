"""Odd surroundings of the command as a process: pipes, disks, terminals, locales, paths and signals.

Each is a line of bash, in a folder of its own with a tiny trace; `B` is the command. `wrong` says what should not have
come of it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from odd_flags import TRACE

ROOT = Path(__file__).resolve().parents[2]
BATCHSIM = f"{sys.executable} -m simulator.cli"
RUN, COMPARE = "run --trace tiny.csv", "compare --trace tiny.csv -o out"
PRINTING = (RUN, f"{RUN} --json", "list policies --verbose", "trace describe tiny.csv", "cost show", "compare --help",
            f"{COMPARE} --json", "why --trace tiny.csv --workers 1", "explain --trace tiny.csv", "list --json",
            "sweep --trace tiny.csv --vary max_num_seqs=1,2 --workers 1 -o out --json",
            "plan --trace tiny.csv --goodput ttft:5000 --workers 1")
ENVIRONMENTS = ("HOME=/proc", "MPLCONFIGDIR=/proc HOME=/proc", "MPLCONFIGDIR=/etc/passwd",
                "XDG_CACHE_HOME=/nonexistent", "TMPDIR=/nonexistent", "TERM=dumb", "COLUMNS=1", "COLUMNS=100000",
                "COLUMNS=-5", "NO_COLOR=1", "FORCE_COLOR=1", "LC_ALL=POSIX",
                "LC_ALL=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0", "PYTHONIOENCODING=ascii", "PYTHONIOENCODING=utf-16",
                "PYTHONWARNINGS=error", "PYTHONOPTIMIZE=2", "TZ=Nowhere/Never", "OMP_NUM_THREADS=0")
WRITING = (f"{RUN} --trace-events @.json", "init -o @.yaml", "trace convert tiny.csv @.csv",
           "baseline save --trace tiny.csv -o @.json", "cost show -o @.svg", "trace describe tiny.csv -o @.svg",
           "trace fit tiny.csv -o @.yaml", f"{RUN} -o @", "report -o @.html")
PLACES = {"a dangling link": "ln -s nowhere {}", "a loop of links": "ln -s {} {}", "a pipe": "mkfifo {}",
          "a directory": "mkdir -p {}/x", "a file of somebody": "echo mine > {}"}
SIGNALS = {"INT": 130, "TERM": 143, "HUP": 129}
"""Each with the status of a command that hears it."""
STOPPED = (RUN, f"{COMPARE}", "sweep --trace tiny.csv --vary max_num_seqs=1,2,3,4 --workers 2 -o out",
           "plan --trace tiny.csv --goodput ttft:500 --workers 2 -o out")
MOMENTS = ("simulator.guard", "typer", "numpy", "traces", "simulator.scenario", "simulator.result",
           "simulator.cli.complete", "pandas", "matplotlib", "joblib")
"""Modules: a signal comes when Python says that it has imported them, if it does."""


@dataclass(frozen=True)
class Surrounding:
    """One line, and the statuses that it may end with."""

    what: str
    line: str
    statuses: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return f"{self.what}: {self.line}"


@dataclass(frozen=True)
class Ending:
    """What came of it: the status, the words on stderr, drafts that were left, and whether a signal was sent."""

    status: int
    err: str
    left: tuple[str, ...]
    sent: bool = False


def surroundings() -> Iterator[Surrounding]:
    """All of them, but for the signals."""
    for command in PRINTING:
        for reader in ("true", "head -1"):
            yield Surrounding(f"| {reader}", f"B {command} | {reader} >seen; exit ${{PIPESTATUS[0]}}", (0, 1, 141))
        yield Surrounding("stdout full", f"B {command} >/dev/full", (2,))
        yield Surrounding("stdout closed", f"B {command} >&-", (0, 1))
        yield Surrounding("stderr closed or full", f"B {command} 2>&- >seen && B list 2>/dev/full >seen", (0, 1))
        yield Surrounding("stdin closed", f"B {command} <&- >seen", (0, 1))
    for variables in ENVIRONMENTS:
        for command in (RUN, COMPARE, "list traces", "run --help"):
            yield Surrounding("environment", f"{variables} B {command} >seen 2>words; status=$?; "
                                             "grep -v ^written words >&2; exit $status")
    for command in WRITING:
        for place, make in PLACES.items():
            if command.endswith("@") and place == "a directory":
                continue    # that is where it goes
            name = re.search(r"@\S*", command)[0].replace("@", "place")    # type: ignore[index]
            yield Surrounding(f"written to {place}", f"{make.format(name, name)}; B {command.replace('@', 'place')}",
                              (2,))
        yield Surrounding("disk full", f"ulimit -f 0; B {command.replace('@', 'new')} --quiet", (2,))
        yield Surrounding("written below /proc", f"B {command.replace('@', '/proc/new')}", (2,))
    yield Surrounding("no network", "https_proxy=http://127.0.0.1:9 B trace fetch azure-code-2023-full --quiet", (2,))
    for command in ("--version", "run --num-prompts 5", "list"):
        yield Surrounding("directory gone", f"mkdir a; cd a; rmdir ../a; B {command} >/dev/null")
    yield Surrounding("directory gone", "mkdir a; cd a; rmdir ../a; B run --num-prompts 5 -o x", (2,))
    yield Surrounding("Windows line ends", "printf 'from simulator.policies import Vllm\\r\\nclass Mine(Vllm):\\r\\n"
                      "    pass\\r\\n' > p.py; B run --trace tiny.csv --policy p.py:Mine >seen")
    yield Surrounding("name that is no text", "cp tiny.csv $'a\\xff.csv'; B run --trace $'a\\xff.csv'", (2,))
    yield Surrounding("name with a newline", "cp tiny.csv $'a\\nb.csv'; B compare --trace $'a\\nb.csv' --quiet >seen")
    yield Surrounding("two at once", f"B {COMPARE} --quiet >seen & B {COMPARE} --quiet >seen; wait $! && "
                      f"B {COMPARE} --quiet >seen")


def end_of(line: str, folder: Path) -> Ending:
    """Run a line of bash in this folder, which is made."""
    folder.mkdir()
    (folder / "tiny.csv").write_text(TRACE)
    script = f'shopt -s expand_aliases; alias B="{BATCHSIM}"\n{line}'
    run = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                         errors="backslashreplace", stdin=subprocess.DEVNULL, env=_bare())
    return Ending(run.returncode, run.stderr, _left(folder))


def stopped(command: str, name: str, moment: str, folder: Path) -> Ending:
    """Send the whole group a signal when a module has been imported; where it never is, the command ends by itself."""
    folder.mkdir()
    (folder / "tiny.csv").write_text(TRACE)
    words, sent = [], False
    with subprocess.Popen([sys.executable, "-X", "importtime", "-m", "simulator.cli", *command.split()], cwd=folder,
                          env=_bare(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, preexec_fn=_hears_ctrl_c) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if not line.startswith("import time:"):
                words.append(line)
            elif not sent and line.rpartition("|")[2].strip() == moment:
                os.killpg(run.pid, getattr(signal, f"SIG{name}"))
                sent = True
    return Ending(run.returncode, "".join(words), _left(folder), sent)


def endings(name: str, ending: Ending) -> tuple[int, ...]:
    """The statuses that a signal may lead to: a command that does not listen yet, or no more, is ended by it."""
    return (SIGNALS[name], -getattr(signal, f"SIG{name}")) if ending.sent else (0, 1)


def _hears_ctrl_c() -> None:
    """A shell has what it runs in the background ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wrong(ending: Ending, statuses: tuple[int, ...]) -> str:
    """What should not have come of it; empty if it is as it should be."""
    if ending.status not in statuses:
        return f"status {ending.status}: {ending.err[-300:]}"
    if any(word in ending.err for word in ("Traceback", "Warning", "Exception ignored", "internal error")):
        return f"it shows its inside: {ending.err[-300:]}"
    if ending.status == 2 and (ending.err.count("\n") != 1 or not ending.err.startswith("batchsim: ")):
        return f"not refused in one line: {ending.err!r}"
    return f"left half-written: {', '.join(ending.left)}" if ending.left else ""


def _bare() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}


def _left(folder: Path) -> tuple[str, ...]:
    """Drafts; the lock of a sweep is none."""
    return tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob(".*") if path.name != ".lock"))
