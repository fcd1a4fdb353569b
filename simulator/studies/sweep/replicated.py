"""Replicated: every point of a sweep several times, the n-th time with the same traffic for all points.

Differences are to the first point. It runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from simulator import checks
from simulator.scenario import Scenario
from simulator.studies.differences import Difference, differences
from simulator.studies.replications import LEAST, is_drawn, seed_words, seeds, windows
from simulator.studies.sweep.records import Record
from simulator.studies.sweep.variants import Variant
from simulator.traffic import as_read

Making = Callable[[Scenario], Mapping[str, Variant]]
"""From what all points have in common to the points."""


def replicated(base: Scenario, making: Making, count: int) -> tuple[dict[str, Variant], str]:
    """The points, each `count` times, by key, one after the other; and in what their runs differ, in words.

    Where chance makes the traffic of the first point, all of them have seeds that follow their own, else windows of
    their traces.
    """
    count = checks.whole("replications", count, LEAST)
    points = making(base)
    drawn = is_drawn(next(iter(points.values())).scenario)
    points = points if drawn else making(as_read(base))    # to be cut, each trace is read first
    again = (replace(variant, scenario=scenario, number=number) for variant in points.values()
             for number, scenario in enumerate((seeds if drawn else windows)(variant.scenario, count)))
    first = next(iter(points.values())).scenario
    words = seed_words(seeds(first, count)) if drawn else f"{count} windows of the trace"
    return {variant.key: variant for variant in again}, words


def against_first(variants: Mapping[str, Variant], records: Mapping[str, Record]) -> list[Difference]:
    """Every point that came to something each time, beside the first one. `records` are by the variants' keys."""
    points: dict[str, list[Record | None]] = {}
    for key, variant in variants.items():
        points.setdefault(variant.point, []).append(records.get(key))
    whole = {point: [each for each in runs if each is not None] for point, runs in points.items() if None not in runs}
    return differences(whole) if next(iter(points)) in whole else []
