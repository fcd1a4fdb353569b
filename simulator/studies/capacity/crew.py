"""Crew: processes that run a plan's scenarios, kept from one batch of runs to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from types import TracebackType
from typing import Any

from simulator import checks
from simulator.scenario import Scenario
from simulator.studies.capacity.objectives import Objective
from simulator.studies.capacity.sample import Sample, sample

Told = Callable[[str, int, int], None]
"""Called with (what runs, runs done, runs asked for so far)."""


class Crew:
    """Runs scenarios, up to `workers` at once; to be used in a `with`, which ends the processes.

    Args:
        workers: Processes; with one, everything runs in this one.
        told: Hears how far it has got.
    """

    def __init__(self, workers: int = 1, told: Told | None = None) -> None:
        checks.count("workers", workers)
        self._pool = ProcessPoolExecutor(workers) if workers > 1 else None
        self._told = told or (lambda what, done, of: None)
        self._done = self._asked = 0

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def measure(self, scenarios: Mapping[Any, Scenario], objectives: Sequence[Objective],
                why: str) -> Mapping[Any, Sample]:
        """The samples of all scenarios by the same keys."""
        self._asked += len(scenarios)
        self._told(why, self._done, self._asked)
        if self._pool is None:
            return {key: self._heard(why, sample(scenario, objectives)) for key, scenario in scenarios.items()}
        asked = {key: self._pool.submit(sample, scenario, objectives) for key, scenario in scenarios.items()}
        for future in as_completed(asked.values()):
            self._heard(why, future.result())
        return {key: future.result() for key, future in asked.items()}

    def _heard(self, why: str, found: Sample) -> Sample:
        self._done += 1
        self._told(why, self._done, self._asked)
        return found
