"""Runner: runs the scenarios of a study, each once, and tells how far all of it has got."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.studies.points import Point

Progress = Callable[[str, int, int], None]
"""Called now and then with (what runs, requests answered in all runs so far, requests in all runs)."""


class Runner:
    """Runs each scenario once, however many ratios need it, and tells how far all of it has got."""

    def __init__(self, progress: Progress | None, scenarios: Sequence[Scenario]) -> None:
        self._progress = progress
        self._distinct = len({_key(scenario) for scenario in scenarios})
        self._summaries: dict[str, dict[str, Any]] = {}
        self._points: dict[str, Point] = {}
        self._runs = 0

    def run(self, scenario: Scenario) -> Result:
        """Its result."""
        result = self._ran(scenario)
        self._summaries[_key(scenario)] = result.summary()
        return result

    def _ran(self, scenario: Scenario) -> Result:
        name = f"{scenario.to_dict()['policy']}, {scenario.load}"
        result = run(scenario, progress=lambda answered, accepted: self._tell(name, answered, accepted))
        rows = len(result.setup.trace)
        self._tell(name, rows, rows)
        self._runs += 1
        self._points[_key(scenario)] = Point.of(result)
        return result

    def _tell(self, name: str, answered: int, of: int) -> None:
        """Every run counts the same, however many of its requests are accepted."""
        if self._progress:
            self._progress(name, self._runs * of + answered, self._distinct * of)

    def measure(self, scenario: Scenario) -> dict[str, Any]:
        """Its summary, from the first time it was run; a result that nobody else needs is not kept."""
        if _key(scenario) not in self._summaries:
            self.run(scenario)
        return self._summaries[_key(scenario)]

    def points(self, runs: Mapping[str, Scenario]) -> dict[str, Point]:
        """The totals of these runs, by the same keys; more than that is not measured."""
        for scenario in runs.values():
            if _key(scenario) not in self._points:
                self._ran(scenario)
        return {key: self._points[_key(scenario)] for key, scenario in runs.items()}


def _key(scenario: Scenario) -> str:
    """What the run of a scenario is known by; a band changes nothing in it."""
    return json.dumps(scenario.but(error_band=None).to_dict(), default=str)
