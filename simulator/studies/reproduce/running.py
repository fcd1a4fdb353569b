"""Run a specification: each of its runs once, its measures, and no result kept longer than it must be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from simulator.result import Result
from simulator.scenario import Scenario, scenario_of
from simulator.simulation import run
from simulator.studies.reproduce.measures import measure
from simulator.studies.reproduce.spec import Run, Search, Spec

Measured = Mapping[tuple[str, str], float | None]
"""Values by run and measure."""
Progress = Callable[[str, int, int], None]
"""Called with (what runs, runs done, runs in all)."""
RATE = "highest_rate"
"""What a search finds, as a measure: requests a second."""


def run_spec(spec: Spec, progress: Progress | None = None) -> Measured:
    """Everything that the claims and the ladder of a specification ask of its runs."""
    wanted = _wanted(spec)
    found: dict[tuple[str, str], float | None] = {}
    for done, (name, metrics) in enumerate(wanted.items()):
        if progress:
            progress(f"{spec.name}: {name}", done, len(wanted))
        found |= {(name, metric): value for metric, value in _answer(spec, spec.runs[name], metrics).items()}
    if progress:
        progress(spec.name, len(wanted), len(wanted))
    return found


def _wanted(spec: Spec) -> dict[str, list[str]]:
    """The measures that are asked of each run, in the order of the runs."""
    asked = defaultdict(set)
    for claim in spec.claims:
        for name in claim.runs:
            asked[name].add(claim.metric)
    for rung in spec.ladder:
        asked[rung.run].add(spec.ladder_metric)
    return {name: sorted(asked[name]) for name in spec.runs if asked[name]}


def _answer(spec: Spec, one: Run, metrics: list[str]) -> dict[str, float | None]:
    scenario = scenario_for(spec, one)
    if one.search is not None:
        return {RATE: highest_rate(scenario, one.search)}
    result = run(scenario)
    return {metric: measure(result, metric) for metric in metrics}


def scenario_for(spec: Spec, one: Run) -> Scenario:
    """The scenario of a run of a specification."""
    fields: dict[str, Any] = {"seed": spec.seed, **spec.scenario, **one.scenario, "knobs": one.knobs}
    if one.workload is not None:
        fields["trace"] = spec.workloads[one.workload].trace(one.workload, spec.seed)
    if one.cost is not None:
        fields["cost_model"] = spec.costs[one.cost]
    return scenario_of(**fields)


def highest_rate(scenario: Scenario, search: Search) -> float | None:
    """The highest request rate at which every measure stays within its bound, by halving; None if none does."""
    low, high, best = search.lowest, search.highest, None
    for _ in range(search.probes):
        middle = (low * high) ** 0.5
        if _keeps(run(scenario.but(request_rate=middle)), search.within):
            low = best = middle
        else:
            high = middle
    return best


def _keeps(result: Result, bounds: Mapping[str, float]) -> bool:
    found = ((measure(result, name), bound) for name, bound in bounds.items())
    return all(value is not None and value <= bound for value, bound in found)
