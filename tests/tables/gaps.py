"""What the tests do not run: each gap told by its function and the words of its line, so that it may move up or down.

A run of statements of which none ran is one gap, told by the first. A branch that is not taken between two lines that
both run is told by both of them. It reads what ``coverage json`` wrote, and knows no reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Gap:
    """Statements and branches of one place that no test runs.

    Attributes:
        file: From the project's root.
        text: ``function: line``, or ``function: line -> next line`` of a branch.
        count: Statements and branches.
    """

    file: str
    text: str
    count: int


def gaps(file: str, about: Mapping[str, Any]) -> list[Gap]:
    """All gaps of a file, in its order. `about` is what `coverage json` tells of it."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    counts = Counter[str]()
    for name, region in about["functions"].items():
        for text in _texts(region, lines):
            counts[f"{name}: {text}" if name else text] += 1
    return [Gap(file, text, count) for text, count in counts.items()]


def _texts(region: Mapping[str, Any], lines: list[str]) -> Iterator[str]:
    """What each statement and branch that did not run is told by, one after the other."""
    firsts = _firsts(region)
    yield from (_words(lines, first) for first in firsts.values())
    for before, after in region["missing_branches"]:
        first = firsts.get(before, firsts.get(after))
        yield _words(lines, first) if first else f"{_words(lines, before)} -> {_words(lines, after)}"


def _firsts(region: Mapping[str, Any]) -> dict[int, int]:
    """For each line that did not run: where the run of such lines begins."""
    missing = set(region["missing_lines"])
    firsts = {}
    for absent, run in groupby(sorted(missing.union(region["executed_lines"])), missing.__contains__):
        if absent:
            first, *others = run
            firsts.update(dict.fromkeys((first, *others), first))
    return firsts


def _words(lines: list[str], number: int) -> str:
    """The code of a line, without what is said of it; the end of a function, where the number is negative."""
    return lines[number - 1].partition("    #")[0].strip() if number > 0 else "end"
