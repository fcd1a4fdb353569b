"""Tables: a regression check as a reader wants it. It measures nothing."""

from __future__ import annotations

from simulator.counting import counted
from simulator.studies.regression.comparing import Change
from simulator.studies.regression.found import CHANGED, NOTHING, PASS, REGRESSION, WRONG, Compared, Regression
from simulator.studies.regression.names import felt, shown, unit
from simulator.studies.regression.tolerances import Tolerance
from simulator.tables import Table

OUTCOMES = {WRONG: "cannot be read", REGRESSION: "regressed", CHANGED: "changed, nothing for the worse",
            NOTHING: "compared nothing or not all", PASS: "passed"}
"""In words, of several baselines."""
COLUMNS = ("metric", "baseline", "now", "change", "tolerance", "verdict")
NAMED = 3
"""Most metrics that are named where a reason is theirs together."""
FEW = 10
"""So many metrics that moved are all in the table."""
FINEST, WIDEST = 1e-4, 1000
"""Percent: less is no more than told to be less, and more has no fraction."""
WORDS = {"worse": "worse", "better": "better", "changed": "changed", "not compared": "not compared"}
"""Verdicts that are counted aloud, in the order of telling."""


def verdict(found: Regression) -> str:
    """What came out, in a sentence or two."""
    told = found.reason or (_one(found.compared[0]) if len(found.compared) == 1 else _several(found))
    return " ".join([f"{found.outcome.capitalize()}. {told}.", *_otherwise(found), *_loosely(found), *_unheld(found)])


def _otherwise(found: Regression) -> list[str]:
    """What was asked for that the baselines were not."""
    asked = dict.fromkeys(str(each) for one in found.compared for each in one.differences if each.asks)
    return [f"Asked for otherwise: {', '.join(asked)}."] if asked else []


def _loosely(found: Regression) -> list[str]:
    """By which tolerances others passed than the exact ones, so that none is looser unnoticed."""
    whys = [each.tolerances.why for each in found.compared
            if each.outcome == PASS and each.tolerances and not each.tolerances.default.exact]
    return [f"Tolerance: {why}." for why in dict.fromkeys(whys)]


def _unheld(found: Regression) -> list[str]:
    """What was not held against anything, so that none passes unnoticed."""
    new = dict.fromkeys(name for each in found.compared for name in each.new)
    told = [f"Measured now, and not in the baseline: {', '.join(new)}: --accept it to hold it."] if new else []
    return [*told, *([f"Not looked into: {', '.join(found.aside)}."] if found.aside else [])]


def _one(each: Compared) -> str:
    if each.outcome == PASS:
        return f"{each.name}: {within(each)}"
    moved = f"{counts(each)} of {counted(len(each.changes), 'metric')}"
    told = f"{each.name}: {each.reason or moved}"
    return f"{told}. {_unmeant(each)}: --accept what is meant" if each.outcome == CHANGED else told


def _unmeant(each: Compared) -> str:
    """Why it is no pass that nothing is worse."""
    other = [change.label for change in each.failed if change.verdict == "changed"]
    return f"Neither way is better of {_named(other)}" if other else "An exact metric must not even improve"


def _several(found: Regression) -> str:
    names = {outcome: [each.name for each in found.compared if each.outcome == outcome] for outcome in OUTCOMES}
    told = [f"{len(those)} {OUTCOMES[outcome]}: {', '.join(those)}" for outcome, those in names.items()
            if those and outcome != PASS]
    if passed := names[PASS]:
        told.append(f"{len(passed)} {OUTCOMES[PASS]}, {within(*(e for e in found.compared if e.outcome == PASS))}")
    return f"Of {len(found.compared)} baselines {'; '.join(told)}" if len(told) > 1 else f"All {told[0]}"


def within(*passed: Compared) -> str:
    """How many metrics held, and how many had nothing to hold."""
    gates = [change.tolerance.gates for each in passed for change in each.changes]
    held, told = sum(gates), len(gates) - sum(gates)
    theirs = "its tolerance" if held == 1 else "their tolerances"
    return f"{counted(held, 'metric')} within {theirs}" + f", {told:,} told only" * bool(told)


