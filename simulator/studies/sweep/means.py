"""Means: the records of a sweep with one for each point, however often it was run. It knows no run."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from simulator.scenario import FIELDS
from simulator.studies.sweep.records import RUN, Record, values_of


def averaged(records: Sequence[Record]) -> list[Record]:
    """A record a point: the mean of its runs, None where one of them did not measure it, the first's for the rest."""
    points: dict[Hashable, list[Record]] = {}
    for at, each in enumerate(records):
        points.setdefault(_point(each) if RUN in each else at, []).append(each)
    return [_mean(runs) if len(runs) > 1 else runs[0] for runs in points.values()]


def _point(each: Record) -> Hashable:
    """What the runs of a point have in common: all that is asked, but for the seed."""
    asked = {**{name: each[name] for name in FIELDS if name in each and name != "seed"}, **values_of(each)}
    return tuple((name, str(value)) for name, value in asked.items())


def _mean(runs: Sequence[Record]) -> Record:
    return {name: value if name in (RUN, *FIELDS) else _mean_of([each.get(name) for each in runs])
            for name, value in runs[0].items()}


def _mean_of(values: Sequence[Any]) -> Any:
    if None in values or len(set(map(str, values))) == 1:
        return None if None in values else values[0]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(numbers) / len(numbers) if len(numbers) == len(values) else values[0]
