"""Prints what came of strangers' files: mutants of good ones for every reader, then those made by hand.

Each reader is tried in a process of its own, whose time and memory count. `python tests/tables/files.py [MUTANTS]`.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import NamedTuple

import scripts

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from damage import mutant, outcome
from hostile import HOSTILE, bomb
from markdown import table
from parsers import PARSERS, Parser, made

MUTANTS = 1000
PARSED, REFUSED, ELSE = "parsed", "refused in one line", "anything else"
COLUMNS = ("", "inputs", PARSED, REFUSED, ELSE, "slowest, s", "most memory, MiB")
SPECS, PROFILES = "trace specs, lengths, catalogue", "profiles, kernel tables, cache"
LAUNCHES, REPORT, SWEEP = "launch commands", "what a report is made of", "lists, records and points of sweeps"
GROUPS = {"trace: ": "traces, 19 formats and gzip", "recording of ": "recorded decisions, 4 engines",
          "recorded run": "recorded runs, 3 formats", "baseline": "baselines and results in their place",
          "trace spec": SPECS, "lengths": SPECS, "catalogue": SPECS, "profile": PROFILES, "cached": PROFILES,
          "shape": "shapes of models", "config.json": "shapes of models", "scenario": "scenarios, and those of results",
          "launch": LAUNCHES, "settings": LAUNCHES, "study": REPORT, "figure": REPORT, "run of": REPORT,
          "list of": SWEEP, "records of": SWEEP, "point of": SWEEP}
"""Readers that are told together, by the beginnings of their names."""
HARM = {"nothing, blanks, its first half or line": ("nothing at all", "blanks", "half of it", "its first line"),
        "NUL bytes, UTF-16, no UTF-8, a mark, other line ends": (
            "NUL bytes", "no UTF-8", "UTF-16", "UTF-16 without a mark", "a byte order mark", "Windows line ends",
            "line ends of old Macs"),
        "garbage, twice in a row, a program, a pickle, escapes, a line of 4 MiB": (
            "garbage at its end", "twice in a row", "escapes for a terminal", "the source of a program", "a pickle",
            "a line of 4 MiB"),
        "gzip, zstd, Parquet and tar: bombs, cut off, names and links that lead out": tuple(
            name for name in HOSTILE if name.partition(":")[0] in ("gzip", "zstd", "Parquet", "tar")),
        "YAML: bombs, aliases, merges, tags, keys twice, depth, digits": tuple(
            name for name in HOSTILE if name.startswith("YAML")),
        "JSON: names twice, depth, NaN, 1e999, digits, half characters": tuple(
            name for name in HOSTILE if name.startswith("JSON"))}
"""Files made by hand that are told together."""


class Tried(NamedTuple):
    """What came of some inputs of one reader."""

    counts: Counter[str]
    slowest: float
    memory: int


def tried(parser: Parser, contents: Iterable[bytes]) -> Tried:
    """What comes of these inputs, and the time of the slowest, in s, and the memory of all, in MiB."""
    counts: Counter[str] = Counter()
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content in contents:
        start = time.perf_counter()
        try:
            found = PARSED if outcome(parser, content) == "parsed" else REFUSED
        except Exception as fault:
            found = ELSE
            print(f"{parser.name}: {type(fault).__name__}: {str(fault)[:200]}", file=sys.stderr)
        slowest = max(slowest, time.perf_counter() - start)
        counts[found] += 1
    return Tried(counts, slowest, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)


def mutants_of(parser: Parser, count: int) -> Iterable[bytes]:
    """So many mutants, the same each time."""
    chance = Random(parser.name)
    return (mutant(parser.sample(), chance) for _ in range(count))


def harm_for(parser: Parser, names: Iterable[str]) -> list[bytes]:
    """The files of these names that are for this reader."""
    return [make(parser.sample()) for fits, make in map(HOSTILE.get, names) if fits(Path(parser.file).name)]


def apart(parser: Parser, contents: Callable[[], Iterable[bytes]]) -> Tried:
    """`tried`, in a process of its own."""
    here, there = multiprocessing.Pipe()

    def child(answer: Connection) -> None:
        answer.send(tried(parser, contents()))

    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    there.close()
    try:
        return here.recv()    # type: ignore[no-any-return]
    except EOFError:
        return Tried(Counter({ELSE: 1}), 0.0, 0)
    finally:
        process.join()


def row(name: str, parts: Iterable[Tried]) -> tuple[str, ...]:
    """Some readers together."""
    found = list(parts)
    counts = sum((each.counts for each in found), Counter())
    return (name, f"{counts.total():,}", *(f"{counts[each]:,}" for each in (PARSED, REFUSED, ELSE)),
            f"{max((each.slowest for each in found), default=0):.2f}",
            f"{max((each.memory for each in found), default=0):,}")


def group_of(name: str) -> str:
    """How a reader is told."""
    return next((told for start, told in GROUPS.items() if name.startswith(start)), name)


def by_kind() -> dict[str, list[str]]:
    """The names of hostile files by how they are told."""
    told = {name: kind for kind, names in HARM.items() for name in names}
    found: dict[str, list[str]] = {}
    for name in HOSTILE:
        found.setdefault(told[name], []).append(name)
    return found


def main(count: int) -> None:
    """Print both tables as one."""
    made()
    bomb(256)    # once for all of the processes
    groups: dict[str, list[Tried]] = {}
    for name, parser in PARSERS.items():
        print(name, file=sys.stderr)
        groups.setdefault(group_of(name), []).append(apart(parser, lambda parser=parser: mutants_of(parser, count)))
    rows = [row(name, parts) for name, parts in groups.items()]
    for kind, names in by_kind().items():
        print(kind, file=sys.stderr)
        rows.append(row(f"**by hand:** {kind}", [
            apart(parser, lambda parser=parser, names=names: harm_for(parser, names)) for parser in PARSERS.values()]))
    print(table(COLUMNS, rows))


if __name__ == "__main__":
    asked = scripts.Asked(__doc__)
    asked.add_argument("mutants", nargs="?", type=scripts.count, default=MUTANTS,
                       help=f"of each file; {MUTANTS} if not given")
    main(asked.parse_args().mutants)
