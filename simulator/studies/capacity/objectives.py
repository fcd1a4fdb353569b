"""Objectives: which share of the requests must meet which limits. It knows no run's policy and no cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator import checks
from simulator.counting import counted, plainly
from simulator.errors import InputError, choose
from simulator.metrics import METRICS, MS, meets
from simulator.scenario import Scenario
from simulator.timeline import Timeline
from traces import Trace

LATENCIES = ("ttft", "tpot", "e2el")
ATTAINMENT = 0.99
"""Share of requests that must meet every objective, where nobody says otherwise."""
LEAST_PERCENT = 50
"""From here on an attainment is taken for a percentage by mistake."""
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)_([a-z0-9]+?)(?:_ms)?", re.ASCII)


@dataclass(frozen=True)
class Objective:
    """A share of the requests, and the limits that each of them must meet together.

    Attributes:
        limits: Milliseconds by ttft, tpot or e2el.
        share: From 0 to 1; 0.99 with a limit on TTFT alone is the same as a p99 of TTFT below it.
        tenant: Whose requests; None: everybody's, but those of `others`.
        others: Tenants that have objectives of their own.
    """

    limits: Mapping[str, float]
    share: float
    tenant: str | None = None
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        limits = " and ".join(f"{METRICS[name].label} <= {plainly(limit, 6)} ms" for name, limit in self.limits.items())
        return limits if self.tenant is None else f"{limits} for {self.tenant}"

    def concerns(self, trace: Trace) -> NDArray[np.bool_]:
        """Whose rows of the trace it is about."""
        if trace.tenant is None or (self.tenant is None and not self.others):
            return np.full(len(trace), self.tenant is None)
        names = np.array(trace.tenant)
        return names == self.tenant if self.tenant is not None else ~np.isin(names, self.others)

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"limits_ms": dict(self.limits), "share": self.share, "tenant": self.tenant}


def count(replicas: int) -> str:
    """So many replicas, in words."""
    return counted(replicas, "replica")


def a_second(rate: float) -> str:
    """So many requests a second, in words."""
    told = plainly(rate, 4)
    return f"{told} request{'s' * (told != '1')}/s"


def percent(share: float) -> str:
    """A share as people write it, with as many digits as it needs to be told from 1."""
    for digits in range(0, 4):
        if abs(round(100 * share, digits) - 100 * share) < 1e-9:
            return f"{100 * share:.{digits}f}%"
    return f"{100 * share:.3f}%"


def objectives_of(scenario: Scenario, attainment: float, percentiles: Iterable[str] = ()) -> tuple[Objective, ...]:
    """What a plan has to keep: the limits of `goodput` together, those of each tenant's class, and each percentile.

    Args:
        scenario: Its `goodput` and its `classes`; a tenant whose class has limits has no others.
        attainment: Share of the requests that must meet them.
        percentiles: Such as "p99_ttft:500": 99 percent of all requests have their first token within 500 ms.

    Raises:
        InputError: There is none, or one cannot be read.
    """
    attainment = checks.positive("attainment", attainment)
    if LEAST_PERCENT <= attainment < 100:
        raise InputError(f"attainment is a share below 1, not {attainment:g}: did you mean {attainment / 100:g}?")
    if attainment >= 1:
        raise InputError(f"attainment must be below 1, not {attainment}: nobody can promise every single request; "
                         "0.999 is the strictest that is usual")
    own = {tenant: limits for tenant in scenario.classes if (limits := _limits(scenario.classes[tenant]))}
    found = [Objective(dict(scenario.goodput), attainment, None, tuple(own))] if scenario.goodput else []
    found += [Objective(limits, attainment, tenant) for tenant, limits in own.items()]
    found += [_percentile(text) for text in percentiles]
    if not found:
        raise InputError("a plan needs an objective: give --goodput ttft:500,tpot:50, for example, or --slo "
                         "p99_ttft:500")
    return tuple(found)


def _limits(of: Mapping[str, float]) -> dict[str, float]:
    """The limits of a tenant's class."""
    return {name: limit for name, limit in of.items() if name in LATENCIES}


def _percentile(text: str) -> Objective:
    name, _, limit = (part.strip() for part in text.partition(":"))
    match = _PERCENTILE.fullmatch(name)
    try:
        milliseconds = float(limit)
    except ValueError:
        milliseconds = 0.0
    if match is None or not 0 < milliseconds < float("inf"):
        raise InputError(f"--slo takes pP_METRIC:MS such as p99_ttft:500, not '{text}'")
    share = float(match[1]) / 100
    if not 0 < share < 1:
        raise InputError(f"--slo takes a percentile above 0 and below 100, not '{text}'")
    return Objective({choose("latency", match[2], LATENCIES): milliseconds}, share)


def limits_that_would_do(line: Timeline, asked: int, objective: Objective) -> dict[str, float | None]:
    """By metric, the least limit in ms with which the run would have kept the objective, its others as they are.

    Args:
        line: The finished requests.
        asked: All requests that count, finished or not.
        objective: What was to be kept.

    Returns:
        None for a metric that alone cannot make up for it.
    """
    needed = ceil(objective.share * asked - 1e-9)
    return {name: _least(line, needed, objective, name) for name in objective.limits}


def stretch_that_would_do(line: Timeline, asked: int, objective: Objective) -> float | None:
    """How many times as long all limits together must be, at least, for the run to keep the objective; see above."""
    needed = ceil(objective.share * asked - 1e-9)
    if not 0 < needed <= len(line):
        return None
    times = [_values(line, name, objective.limits) / (limit * MS) for name, limit in objective.limits.items()]
    return float(np.sort(np.max(times, axis=0))[needed - 1])


def _least(line: Timeline, needed: int, objective: Objective, name: str) -> float | None:
    others = {metric: limit for metric, limit in objective.limits.items() if metric != name}
    values = np.sort(_values(line, name, objective.limits)[meets(line, others)])
    return float(values[needed - 1]) / MS if 0 < needed <= len(values) else None


def _values(line: Timeline, name: str, limits: Mapping[str, float]) -> NDArray[np.float64]:
    """What a limit on this metric is held against, request by request, ns; see `metrics.meets`."""
    if name != "tpot":
        return np.asarray(getattr(line, name), float)
    took = line.e2el - line.ttft if line.streams else line.e2el - limits.get("ttft", 0) * MS
    gaps = line.output - 1
    return np.where(gaps > 0, took / np.maximum(gaps, 1), 0.0)
