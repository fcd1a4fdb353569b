"""Loads: which points of a sweep are alternatives to each other. Points whose requests differ are none.

How many requests a client has out at once (`max_concurrency`) can be chosen as any knob can, and is no load here.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulator.scenario import READ_FROM
from simulator.studies.sweep.records import Record, efficiency, varied
from simulator.studies.sweep.served import share_served
from simulator.studies.sweep.variants import shown

LOAD = READ_FROM | {"load", "num_prompts", "shape", "rate_scale", "cap_gaps", "request_rate", "burstiness", "turns"}
"""Fields that say which requests come, and when."""
Point = tuple[float, float]


def loads(records: Sequence[Record]) -> list[str]:
    """The load of each, in the words of the flags; empty where all have the same."""
    names = [name for name in varied(records) if is_load(name)]
    return [", ".join(f"{name}={shown(each.get(name))}" for name in names) for each in records]


def is_load(name: str) -> bool:
    """Whether what was varied is of the load, or an entry of such a field."""
    return name.partition(".")[0] in LOAD


def pareto(records: Sequence[Record]) -> list[bool]:
    """Which records none of the same load beats: is as good for each user and for each GPU, and better for one.

    Those that serve a smaller share of their requests than another one of the load are left out: for whom they serve,
    it is another load.
    """
    names, most = loads(records), dict[str, float]()
    for load, each in zip(names, records, strict=True):
        most[load] = max(most.get(load, 0.0), share_served(each))
    points = [(load, efficiency(each) if share_served(each) == most[load] else None)
              for load, each in zip(names, records, strict=True)]
    by_load: dict[str, set[Point]] = {load: set() for load in names}
    for load, point in points:
        by_load[load] |= {point} if point else set()
    sets = {load: _best(of_load) for load, of_load in by_load.items()}
    return [point in sets[load] for load, point in points]


def _best(points: set[Point]) -> set[Point]:
    """Those of the points that none beats: from the right, each that is higher than all before it."""
    best, highest = set[Point](), float("-inf")
    for point in sorted(points, reverse=True):
        if point[1] > highest:
            best.add(point)
            highest = point[1]
    return best
