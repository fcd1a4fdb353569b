"""Pictures: the frame behind the figure of a regression check. It draws nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from simulator.studies.regression.comparing import Change
from simulator.studies.regression.found import Compared, Regression
from simulator.studies.regression.names import felt, shown, unit

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("baseline", "metric", "moved", "low", "high", "verdict", "fails", "words")
HEADLINE = ("completed", "request_throughput", "output_throughput", "request_goodput", "mean_ttft_ms", "p99_ttft_ms",
            "mean_tpot_ms", "p99_tpot_ms", "p99_itl_ms", "mean_e2el_ms", "p99_e2el_ms", "preemptions")
"""Shown even if they are what they were, where there is one baseline."""
MOST = 20
"""Rows in all; with several baselines each has its part of them, and at least LEAST."""
LEAST = 3


def frame(found: Regression) -> DataFrame:
    """A row a metric that is shown.

    Columns: baseline, metric (with its unit), moved (share of the baseline; inf from 0), low and high (the tolerance,
    as shares), verdict, fails, words (both values). What was not compared is left out.
    """
    import pandas as pd
    several = len(found.compared) > 1
    most = max(LEAST, MOST // max(1, len(found.compared)))
    rows = [row for each in found.compared for row in _rows(each, most, several)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _rows(each: Compared, most: int, several: bool) -> Iterator[tuple[Any, ...]]:
    there = [change for change in each.changes if change.before is not None and change.after is not None
             and change.verdict != "not compared"]
    wanted = [change for change in there if change.verdict != "same" and (felt(change.name) or change in each.largest)]
    if not several:
        wanted += [change for change in there if change.name in HEADLINE and change not in wanted]
    largest = sorted(wanted, key=lambda change: (not change.fails, -change.size))[:most]
    yield from (_row(each.name, change) for change in there if change in largest)
    if there and not largest:
        yield each.name, "all metrics", 0.0, 0.0, 0.0, "same", False, f"{len(there)} as they were"


def _row(baseline: str, change: Change) -> tuple[Any, ...]:
    assert change.before is not None
    assert change.after is not None
    apart = 0.0 if change.after == change.before else float("inf") if change.after > 0 else float("-inf")
    reach = change.tolerance.reach(change.before) / abs(change.before) if change.before else 0.0
    words = f"{shown(change.before)} → {shown(change.after)} {unit(change.name)}".rstrip()
    return (baseline, change.label, apart if change.relative is None else change.relative, -reach, reach,
            change.verdict, change.fails,
            words if change.before != change.after else f"{shown(change.after)} {unit(change.name)}".rstrip())
