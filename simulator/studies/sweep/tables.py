"""Tables: a sweep as a reader wants it. It measures nothing."""

from __future__ import annotations

from typing import Any

from simulator.limits import LIMITS
from simulator.statistics import LEVEL
from simulator.studies.certainty_tables import mean
from simulator.studies.differences import Difference
from simulator.studies.sweep import Sweep
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.records import Record, efficiency, pareto, varied
from simulator.studies.sweep.variants import shown
from simulator.tables import Table

COLUMNS = {"request_goodput": "goodput/s", "output_throughput": "tok/s", "p99_ttft_ms": "TTFT p99, ms",
           "p99_tpot_ms": "TPOT p99, ms"}
"""What is shown of each point, where any has it."""
EVENTS = {"preemptions": "preempted"}
"""What is shown where it happens."""
INTERVALS = f"Mean difference and its {LEVEL:.0%} interval (Student's), in pairs: what both points share cancels out."
NOTE = ("limit: what stops the queue most, and in which share of the time. * in the Pareto set: no other point has "
        "more output tok/s for each user and for each GPU.")
NOTICED = 0.005
"""The share from which on a limit is told."""


def table(found: Sweep) -> Table:
    """A row a point: what was varied, what came out, and whether nobody beats it."""
    records = averaged(found.records)
    names = varied(records)
    columns = {name: label for name, label in COLUMNS.items() if any(each.get(name) is not None for each in records)}
    columns |= {name: label for name, label in EVENTS.items() if any(each.get(name) for each in records)}
    rows = [(*(shown(each.get(name, "-")) for name in names), *(_number(each.get(name)) for name in columns),
             *_efficiency(each), _limit(each), "*" if best else "")
            for each, best in zip(records, pareto(records), strict=True)]
    header = (*names, *columns.values(), "tok/s/user", "tok/s/GPU", "limit", "")
    runs = f", the mean of {found.replications}" if found.replications else ""
    return Table(f"{len(records):,} points{runs}", header, tuple(rows), NOTE if rows else "nothing was measured")


def certainty(found: Sweep) -> Table | None:
    """A row a point: its differences from the first one, with intervals; None where each point is run once."""
    points: dict[str, dict[str, Difference]] = {}
    for each in found.differences():
        points.setdefault(each.label, {})[each.figure] = each
    columns = {name: label for name, label in COLUMNS.items() if any(name in each for each in points.values())}
    names = varied(averaged(found.records))
    rows = [(*(shown(found.variants[point].values.get(name, "-")) for name in names),
             *(mean(each[name].difference, "+") if name in each else "-" for name in columns))
            for point, each in points.items()]
    first = next(iter(found.variants.values())).point
    title = f"How sure is it? Against {first}: {found.replications}, the same requests for each point"
    return Table(title, (*names, *columns.values()), tuple(rows), INTERVALS) if rows else None


def _efficiency(each: Record) -> tuple[str, str]:
    point = efficiency(each)
    return ("-", "-") if point is None else (_number(point[0]), _number(point[1]))


def _limit(each: Record) -> str:
    """What stops the queue most; a dash where hardly anything does."""
    shares = {limit: each.get(f"stopped_by_{limit}_share") or 0.0 for limit in LIMITS}
    most = max(shares, key=lambda limit: shares[limit])
    return f"{most.replace('_', ' ')} {shares[most]:.0%}" if shares[most] >= NOTICED else "-"


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
