"""Tables: a sweep as a reader wants it. It measures nothing."""

from __future__ import annotations

from typing import Any

from simulator.studies.sweep import Sweep
from simulator.studies.sweep.records import Record, efficiency, pareto, varied
from simulator.studies.sweep.variants import shown
from simulator.tables import Table

COLUMNS = {"request_goodput": "goodput/s", "output_throughput": "tok/s", "p99_ttft_ms": "TTFT p99, ms",
           "p99_tpot_ms": "TPOT p99, ms"}
"""What is shown of each point, where any has it."""
NOTE = "* in the Pareto set: no other point has more output tok/s for each user and for each GPU."


def table(found: Sweep) -> Table:
    """A row a point: what was varied, what came out, and whether nobody beats it."""
    records = found.records
    names = varied(records)
    columns = {name: label for name, label in COLUMNS.items() if any(each.get(name) is not None for each in records)}
    rows = [(*(shown(each.get(name, "-")) for name in names), *(_number(each.get(name)) for name in columns),
             *_efficiency(each), "*" if best else "") for each, best in zip(records, pareto(records), strict=True)]
    header = (*names, *columns.values(), "tok/s/user", "tok/s/GPU", "")
    return Table(f"{len(records):,} points", header, tuple(rows), NOTE if rows else "nothing was measured")


def _efficiency(each: Record) -> tuple[str, str]:
    point = efficiency(each)
    return ("-", "-") if point is None else (_number(point[0]), _number(point[1]))


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
