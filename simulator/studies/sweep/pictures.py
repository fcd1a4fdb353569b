"""Pictures: the frames behind the figures of a sweep, from its records alone, so that they can be drawn again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError, choose
from simulator.metrics import METRICS
from simulator.studies.sweep.loads import is_load, loads, pareto
from simulator.studies.sweep.records import INTERACTIVITY, THROUGHPUT, Record, efficiency, hashable, varied
from simulator.studies.sweep.variants import shown
from simulator.studies.sweep.words import points, words

if TYPE_CHECKING:
    from pandas import DataFrame

DEFAULTS = ("request_goodput", "output_throughput")
"""What a heat map shows if nobody says: the first of these that was measured."""


def heatmap_frame(records: Sequence[Record], x: str | None = None, y: str | None = None,
                  metric: str | None = None) -> tuple[DataFrame, str]:
    """The numbers of a heat map, and what they are in words.

    Args:
        records: Of the sweep.
        x, y: Names of what was varied; the first two that differ if not given.
        metric: A number of the records. Over whatever else was varied, the best value is shown.
    """
    import pandas as pd
    axes, name = _axes(records, x, y), _metric(records, metric)
    best = min if less_is_better(name) else max
    cells: dict[tuple[Any, Any], float] = {}
    for each in records:
        at = (hashable(each.get(axes[0])), hashable(each.get(axes[1])) if len(axes) > 1 else "")
        value = each.get(name)
        if isinstance(value, int | float):
            cells[at] = best(cells.get(at, value), value)
    columns, rows = (_ordered(at[side] for at in cells) for side in (0, 1))
    frame = pd.DataFrame([[cells.get((column, row), float("nan")) for column in columns] for row in rows],
                         pd.Index(map(shown, rows), name=axes[1] if len(axes) > 1 else ""),
                         pd.Index(map(shown, columns), name=axes[0]), float)
    others = [other for other in varied(records) if other not in axes]
    extreme = "lowest" if less_is_better(name) else "highest"
    return frame, words(name) + (f" (the {extreme} over {', '.join(others)})" if others else "")


def scattered_frame(records: Sequence[Record], x: str | None = None, y: str | None = None,
                    metric: str | None = None) -> tuple[DataFrame, str, bool] | None:
    """A row a point, with two numbers and the metric over them, the metric in words, and whether less of it is better.

    None where the points fill at least half of a grid, or are told apart by words: that is for a heat map. The
    arguments are those of `heatmap_frame`.
    """
    import pandas as pd
    axes, name = _axes(records, x, y), _metric(records, metric)
    rows = [[each.get(key) for key in (*axes, name)] for each in records if each.get(name) is not None]
    if len(axes) < 2 or not all(isinstance(value, int | float) for row in rows for value in row):
        return None
    frame = pd.DataFrame(rows, columns=[*axes, name], dtype=float)
    cells = frame[axes[0]].nunique() * frame[axes[1]].nunique()
    filled = len(frame.drop_duplicates(axes))
    return (frame, words(name), less_is_better(name)) if 2 * filled < cells else None


def pareto_frame(records: Sequence[Record]) -> DataFrame:
    """A row a record that served anything: tokens_per_user, tokens_per_gpu, pareto, name, load.

    A name is what was varied but for the load, and the load is empty where all have the same.
    """
    import pandas as pd
    names = [name for name in varied(records) if not is_load(name)]
    rows = [(*point, best, ", ".join(f"{name}={shown(each[name])}" for name in names if each.get(name) is not None),
             load) for each, best, load in zip(records, pareto(records), loads(records), strict=True)
            if (point := efficiency(each))]
    return pd.DataFrame(rows, columns=[INTERACTIVITY, THROUGHPUT, "pareto", "name", "load"])


def pareto_title(frame: DataFrame) -> str:
    """What the Pareto set holds, in words."""
    best = frame[frame["pareto"]]
    places = len(best.drop_duplicates([INTERACTIVITY, THROUGHPUT, "load"]))
    if frame["load"].nunique() == len(frame) > 1:
        return f"{points(frame)}, each of another load, so that none is an alternative to another"
    several = frame["load"].nunique() > 1
    same = f", which come to {places:,} result{'s' * (places != 1)}" if places < len(best) else ""
    return f"{points(frame)}, {len(best):,} in the Pareto {'sets of their loads' if several else 'set'}{same}"


def less_is_better(name: str) -> bool:
    """Whether a metric improves as it falls, as METRICS has it."""
    if name in METRICS:
        return METRICS[name].better == "lower"
    return any(name.endswith(f"_{metric}_ms") for metric, each in METRICS.items() if each.spread)


def _axes(records: Sequence[Record], x: str | None, y: str | None) -> list[str]:
    names = varied(records)
    if not names:
        raise InputError("nothing was varied here: there is no heat map to draw")
    asked = [choose("varied name", name, names) for name in (x, y) if name is not None]
    left = [name for name in names if name not in asked]
    if x is None and y is not None:
        return [*left[:1], *asked]
    return [*asked, *left][:max(2, len(asked))]


def _metric(records: Sequence[Record], metric: str | None) -> str:
    measured = [name for name in dict.fromkeys(name for each in records for name in each)
                if any(isinstance(each.get(name), int | float) and not isinstance(each.get(name), bool)
                       for each in records)]
    if metric is not None:
        return choose("metric", metric, measured, "the names in summary.csv")
    if found := [name for name in DEFAULTS if name in measured]:
        return found[0]
    raise InputError("no point has an output throughput: nothing was served, or these are no results of a sweep")


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Each once: numbers by size, what has no bound after them, then words as they came."""
    return sorted(dict.fromkeys(values), key=lambda value: (
        (0, value) if isinstance(value, int | float) else (0, inf) if value == "inf" else (1, 0)))
