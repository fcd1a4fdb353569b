"""Odd command lines: every flag and argument of every command, with every kind of value that it may not expect.

The flags come from the tree of commands itself. `prepare` makes a folder to stand in, `attempt` makes one call there,
and `fault` says what is wrong with what came of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import resource
import shutil
import signal
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from simulator.cli.app import Later, command
from simulator.cli.main import main

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VALUES = {
    "empty": "", "blanks": "   ", "word": "x", "unknown name": "no-such-name", "zero": "0", "one": "1",
    "negative": "-1", "fraction": "1.5", "whole, huge": "1" + "0" * 30, "huge": "1e308", "too large": "1e309",
    "5,000 digits": "9" * 5000, "NaN": "nan", "inf": "inf", "-inf": "-inf", "underscore": "1_0",
    "other digits": "\u0663", "control": "a\x1b[31m\nb\x07", "half a character": "a\udcff", "comma": ",", "mark": "=",
    "dash": "-", "directory": ".", "missing": "missing/file.json", "unreadable": "/proc/self/mem",
    "device": "/dev/null", "long name": "n" * 300,
}
"""What is typed behind a flag, by its kind."""
NEVER = ("empty", "blanks", "NaN", "-inf", "too large", "5,000 digits", "underscore", "other digits", "control",
         "half a character", "comma", "mark", "unreadable", "long name")
"""Kinds that no flag takes, but for those below."""
TEXTS = {"--label", "--accept", "--result-filename", "--trace-events", "--result-dir", "--output", "OUT"}
"""Flags that take any text, or name what is written."""
LATER = {"--max-tokens"}
"""Flags of which `init` does not know whether they fit its trace."""
MOST_SECONDS, MOST_WORDS, MOST_MIB = 10, 1500, 400
TRACE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:46.9805900,396,9
2023-11-16 18:15:47.6805900,879,55
2023-11-16 18:15:48.6805900,91,16
2023-11-16 18:15:50.6805900,91,16
"""
BASES: dict[str, tuple[list[str], str]] = {
    "compare": ([], "--trace tiny.csv"),
    "why": ([], "--trace tiny.csv --workers 1"),
    "explain": ([], "--trace tiny.csv"),
    "run": ([], "--trace tiny.csv"),
    "plan": ([], "--trace tiny.csv --goodput ttft:5000 --workers 1"),
    "sweep": ([], "--trace tiny.csv --vary max_num_seqs=2 --workers 1"),
    "plot": (["swept"], ""),
    "report": (["made"], ""),
    "init": ([], "--trace tiny.csv"),
    "list": (["gpus"], ""),
    "regress": ([], "--baseline base.json"),
    "conformance": (["tgi", str(GOLDEN / "tgi")], "--mode fast --scenario t1*"),
    "reproduce": (["slots"], ""),
    "caveats": ([], ""),
    "bench": (["planning"], "--quick --repeat 1"),
    "calibrate": ([], "--device cpu --quick --resume"),
    "validate": (["llama-3.1-8b-h100-80-bf16", "made/vllm-trace.json"], ""),
    "trace describe": (["tiny.csv"], ""),
    "trace convert": (["tiny.csv", "new.csv"], ""),
    "trace slice": (["tiny.csv", "new.csv"], "--limit 3"),
    "trace generate": (["spec.yaml"], "-o new.csv"),
    "trace fit": (["tiny.csv"], "-o new.yaml"),
    "trace fetch": (["no-such-trace"], ""),
    "baseline save": ([], "--trace tiny.csv"),
    "cost show": (["llama-3.1-8b-h100-80-bf16"], ""),
}
"""A line that each command answers fast: arguments, then flags. What takes long is never begun: see `stubbed`."""


@dataclass(frozen=True)
class Case:
    """One odd value, or a flag twice, at one place of one command."""

    command: str
    flag: str
    kind: str
    line: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.command} {self.flag} {self.kind}"


@dataclass(frozen=True)
class Outcome:
    """What came of a call."""

    status: int
    out: str
    err: str
    seconds: float
    mib: float


class TooLong(BaseException):
    """It did not come back in time."""


