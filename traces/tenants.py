"""Tenants: parts of a trace by who asked, several traces as tenants of one, and how much each of them asks.

A weight is a speed: a tenant of weight 2 asks twice as often as it was recorded to ask.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from traces.arrivals import LONGEST_NS
from traces.columns import Int64
from traces.errors import TraceError, unknown
from traces.joining import joined
from traces.strict import number
from traces.trace import Trace


def split(trace: Trace) -> dict[str, Trace]:
    """The requests of each tenant, tenants in the order of their first requests; each trace starts at 0."""
    return {name: trace.take(rows) for name, rows in _rows(trace).items()}


def of_tenants(trace: Trace, weights: Mapping[str, float]) -> Trace:
    """The requests of these tenants alone, each tenant's `weights` times as fast as they were.

    It ends when the fastest has come through its time, so that the mix is the same throughout. Raises TraceError for a
    tenant that is not there, a weight that is not above 0, and where the trace names no tenants or none is asked for.
    """
    rows = _rows(trace)
    if not weights:
        raise TraceError(f"name a tenant of {trace.name}: it has {', '.join(rows)}")
    for name, weight in weights.items():
        if name not in rows:
            raise unknown("tenant", name, rows)
        number(f"the rate of {name}", weight)
    end = float(trace.arrival[-1]) / max(weights.values())
    if end > LONGEST_NS:
        raise TraceError(f"tenants so slow stretch {trace.name} beyond 146 years")
    parts, arrivals = list[Trace](), list[Int64]()
    for name, weight in weights.items():
        times = np.rint(trace.arrival[rows[name]] / weight)
        parts.append(trace.take(rows[name][times <= end]))
        arrivals.append(times[times <= end].astype(np.int64))
    whole = joined(trace.name, parts, arrivals, akin=True).slice(0, None)
    return whole.noted(f"tenants: {_said(weights)}{_left_out(len(whole), sum(len(rows[name]) for name in weights))}")


def mixed(parts: Sequence[tuple[Trace, float]]) -> Trace:
    """All requests of several traces, each trace so many times as fast; rows without a tenant get its name.

    It ends with the trace that ends first, so that the mix is the same throughout. Prompts of different traces have
    nothing in common.
    """
    found = [_named(trace).scale_rate(weight) for trace, weight in parts]
    end = min(int(trace.arrival[-1]) if len(trace) else 0 for trace in found)
    found = [trace.between(0, end + 1) for trace in found]
    whole = joined("+".join(trace.name for trace, _ in parts), found, [trace.arrival for trace in found], akin=False)
    sources, licences = (tuple(dict.fromkeys(getattr(trace, fact) for trace, _ in parts if getattr(trace, fact)))
                         for fact in ("source", "licence"))
    whole = replace(whole, source="; ".join(sources), licence="; ".join(licences))
    rates = _said({trace.name: weight for trace, weight in parts})
    return whole.noted(f"a mix: {rates}{_left_out(len(whole), sum(len(trace) for trace, _ in parts))}")


def _rows(trace: Trace) -> dict[str, Int64]:
    """The rows of each tenant, tenants in the order of their first requests."""
    if trace.tenant is None:
        raise TraceError(f"{trace.name} names no tenants; --columns tenant=NAME says which column does")
    names, codes = np.unique(np.array(trace.tenant, dtype=object), return_inverse=True)
    groups = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return dict(sorted(zip(map(str, names), groups, strict=True), key=lambda group: int(group[1][0])))


def _named(trace: Trace) -> Trace:
    return trace if trace.tenant is not None else replace(trace, tenant=(trace.name,) * len(trace))


def _said(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} at {weight:g} times its rate" for name, weight in weights.items())


def _left_out(here: int, all_: int) -> str:
    """What the end of the fastest costs the others, as the rest of a sentence."""
    if here == all_:
        return ""
    return f"; {all_ - here:,} of {all_:,} requests come after the first of them has ended, and are left out"
