"""Tenancy: how each tenant of a trace was served, against what is due to it and against being alone.

It knows a result's timeline, and neither replicas nor router.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.distribution import Distribution
from simulator.metrics import MS, meets
from simulator.scenario import Scenario
from simulator.throughput import Window, whole_run
from simulator.timeline import Timeline
from traces import Trace

if TYPE_CHECKING:
    from simulator.measured import Measured


@dataclass(frozen=True)
class Tenant:
    """One tenant of a run.

    Attributes:
        tenant: Its name.
        requests: All of its own.
        rejected: Those that could not be served at all.
        completed: Answered.
        median_ttft_ms, p99_ttft_ms: Of those answered; None if none was.
        attainment: Share of those not rejected that were answered and met every objective of its class; None where
            nobody has an objective.
        request_goodput: How many of these there were a second, over the whole run; None likewise.
        slowdown: Mean E2EL over the mean E2EL with no other tenant there, of the requests answered both times; None
            where that was not simulated. With an autoscaler the fleet alone is another one, and it may be below 1.
    """

    tenant: str
    requests: int
    rejected: int
    completed: int
    median_ttft_ms: float | None
    p99_ttft_ms: float | None
    attainment: float | None
    request_goodput: float | None
    slowdown: float | None


def objectives_of(scenario: Scenario, tenant: str) -> dict[str, float]:
    """The objectives of a tenant's requests: those of its class, or those of goodput if that has none."""
    own = {name: limit for name, limit in scenario.classes.get(tenant, {}).items() if name != "priority"}
    return own or dict(scenario.goodput)


def tenant_codes(trace: Trace) -> tuple[list[str], Ints]:
    """The tenants of a trace in the order of their first requests, and the place of each row's tenant among them."""
    names = {name: place for place, name in enumerate(dict.fromkeys(trace.tenant or ()))}
    return list(names), np.array([names[name] for name in trace.tenant or ()], np.int64)


def met(scenario: Scenario, trace: Trace, line: Timeline) -> NDArray[np.bool_] | None:
    """Which of the requests answered meet the objectives of their tenants; None where nobody has any."""
    if not scenario.goodput and not any(objectives_of(scenario, tenant) for tenant in scenario.classes):
        return None
    good = meets(line, scenario.goodput)
    if scenario.classes:
        names, codes = tenant_codes(trace)
        for tenant in scenario.classes:
            own = codes[line.request] == names.index(tenant)
            good[own] = meets(line, objectives_of(scenario, tenant))[own]
    return good


def tenants(result: Measured) -> list[Tenant]:
    """Every tenant, in the order of their first requests; none where the trace names none."""
    setup, line = result.setup, result.timeline
    names, codes = tenant_codes(setup.trace)
    if not names:
        return []
    of_line = codes[line.request]
    ttfts = _by_tenant(line.ttft, of_line, len(names))
    requests = np.bincount(codes, minlength=len(names)).tolist()
    rejected = np.bincount(codes[setup.verdict > 0], minlength=len(names)).tolist()
    fine = [None] * len(names)
    if result.met is not None:
        fine = np.bincount(of_line[result.met], minlength=len(names)).tolist()
    window = whole_run(line)
    return [_tenant(name, requests[place], rejected[place], ttfts[place], fine[place], window,
                    slowdown(line, result.alone.get(name)))
            for place, name in enumerate(names)]


def _by_tenant(values: Ints, codes: Ints, tenants: int) -> list[Ints]:
    """The values of each tenant, in one pass however many there are."""
    edges = np.cumsum(np.bincount(codes, minlength=tenants))[:-1]
    return np.split(values[np.argsort(codes, kind="stable")], edges)


def _tenant(name: str, requests: int, rejected: int, ttft: Ints, fine: int | None, window: Window,
            slower: float | None) -> Tenant:
    """`fine` of the answered requests met their objectives; None if there are none to meet."""
    spread, asked = Distribution.of(ttft), requests - rejected
    median, tail = (None if ns is None else ns / MS for ns in map(spread.percentile, (50, 99)))
    share = None if fine is None or not asked else fine / asked
    return Tenant(name, requests, rejected, len(ttft), median, tail, share, None if fine is None else window.rate(fine),
                  slower)


def slowdown(line: Timeline, alone: Timeline | None) -> float | None:
    """By which factor the answers took longer on average than alone, of the requests answered both times."""
    if alone is None:
        return None
    _, here, there = np.intersect1d(line.request, alone.request, assume_unique=True, return_indices=True)
    least = int(alone.e2el[there].sum())
    return int(line.e2el[here].sum()) / least if least else None


def jain_index(shares: Sequence[float]) -> float | None:
    """How even the shares are: 1 if all are the same, 1/n if one has everything. None for fewer than two, or all 0.

    Source: Jain, Chiu and Hawe, A quantitative measure of fairness and discrimination, DEC-TR-301, 1984.
    """
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if len(shares) > 1 and squares else None


def fairness(found: Sequence[Tenant]) -> Mapping[str, Any]:
    """Jain's index of the tenants' attainments, and the worst slowdown and whose it is, by their names in the JSON."""
    shares = [each.attainment for each in found if each.attainment is not None]
    slowed = [each for each in found if each.slowdown is not None]
    worst = max(slowed, key=lambda each: each.slowdown or 0, default=None)
    return {"jain_index": jain_index(shares), "worst_slowdown": worst and worst.slowdown,
            "worst_slowdown_tenant": worst and worst.tenant}
