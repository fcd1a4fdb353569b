"""Tables: a sweep as a reader wants it. It measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.limits import LIMITS
from simulator.statistics import LEVEL
from simulator.studies.certainty_tables import mean
from simulator.studies.differences import Difference
from simulator.studies.sweep import Sweep
from simulator.studies.sweep.loads import loads, pareto
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.records import Record, efficiency, values_of, varied
from simulator.studies.sweep.served import TENANT, TOLD, serve_most, share_unserved, tenants_of, unserved
from simulator.studies.sweep.variants import shown
from simulator.studies.sweep.words import points
from simulator.tables import Table

COLUMNS = {"request_goodput": "goodput/s", "output_throughput": "tok/s", "p99_ttft_ms": "TTFT p99, ms",
           "p99_tpot_ms": "TPOT p99, ms"}
"""What is shown of each point, where any has it."""
EVENTS = {"jain_index": "Jain index", "preemptions": "preempted"}
"""What is shown where it happens."""
INTERVALS = f"Mean difference and its {LEVEL:.0%} interval (Student's), in pairs: what both points share cancels out."
LIMIT = "limit: what stops the queue most, and in which share of the time."
BEST = " * in the Pareto set: no other point{} has more output tok/s for each user and for each GPU."
IN_PART = " Who leaves a larger share of the requests unserved than another one is not in it."
FAIR = "met: share of its requests, rejected ones apart, that were answered and met its objectives."
AS_GIVEN = " (as given)"
"""Of the point that a search starts from: its values may lie beyond what is searched."""
NOTICED = 0.005
"""The share from which on a limit is told."""


def table(found: Sweep) -> Table:
    """A row a point: what was varied, what came out, and whether none of the same load beats it."""
    records = averaged(found.records)
    names, rivals = tuple(varied(records)), has_rivals(records)
    columns = {name: label for name, label in COLUMNS.items() if any(each.get(name) is not None for each in records)}
    columns |= {name: label for name, label in EVENTS.items() if any(each.get(name) for each in records)}
    lost = ("not served",) if any(map(unserved, records)) else ()
    given = None if found.given is None else values_of(found.given)
    rows = [(*_named(each, names, given), *(number(each.get(name)) for name in columns),
             *(share_unserved(each) for _ in lost), *_efficiency(each), _limit(each), *(["*" if best else ""] * rivals))
            for each, best in zip(records, pareto(records), strict=True)]
    header = (*names, *columns.values(), *lost, "tok/s/user", "tok/s/GPU", "limit", *([""] * rivals))
    runs = f", the mean of {found.replications}" if found.replications else ""
    return Table(f"{points(records)}{runs}", header, tuple(rows), _note(records) if rows else "nothing was measured",
                 names[1:])


def _named(each: Record, names: Sequence[str], given: Record | None) -> tuple[str, ...]:
    """The values of a point, the first of them with a word if they are those of the scenario as given."""
    first, *others = (shown(each.get(name)) for name in names) if names else ("",)
    return (f"{first}{AS_GIVEN if values_of(each) == given else ''}", *others)[:len(names)]


def has_rivals(records: Sequence[Record]) -> bool:
    """Whether two points share a load, so that one can beat the other."""
    return len(set(loads(records))) < len(records)


def _note(records: Sequence[Record]) -> str:
    same = " of the same load" if any(loads(records)) else ""
    left = IN_PART if len(serve_most(records)) < len(records) else ""
    return LIMIT + (BEST.format(same) + left if has_rivals(records) else "")


def tenants(found: Sweep) -> Table | None:
    """A row for each tenant of each point; None where there are not several."""
    records = averaged(found.records)
    names, who = tuple(varied(records)), tenants_of(records)
    rows = tuple((*(shown(each.get(name)) for name in names), tenant, *_fared(each, tenant))
                 for each in records for tenant in who if f"{TENANT}{tenant}.requests" in each)
    header = (*names, "tenant", "requests", "finished", "TTFT p99, ms", "met", "goodput/s")
    return Table("How was each tenant served?", header, rows, FAIR, header[1:len(names) + 1]) if rows else None


def _fared(each: Record, tenant: str) -> tuple[str, ...]:
    requests, completed, tail, share, rate = (
        each.get(f"{TENANT}{tenant}.{name}") for name in TOLD)
    met = "-" if share is None or rate is None else f"{share:.1%}"
    return (*map(number, (requests, completed, tail)), met, number(rate))


def certainty(found: Sweep) -> Table | None:
    """A row a point: its differences from the first one, with intervals; None where each point is run once."""
    points: dict[str, dict[str, Difference]] = {}
    for each in found.differences():
        points.setdefault(each.label, {})[each.figure] = each
    columns = {name: label for name, label in COLUMNS.items() if any(name in each for each in points.values())}
    names = tuple(varied(averaged(found.records)))
    rows = [(*(shown(found.variants[point].values.get(name)) for name in names),
             *(mean(each[name].difference, "+") if name in each else "-" for name in columns))
            for point, each in points.items()]
    first = next(iter(found.variants.values())).point
    title = f"How sure is it? Against {first}: {found.replications}, the same requests for each point"
    return Table(title, (*names, *columns.values()), tuple(rows), INTERVALS, names[1:]) if rows else None


def _efficiency(each: Record) -> tuple[str, str]:
    point = efficiency(each)
    return ("-", "-") if point is None else (number(point[0]), number(point[1]))


def _limit(each: Record) -> str:
    """What stops the queue most; a dash where hardly anything does."""
    shares = {limit: each.get(f"stopped_by_{limit}_share") or 0.0 for limit in LIMITS}
    most = max(shares, key=lambda limit: shares[limit])
    return f"{most.replace('_', ' ')} {shares[most]:.0%}" if shares[most] >= NOTICED else "-"


def number(value: Any) -> str:
    """A figure as a cell has it; a dash where nothing was measured."""
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
