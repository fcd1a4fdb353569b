"""validate: a recorded run of an engine, simulated again, and how far the one is from the other.

The simulation gets the recorded arrivals and lengths, and nothing else of the run. It knows no tuning: what a profile
was tuned on is written in the profile, and `rows` leaves those requests out of the errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cost_models import Profile, profile_named
from cost_models.catalogue import PROFILED
from simulator.counting import counted
from simulator.engine_runs import EngineRun, read_run
from simulator.errors import InputError, choose
from simulator.facts import pool_of
from simulator.kinds import PROFILE, meant_as
from simulator.metrics import METRICS
from simulator.policies import Policy
from simulator.result import Result
from simulator.scenario import scenario_of
from simulator.simulation import Progress
from simulator.simulation import run as simulate
from simulator.tables import Table

Rows = Literal["all", "even", "odd"]
LATENCIES = ("ttft", "tpot", "e2el")
STATISTICS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "mean": np.nanmean, "median": np.nanmedian, "p90": lambda values: np.nanpercentile(values, 90),
    "p99": lambda values: np.nanpercentile(values, 99)}
OVERLOADED = 0.5
"""From this share of the TTFT spent in the queue on, TTFT follows from how the backlog grows."""


@dataclass(frozen=True)
class Figure:
    """One quantity of both runs.

    Attributes:
        name: Such as "mean_ttft_ms".
        recorded: Of the engine.
        simulated: Ours.
    """

    name: str
    recorded: float
    simulated: float

    @property
    def label(self) -> str:
        """What it is called in a table, with its unit."""
        stem, _, latency = self.name.removesuffix("_ms").rpartition("_")
        metric = METRICS[latency if latency in LATENCIES else self.name]
        return f"{metric.label}, {stem} [{metric.unit}]" if metric.spread else f"{metric.label} [{metric.unit}]"

    @property
    def error_percent(self) -> float | None:
        """Simulated over recorded, less 1; None where 0 was recorded."""
        return 100 * (self.simulated / self.recorded - 1) if self.recorded else None


@dataclass(frozen=True, eq=False)
class Validation:
    """What `validate` found.

    Attributes:
        run: What was recorded.
        result: What was simulated.
        rows: Which requests the latencies are of; makespan and throughput are always of all.
        figures: Every figure by its name.
    """

    run: EngineRun
    result: Result
    rows: Rows
    figures: Mapping[str, Figure]

    def remarks(self) -> list[str]:
        """What a reader must know of the two runs, one line each."""
        setup = self.result.setup
        told = [f"cost model: {setup.cost.name} ({setup.cost.origin})",
                f"simulated policy: {self.result.policy.version}; the recording may be of another version",
                f"KV pool, assumed unless it was given: {pool_of(setup)}", f"recorded times: {self.run.measured_from}"]
        if self.run.failed:
            told.append(f"not answered in the recording, and left out: {counted(self.run.failed, 'request')}")
        if steps := self.result.record.out_of_range:
            told.append(f"{counted(steps, 'step')} outside the measured range of the cost model")
        waits = self.result.latency("queue_time").mean() or 0
        if waits > OVERLOADED * (self.result.latency("ttft").mean() or 0):
            told.append(f"the engine is overloaded: requests wait {waits / 1e9:.1f} s on average, and a small error of "
                        "the step times is a large one of the TTFT")
        return told

    def table(self) -> Table:
        """The figures side by side."""
        rows = [(figure.label, _shown(figure.recorded), _shown(figure.simulated),
                 "-" if figure.error_percent is None else f"{figure.error_percent:+.1f}%")
                for figure in self.figures.values()]
        which = "" if self.rows == "all" else f", latencies of the {self.rows} ones"
        return Table(f"{Path(self.run.name).name}: {counted(len(self.run), 'request')}{which}",
                     ("", "recorded", "simulated", "error"), tuple(rows))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        figures = {name: {"recorded": each.recorded, "simulated": each.simulated, "error_percent": each.error_percent}
                   for name, each in self.figures.items()}
        return {"run": self.run.name, "format": self.run.dialect, "requests": len(self.run), "failed": self.run.failed,
                "rows": self.rows, "scenario": self.result.asked, "figures": figures,
                "remarks": self.remarks()}


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.4g}"


def validate(profile: Profile | str | os.PathLike[str], run: EngineRun | str | os.PathLike[str],
             policy: Policy | str = "vllm", *, rows: Rows = "all", progress: Progress | None = None,
             **options: Any) -> Validation:
    """Simulate a recorded run with a profile, and compare.

    Args:
        profile: A bundled profile by name, a YAML file, or a Profile; it says model, GPUs and dtypes.
        run: A recorded run, or its file.
        policy: What scheduled it.
        rows: "even" or "odd" tells the latencies of every second request only, counted from 0 by arrival.
        progress: See `simulator.simulation.run`.
        options: Other fields of Scenario, such as knobs or kv_capacity_tokens.

    Raises:
        InputError: The run is none, or asks for what the deployment cannot serve.
    """
    choose("choice of rows", rows, get_args(Rows))
    found = profile if isinstance(profile, Profile) else _profile(os.fspath(profile))
    recorded = run if isinstance(run, EngineRun) else read_run(run)
    deployment = {"model": found.model, "gpu": found.gpu, "tensor_parallel_size": found.tensor_parallel_size,
                  "dtype": found.dtype, "kv_dtype": found.kv_dtype, "cost_model": PROFILED[found.fit.form](found)}
    result = simulate(scenario_of(trace=recorded.trace, policy=policy, **deployment, **options), progress=progress)
    if rejected := int((result.setup.verdict > 0).sum()):
        raise InputError(f"{recorded.name}: {rejected:,} of its requests do not fit the simulated deployment: give the "
                         "recorded engine's --kv-capacity-tokens or --max-model-len")
    return Validation(recorded, result, rows, _figures(recorded, result, rows))


def _profile(which: str) -> Profile:
    with meant_as(PROFILE, which):
        found = profile_named(which)
    if found is None:
        raise InputError(f"'{which}' is a form and says no model and no GPU: give the name or the file of a profile")
    return found


def _figures(recorded: EngineRun, result: Result, rows: Rows) -> dict[str, Figure]:
    """Every figure; the latencies of the chosen requests."""
    requests, seconds = result.requests, (result.summary(metrics=())["duration"] or 0.0)
    chosen = {"all": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}[rows]
    tokens = recorded.output_tokens
    pairs = {"duration": (recorded.makespan, seconds),
             "output_throughput": (tokens / recorded.makespan, tokens / seconds)}
    for name in LATENCIES:
        theirs, ours = getattr(recorded, name)[chosen], requests[name].to_numpy(float)[chosen]
        if np.isfinite(theirs).any() and np.isfinite(ours).any():    # one token, or a whole answer, has no TPOT
            pairs |= {f"{stem}_{name}_ms": (1e3 * float(statistic(theirs)), 1e3 * float(statistic(ours)))
                      for stem, statistic in STATISTICS.items()}
    return {name: Figure(name, *pair) for name, pair in pairs.items()}
