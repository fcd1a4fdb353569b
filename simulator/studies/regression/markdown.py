"""Markdown: a regression check for the summary of a job, or a comment on a change. It measures nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from simulator.counting import counted
from simulator.studies.regression.comparing import Change
from simulator.studies.regression.found import PASS, Compared, Regression
from simulator.studies.regression.names import shown, unit
from simulator.studies.regression.tables import COLUMNS, changes_table, differing, moved, row

LONGEST = 60_000
"""Characters; a comment on GitHub takes 65,536."""


def markdown(found: Regression) -> str:
    """The verdict, then each baseline that did not pass: the largest changes, what moved, and all metrics folded.

    Where that is longer than a comment may be, all metrics are left to the JSON.
    """
    whole = _text_of(found, folded=True)
    return whole if len(whole) <= LONGEST else _text_of(found, folded=False)


def _text_of(found: Regression, *, folded: bool) -> str:
    lines = [f"## batchsim regress: {found.outcome}", "", text(found.verdict())]
    for each in found.compared:
        lines += [*_part(each), *(_folded(each) if folded and each.changes else ())]
    return "\n".join(lines) + "\n"


def _part(each: Compared) -> Iterator[str]:
    yield from ("", f"### {text(each.name)}: {each.outcome}")
    if each.reason:
        yield from ("", text(each.reason))
    yield from (line for note in _notes(each) for line in ("", text(note)))
    if each.failed:
        yield from ("", "**The largest changes**", "")
        for number, change in enumerate(each.largest, 1):
            yield from _largest(number, change, each)
        yield from ("", text(differing(each)))
    if each.outcome != PASS and each.changes:
        table = changes_table(each)
        yield from ("", *_table(table.rows), "", text(table.note))


def _folded(each: Compared) -> list[str]:
    return ["", f"<details><summary>All {counted(len(each.changes), 'metric')}</summary>", "",
            *_table([row(change) for change in each.changes]), "", "</details>"]


def _notes(each: Compared) -> list[str]:
    sides = (("baseline", each.baseline and each.baseline.side), ("now", each.current))
    return [f"{which}: {note}" for which, side in sides if side for note in side.notes]


def _largest(number: int, change: Change, each: Compared) -> Iterator[str]:
    relative = f" ({moved(change)})" if change.relative is not None else ""
    measured = f" {unit(change.name)}" if unit(change.name) else ""
    yield f"{number}. **{text(change.label)}**: {shown(change.before)} → {shown(change.after)}{measured}{relative}"
    yield from (f"   - {text(words)}" for words in each.attribution(change))


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head = ["| " + " | ".join(COLUMNS) + " |", "|---|---:|---:|---:|---|---|"]
    return [*head, *("| " + " | ".join(map(text, cells)) + " |" for cells in rows)]


def text(words: str) -> str:
    """Words that Markdown shows as they are, on one line: names come from files."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in " ".join(words.split()))
    return re.sub(r"([\\`*_<&\[\]|~])", r"\\\1", plain)
