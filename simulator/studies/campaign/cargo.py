"""Cargo: the traces of all points, each read once and shipped once. It knows no backend.

A point is sent without its trace. Whoever runs it has got the trace by itself, and puts the two together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from simulator.scenario import READ_FROM, Scenario
from simulator.scenarios.held import files_of, held, unchanged
from simulator.traffic import composed
from traces import Trace


def with_traces(points: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """The same points with their traces at hand; equal traces are one object.

    All hold the digests of their files, of each file one. Raises FileChanged where one changes while it is read.
    """
    known: dict[str, str] = {}
    read: dict[Hashable, Trace] = {}
    alike: dict[Hashable, Trace] = {}
    found = {}
    for key, scenario in points.items():
        scenario = held(scenario, known)
        asked, trace = _asked(scenario), scenario.read
        if trace is None:
            if asked not in read:
                with unchanged(scenario):
                    read[asked], known = composed(scenario), known | files_of(scenario)
            trace = read[asked]
        trace = alike.setdefault((trace.name, trace.digest, trace.report.notes), trace)
        found[key] = held(scenario.but(read=trace), known, large=True)
        known |= found[key].files
    return found


def distinct(scenarios: Iterable[Scenario]) -> list[Trace]:
    """The traces of scenarios that have theirs at hand, each once."""
    return list({id(trace): trace for scenario in scenarios if (trace := scenario.read) is not None}.values())


def unloaded(scenario: Scenario) -> Scenario:
    """The scenario without its trace."""
    return scenario.but(**({"trace": ""} if isinstance(scenario.trace, Trace) else {}), read=None)


def loaded(scenario: Scenario, trace: Trace) -> Scenario:
    """What `unloaded` took away, put back."""
    return scenario.but(**({} if scenario.trace else {"trace": trace}), read=trace)


def _asked(scenario: Scenario) -> Hashable:
    """What says which trace is read."""
    return tuple((name, _named(getattr(scenario, name))) for name in sorted(READ_FROM))


def _named(value: Any) -> Hashable:
    """A trace in memory is itself; all else is what it looks like."""
    return id(value) if isinstance(value, Trace) else repr(value)
