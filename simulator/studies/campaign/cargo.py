"""Cargo: the traces of all points, each read once and shipped once. It knows no backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simulator.scenario import Scenario
from simulator.traffic import source
from traces import Trace


def with_traces(points: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """The same points with their traces read; equal traces are one object."""
    read: dict[tuple[str, int], Trace] = {}
    alike: dict[tuple[str, str], Trace] = {}
    found = {}
    for key, scenario in points.items():
        asked = scenario.trace
        if isinstance(asked, str):
            if (asked, scenario.seed) not in read:
                read[asked, scenario.seed] = source(scenario)
            asked = read[asked, scenario.seed]
        found[key] = scenario.but(trace=alike.setdefault((asked.name, asked.digest), asked), reading={})
    return found


def distinct(scenarios: Iterable[Scenario]) -> list[Trace]:
    """The traces of scenarios that have theirs read, each once."""
    return list({id(trace): trace for each in scenarios if isinstance(trace := each.trace, Trace)}.values())
