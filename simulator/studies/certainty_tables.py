"""How sure a comparison is, as tables: a row a difference. It measures nothing."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.scenario import Load
from simulator.statistics import Interval
from simulator.studies.certainty import Certainty
from simulator.studies.differences import FIGURES, Difference
from simulator.studies.ratios import RATIOS
from simulator.tables import Table

UNDER: dict[Load, str] = {"saturated": "output tokens/s, saturated", "trace": "at the trace's own times"}
WINDOWS = (" A window is a trace of its own: it is over sooner than the whole one, and the shorter it is, the less of "
           "it runs with all slots full, so its ratios may lie apart from those of the whole.")


def certainty_tables(found: Certainty, baseline: str) -> list[Table]:
    """A table a load: both sides, their difference, and their ratio."""
    return [difference_table(f"How sure is it? {UNDER[load]}: {found.words[load]}, the same requests for each policy",
                             baseline, each, found.count, WINDOWS if "windows" in found.words[load] else "")
            for load, each in found.differences.items()]


def difference_table(title: str, baseline: str, found: Sequence[Difference], count: int, more: str = "") -> Table:
    """Differences from a baseline over so many replications; `more` is told below."""
    others = list(dict.fromkeys(each.label for each in found))
    other = others[0] if len(others) == 1 else "the other"
    note = (f"Mean and {found[0].difference.level:.0%} interval (Student's) of {count} replications; differences and "
            "ratios in pairs, so that what both sides share cancels out." if found else
            "Nothing was measured in every replication.") + more
    return Table(title, ("", baseline, other, "difference", "ratio"),
                 tuple(_row(each, named=len(others) > 1) for each in found), note)


def _row(found: Difference, named: bool) -> tuple[str, ...]:
    figure = RATIOS.get(found.figure, FIGURES.get(found.figure, found.figure)).partition(":")[0]
    return (f"{found.label}: {figure}" if named else figure, mean(found.baseline), mean(found.other),
            mean(found.difference, "+"),
            "-" if found.ratio is None else f"{_number(found.ratio.mean)}x  {_ends(found.ratio)}")


def mean(found: Interval, sign: str = "") -> str:
    """A mean, and half its interval; "+" shows the sign of any."""
    return f"{_number(found.mean, sign)} ± {_number(found.half_width)}"


def _ends(found: Interval) -> str:
    return f"{_number(found.low)} to {_number(found.high)}"


def _number(value: float, sign: str = "") -> str:
    digits = 3 if abs(value) >= 0.1 else 2
    return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign}.{digits}g}"
