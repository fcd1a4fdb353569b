"""How sure a comparison is, as tables: a row a difference. It measures nothing."""

from __future__ import annotations

from simulator.scenario import Load
from simulator.statistics import Interval
from simulator.studies.certainty import Certainty, Difference, words_of
from simulator.studies.contenders import LOADS
from simulator.tables import Table

FIGURES: dict[Load, str] = {"saturated": "output tokens/s, saturated", "trace": "at the trace's own times"}


def certainty_tables(found: Certainty, baseline: str) -> list[Table]:
    """A table a load: both sides, their difference, and their ratio."""
    return [_table(found, load, baseline) for load in LOADS]


def _table(found: Certainty, load: Load, baseline: str) -> Table:
    rows = [each for each in found.differences if each.load == load]
    others = {each.policy for each in rows}
    level = f"{rows[0].difference.level:.0%}" if rows else ""
    return Table(f"How sure is it? {FIGURES[load]}: {found.words[load]}, the same requests for each policy",
                 ("", baseline, *([next(iter(others))] if len(others) == 1 else ["the other"]), "difference", "ratio"),
                 tuple(_row(each, named=len(others) > 1) for each in rows),
                 f"Mean and {level} interval (Student's) of {found.count} replications; differences and ratios in "
                 "pairs, so that what both sides share cancels out." if rows else "Nothing was measured each time.")


def _row(found: Difference, named: bool) -> tuple[str, ...]:
    name = f"{found.policy}: {words_of(found)}" if named else words_of(found)
    return (name, _mean(found.baseline), _mean(found.other),
            f"{_number(found.difference.mean, '+')}  {_ends(found.difference, '+')}",
            "-" if found.ratio is None else f"{_number(found.ratio.mean)}x  {_ends(found.ratio)}")


def _mean(found: Interval) -> str:
    return f"{_number(found.mean)} ± {_number(found.half_width)}"


def _ends(found: Interval, sign: str = "") -> str:
    return f"{_number(found.low, sign)} to {_number(found.high, sign)}"


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign}.3g}"
