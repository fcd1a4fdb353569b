"""Sample: what a planner needs to know of one run, small enough to travel between processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.distribution import Distribution
from simulator.lagging import MATERIAL, lag
from simulator.metrics import MS, PER_REQUEST, meets
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.simulation import run
from simulator.studies.capacity.following import outstanding, served, warm_from
from simulator.studies.capacity.objectives import LATENCIES, Objective, limits_that_would_do, stretch_that_would_do
from simulator.studies.capacity.windows import shares, worst
from simulator.studies.capacity.work import Work, work_of
from simulator.throughput import offered_rate
from simulator.timeline import Timeline

POINTS = 160
"""Of the backlog over time."""
CAUSES = {"queue": "waited for a slot", "preemption": "lost their slot before the first token",
          "prefill": "had their prompt computed slowly", "delivery": "were kept back after the first token was made",
          "tpot": "had their tokens come slowly", "e2el": "took long as a whole",
          "lost": "were refused, given up or never sent"}
"""What those did that miss their limits, in words."""


@dataclass(frozen=True)
class Sample:
    """One run in numbers.

    Attributes:
        requests: That count: those the gate takes, sent once the run is warm.
        asked: Of these, those that each objective is about.
        distinct: Of those, how many are no copies of others, as a repeated trace has them.
        met: Of those that it is about, how many meet its limits, counted from their first try.
        whole: For each objective, the share of all requests that a replica takes, warm-up included.
        windows: For each objective, the share that does so in each window, copies in that of the first one.
        alike: The share that meets all objectives in each window of the whole trace, warm-up and rejected requests
            included: the same requests in every run of it, to compare two runs in pairs.
        worst: Of the windows: (share that meets all objectives, seconds of its first and of its last request).
        left_out: Requests before the run is warm.
        warm_after: Seconds until it is.
        rejected: Requests that no fleet of such replicas can serve.
        offered: Requests that come, a second.
        served: Requests completed, a second, the ends of the run left out.
        good: Requests that meet all objectives, a second of the time in which they come.
        lag: By which share completions took longer than arrivals, the ends left out; None where the run is too short
            to tell.
        latencies: Milliseconds by "p50_ttft" and so on; None where nothing was measured.
        causes: Of the requests that miss an objective, how many for which of CAUSES.
        limits: For each objective, the limits that would have done, each by itself.
        stretch: For each objective, how many times as long all its limits must be to do; None where that helps nobody.
        work: Where the GPUs' time went.
        backlog: Requests outstanding, at as many instants as there are.
        span: Seconds in which requests come.
        steps: Forward passes.
        out_of_range: Of these, those outside what the cost model was measured for.
    """

    requests: int
    asked: tuple[int, ...]
    distinct: tuple[int, ...]
    met: tuple[int, ...]
    whole: tuple[float, ...]
    windows: tuple[tuple[float, ...], ...]
    alike: tuple[float, ...]
    worst: tuple[float, float, float]
    left_out: int
    warm_after: float
    rejected: int
    offered: float
    served: float
    good: float
    lag: float | None
    latencies: Mapping[str, float | None]
    causes: Mapping[str, int]
    limits: tuple[Mapping[str, float | None], ...]
    stretch: tuple[float | None, ...]
    work: Work
    backlog: tuple[int, ...]
    span: float
    steps: int
    out_of_range: int

    @property
    def follows(self) -> bool | None:
        """Whether completions follow arrivals; None where the run is too short to tell."""
        return None if self.lag is None else self.lag <= MATERIAL


def sample(scenario: Scenario, objectives: Sequence[Objective]) -> Sample:
    """Run a scenario and keep what a planner needs."""
    return sample_of(run(scenario), objectives)


def sample_of(result: Result, objectives: Sequence[Objective]) -> Sample:
    """What a planner needs to know of this run."""
    line, felt, sent, taken = result.timeline, result.felt, _sent(result), result.setup.verdict == 0
    warm, copies = warm_from(line), result.setup.trace.original
    settled = taken & (sent >= warm)
    order = np.flatnonzero(settled)[np.argsort(sent[settled], kind="stable")]
    concerned = [objective.concerns(result.setup.trace) for objective in objectives]
    rows = [order[own[order]] for own in concerned]
    met = [_met(felt, objective, len(sent)) for objective in objectives]
    good = np.all([kept | ~own for kept, own in zip(met, concerned, strict=True)], axis=0)
    offered = offered_rate(np.sort(sent[taken])) or 0.0
    lags = lag(felt, _turned_away(result, taken))
    finished = [_of(felt, own, len(sent)) for own in rows]
    return Sample(
        requests=len(order), asked=tuple(map(len, rows)),
        distinct=tuple(len(own) if copies is None else len(np.unique(copies[own])) for own in rows),
        met=tuple(int(kept[own].sum()) for kept, own in zip(met, rows, strict=True)),
        whole=tuple(float(kept[own & taken].mean()) if (own & taken).any() else 1.0
                    for kept, own in zip(met, concerned, strict=True)),
        windows=tuple(shares(kept[own], None if copies is None else copies[own])
                      for kept, own in zip(met, rows, strict=True)),
        alike=shares(good, copies),
        worst=worst(good[order], sent[order]), left_out=int((taken & (sent < warm)).sum()), warm_after=warm / 1e9,
        rejected=int((~taken).sum()), offered=offered, served=served(line, offered, lags),
        good=offered * float(good[order].mean() if len(order) else 0), lag=lags,
        latencies=_latencies(_of(line, order, len(sent))), causes=_causes(felt, objectives, rows, len(sent)),
        limits=tuple(map(limits_that_would_do, finished, map(len, rows), objectives)),
        stretch=tuple(map(stretch_that_would_do, finished, map(len, rows), objectives)),
        work=work_of(result), backlog=tuple(outstanding(line, _instants(sent)).tolist()),
        span=float(np.ptp(sent[taken])) / 1e9 if taken.any() else 0.0, steps=len(result.record.ends),
        out_of_range=result.record.out_of_range)


def _sent(result: Result) -> NDArray[np.int64]:
    """When each row of the trace was first sent, or was to be sent, ns."""
    return np.where(result.outcomes.asked < 0, result.setup.trace.arrival, result.outcomes.asked)


def _turned_away(result: Result, taken: NDArray[np.bool_]) -> int:
    """Requests whose last try was refused, or given up before it got a slot."""
    sent, let_in = result.outcomes.sent, np.zeros(len(taken), bool)
    for replica in result.served:
        request, since, _ = replica.record.stays.T
        let_in[request[since >= sent[request]]] = True
    return int((taken & (sent >= 0) & ~let_in).sum())


def _met(line: Timeline, objective: Objective, rows: int) -> NDArray[np.bool_]:
    """Which rows of the trace are answered within the limits."""
    found = np.zeros(rows, bool)
    found[line.request] = meets(line, objective.limits)
    return found


def _of(line: Timeline, own: Ints, rows: int) -> Timeline:
    """The finished requests among these rows of the trace."""
    there = np.zeros(rows, bool)
    there[own] = True
    kept = there[line.request]
    columns: dict[str, Any] = {name: value[kept] for name, value in vars(line).items() if isinstance(value, np.ndarray)}
    return replace(line, **columns)


def _instants(sent: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.linspace(int(sent.min(initial=0)), int(sent.max(initial=0)), POINTS).astype(np.int64)


def _latencies(line: Timeline) -> dict[str, float | None]:
    found = {name: Distribution.of(PER_REQUEST[name](line)) for name in ("ttft", "tpot", "e2el")}
    values = {f"p{percent}_{name}": values.percentile(percent) for name, values in found.items()
              for percent in (50, 99)}
    return {name: None if value is None else value / MS for name, value in values.items()}


def _causes(line: Timeline, objectives: Sequence[Objective], rows: Sequence[Ints], size: int) -> dict[str, int]:
    """For each request that misses an objective the first limit it misses; a late first token by its longest part."""
    why = np.full(size, "", "U10")
    parts = line.ttft_parts
    longest = np.full(size, "", "U10")
    longest[line.request] = np.array(list(parts))[np.stack(list(parts.values())).argmax(axis=0)]
    for objective, own in zip(objectives, rows, strict=True):
        limits: dict[str, float] = {}
        for name in sorted(objective.limits, key=LATENCIES.index):
            limits[name] = objective.limits[name]
            late = own[(why[own] == "") & ~_met(line, Objective(limits, 0.5), size)[own]]
            why[late] = longest[late] if name == "ttft" else name
            why[late[longest[late] == ""]] = "lost"
    return {cause: int((why == cause).sum()) for cause in CAUSES}