def unread(found: Regression) -> list[str]:
    """Of several baselines, why some were not compared at all."""
    return [f"{each.name}: {each.reason}" for each in found.compared if each.reason] if len(found.compared) > 1 else []


def counts(each: Compared) -> str:
    """How many metrics have which verdict, in words."""
    numbers = {word: sum(change.verdict == key for change in each.changes) for key, word in WORDS.items()}
    return ", ".join(f"{number} {word}" for word, number in numbers.items() if number) or "none changed"


def tables(found: Regression) -> list[Table]:
    """For each baseline that did not pass, what moved; then what is to blame for the largest changes."""
    return [table for each in found.compared if each.outcome != PASS and each.changes
            for table in (changes_table(each), causes_table(each)) if table.rows]


def reasons(each: Compared) -> list[str]:
    """Why metrics were not compared, a line a reason."""
    found: dict[str, list[str]] = {}
    for change in each.missing:
        found.setdefault(change.reason, []).append(change.name)
    return [f"{_named(names)}: {reason}" for reason, names in found.items()]


def _named(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else counted(len(names), "metric")


def changes_table(each: Compared) -> Table:
    """A row a metric that moved or was not compared; where many moved, of what is felt before the work behind it."""
    moved = [change for change in each.changes if change.verdict != "same"]
    shown = [change for change in moved
             if len(moved) <= FEW or felt(change.name) or change in each.missing or change in each.largest]
    told = [f"tolerance: {each.tolerances.why}" if each.tolerances else "", *_left_out(each, moved, shown),
            *reasons(each)]
    return Table(f"{each.name}: {counts(each)}", COLUMNS, tuple(map(row, shown)), "; ".join(filter(None, told)),
                 ("tolerance", "verdict"))


def _left_out(each: Compared, moved: list[Change], shown: list[Change]) -> list[str]:
    """How many metrics the table does not have."""
    numbers = {"more moved": len(moved) - len(shown), "are what they were": len(each.changes) - len(moved)}
    return [f"{number} {words}" for words, number in numbers.items() if number]


def row(change: Change) -> tuple[str, ...]:
    """A metric in cells."""
    named = f"{change.label} [{unit(change.name)}]" if unit(change.name) else change.label
    return (named, shown(change.before), shown(change.after), moved(change), str(change.tolerance), change.verdict)


def moved(change: Change) -> str:
    """How far it moved, relative to the baseline."""
    if change.before is None or change.after is None:
        return "-"
    if Tolerance().holds(change.before, change.after):
        return "same"
    if change.relative is None:
        return "from 0"
    share = 100 * change.relative
    return "same" if change.verdict == "same" and abs(share) < FINEST else percent(share)


def percent(value: float) -> str:
    """A difference in percent, with its sign."""
    if abs(value) < FINEST:
        return f"{'+' if value > 0 else '-'}<{FINEST:.4f}%"
    return f"{value:+,.0f}%" if abs(value) >= WIDEST else f"{value:+.3g}%"


def causes_table(each: Compared) -> Table:
    """The largest changes with what is to blame; the note says in what the two runs differ."""
    rows = [(change.label, f"{shown(change.before)} -> {shown(change.after)}", words)
            for change in each.largest for words in each.attribution(change) or [""]]
    columns = ("metric", "moved", "by") if any(words for *_, words in rows) else ("metric", "moved")
    cells = tuple(row[:len(columns)] for row in rows)
    return Table(f"{each.name}: the largest changes", columns, cells, differing(each), columns[2:])


def differing(each: Compared) -> str:
    """In what the two runs differ, in a sentence."""
    if each.differences:
        return f"The runs differ in: {', '.join(map(str, each.differences))}."
    sides = [side for side in (each.baseline and each.baseline.side, each.current) if side]
    if len({side.kind for side in sides}) > 1:
        return "The one is a simulation, the other a measurement."
    known = bool(sides) and all(side.scenario for side in sides)
    return ("The two runs have the same scenario, files and version: what differs is the code." if known else
            "In what the two runs differ, these files do not tell.")