def leaves(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its flags, by its words."""
    for name, each in (group or command()).commands.items():
        if isinstance(each, Later):
            yield f"{path}{name}", each.whole
        else:
            yield from leaves(each, f"{path}{name} ")


def cases() -> list[Case]:
    """All of them. A flag that `run` has too meets three kinds of values elsewhere, others in each command."""
    found: list[Case] = []
    commands = dict(leaves())
    shared = {name for each in commands["run"].params for name in each.opts}
    for words, each in commands.items():
        arguments = [one.name for one in each.params if one.param_type_name == "argument"]
        for at, parameter in enumerate(each.params):
            kinds = list(_of(words, parameter, arguments))
            few = words != "run" and parameter.opts[0] in shared
            found += (kinds[at % 9::9] or kinds) if few else kinds
    return found


def _of(words: str, parameter: Any, order: list[str]) -> Iterator[Case]:
    """The cases of one flag or argument."""
    arguments, flags = BASES[words]
    name = next((each for each in parameter.opts if each.startswith("--")), str(parameter.metavar))
    if parameter.name == "help":
        return
    if parameter.param_type_name == "argument":
        place = order.index(parameter.name)
        for kind, value in VALUES.items():
            changed = [*arguments[:place], value, *arguments[place + 1:]]
            yield Case(words, name, kind, (*words.split(), *flags.split(), "--", *changed))
    elif parameter.is_flag:
        yield Case(words, name, "twice", (*words.split(), *arguments, *flags.split(), name, name))
    else:
        for kind, value in VALUES.items():
            yield Case(words, name, kind, (*words.split(), *arguments, *flags.split(), f"{name}={value}"))


def prepare(folder: Path) -> Path:
    """A folder with a trace, a spec, results, a sweep and a baseline, all of them tiny."""
    folder.mkdir(exist_ok=True)
    with _standing_in(folder), contextlib.redirect_stdout(io.StringIO()):
        Path("tiny.csv").write_text(TRACE)
        for line in ("run --trace tiny.csv -o made --save-detailed --quiet",
                     "sweep --trace tiny.csv --vary max_num_seqs=2 --workers 1 -o swept --quiet",
                     "trace fit tiny.csv -o spec.yaml --quiet", "baseline save --trace tiny.csv -o base.json --quiet"):
            assert main(line.split()) == 0, line
    return folder


def sample(of: Sequence[Case], size: int) -> list[Case]:
    """Some of them, the same ones each time."""
    return random.Random(0).sample(of, size)


def attempt(case: Case, made: Path, place: Path) -> Outcome:
    """Make the call in a copy of what was made."""
    shutil.copytree(made, place)
    out, err = io.StringIO(), io.StringIO()
    with (_standing_in(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), stubbed(),
          warnings.catch_warnings(action="error"), _in_time()):
        before, start = _peak(), process_time()
        status = main(case.line)
        outcome = Outcome(status, out.getvalue(), err.getvalue(), process_time() - start, _peak() - before)
    shutil.rmtree(place)
    return outcome


def fault(case: Case, outcome: Outcome) -> str:
    """What is wrong with it; empty if nothing is."""
    told = outcome.out + outcome.err
    tells = case.flag == "--debug" and outcome.status == 2    # a traceback is what was asked for
    if outcome.status not in (0, 1, 2, 3):
        return f"status {outcome.status}: {outcome.err.strip()[-300:]}"
    if tells:
        return ""
    if "Traceback" in told or "Warning" in told:
        return f"it shows its inside: {told[-300:]}"
    if outcome.seconds > MOST_SECONDS or outcome.mib > MOST_MIB:
        return f"it takes {outcome.seconds:.1f} s and {outcome.mib:.0f} MiB"
    if outcome.status == 2:
        return _badly_refused(outcome)
    if case.kind in NEVER and outcome.status != 3 and case.flag not in TEXTS and not (
            case.command == "init" and case.flag in LATER):
        return f"it is taken, with status {outcome.status}"
    if case.flag not in TEXTS and case.kind != "NaN" and re.search(r"\bnan\b|Infinity", outcome.out, re.IGNORECASE):
        return f"no number: {outcome.out[-300:]}"
    return ""


def _badly_refused(outcome: Outcome) -> str:
    if outcome.out or outcome.err.count("\n") != 1 or not outcome.err.startswith("batchsim: "):
        return f"not refused in one line: {(outcome.out + outcome.err)[:300]!r}"
    if not outcome.err.rstrip("\n").isprintable() or len(outcome.err) > MOST_WORDS:
        return f"refused in {len(outcome.err)} characters, some of which a terminal obeys"
    return ""


@contextlib.contextmanager
def stubbed() -> Iterator[None]:
    """Leave out what would measure this machine or take minutes: what gets so far was accepted."""
    from unittest.mock import patch

    from simulator.errors import InputError
    accepted = InputError("accepted, and left out here")
    with contextlib.ExitStack() as stack:
        for place in ("simulator.cli.reproduce.study", "simulator.bench.bench", "simulator.cli.caveats.study",
                      "traces.fetch"):
            stack.enter_context(patch(place, side_effect=accepted))
        yield


@contextlib.contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """Raise TooLong after many seconds of computing."""

    def late(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 3 * MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
