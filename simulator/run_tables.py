"""Tables of runs, from their JSON alone: what was served, how it felt, what held it up. They know no run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simulator.metrics import METRICS
from simulator.tables import Table
from simulator.tail import CAUSES

Record = Mapping[str, Any]
MOST_ROWS = 12
"""Replicas or tenants in a table."""
ALONE_SCALES = ("slowdown: alone, a tenant has a fleet that scales to its own load, so that the others may speed it up "
                "(below 1) by what is started for them.")
LAST_TRY = "Of the last try of each request; objectives are held against the time since its first."
NEVER_READY = "Without a number: ordered and paid for, but never ready."


def tables(runs: Mapping[str, Record]) -> list[Table]:
    """All tables of some runs, each given as the JSON that its Result writes, by the name to show."""
    several = len(runs) > 1
    each = [table for label, run in runs.items() for table in _tables_of(run, f" of {label}" if several else "")]
    return [numbers(runs), *each]


def numbers(runs: Mapping[str, Record]) -> Table:
    """The metrics with one value, in the order of METRICS; what no run measured is left out."""
    rows = [(metric.label, *(shown(run.get(name), metric.unit) for run in runs.values()),
             "" if metric.unit == "share" else metric.unit) for name, metric in METRICS.items()
            if not metric.spread and any(run.get(name) is not None for run in runs.values())]
    good = [("requests well served", *(shown(_met(run), "share") for run in runs.values()), "")] if any(
        _met(run) is not None for run in runs.values()) else []
    slots = ("slots", *(shown(run.get("slots")) for run in runs.values()), "slots")
    note = "; ".join(dict.fromkeys(str(run["slots_counted"]) for run in runs.values() if run.get("slots_counted")))
    return Table("What was served", ("", *runs, "unit"), (*rows, *good, slots), note, ("unit",))


def _met(run: Record) -> float | None:
    """The share of the requests that could be served which meet every objective; None without one."""
    good, asked = run.get("request_goodput"), run.get("num_prompts", 0) - run.get("rejected", 0)
    return None if good is None or not asked else good * run["duration"] / asked


def _tables_of(run: Record, of: str) -> Iterator[Table]:
    yield latencies(run, of)
    if run.get("ttft_tail"):
        yield _tail(run["ttft_tail"], of)
    if run.get("replica_stats"):
        yield _replicas(run["replica_stats"], of)
    if run.get("tenant_stats"):
        yield _tenants(run["tenant_stats"], of, "" if run.get("autoscale") is None else ALONE_SCALES)


def latencies(run: Record, of: str = "") -> Table:
    """The metrics with many values, those that were asked for."""
    names = [name for name, metric in METRICS.items() if metric.spread and f"mean_{name}_ms" in run]
    columns = ["mean", "median", "std", *_percentiles(run)]
    rows = [(METRICS[name].label, *(shown(run.get(f"{column}_{name}_ms")) for column in columns)) for name in names]
    return Table(f"Latencies{of}, in ms", ("", *columns), tuple(rows), LAST_TRY if run.get("retried") else "")


def _percentiles(run: Record) -> list[str]:
    """Those of its latencies, such as p99, in their order; p50 is the median, which stands there anyway."""
    found = (re.match(r"p\d+(?:\.\d+)?(?=_)", name) for name in run)
    return [each for each in dict.fromkeys(match[0] for match in found if match) if each != "p50"]


def _tail(tail: Record, of: str) -> Table:
    """What held up the slowest first tokens; causes that held up nobody are left out."""
    rows = [(words, shown(tail["causes"][cause]["share"], "share"), shown(tail["causes"][cause]["requests"]))
            for cause, words in CAUSES.items() if tail["causes"][cause]["share"]]
    title = (f"The slowest first tokens{of}: {tail['requests']:,}, from {shown(tail['from_ms'])} ms on "
             f"(p{tail['percentile']})")
    return Table(title, ("", "share of their TTFT", "longest part of"), tuple(rows))


def _replicas(found: Sequence[Record], of: str) -> Table:
    """What each replica did; of many the busiest and the idlest ones."""
    ranked = sorted(found, key=lambda each: -(each["busy"] or 0))
    half = MOST_ROWS // 2
    ends = [*found] if len(found) <= MOST_ROWS else [*ranked[:half], *ranked[-half:]]
    notes = [] if len(ends) == len(found) else [f"The busiest and the idlest; {len(found) - len(ends):,} between."]
    notes += [NEVER_READY] if any(each["replica"] is None for each in ends) else []
    rows = tuple((shown(each["replica"]), shown(each["requests"]), shown(each["output_tokens"]),
                  shown(each["busy"], "share"), shown(each["kv_usage_mean"], "share"), shown(each["preemptions"]),
                  *(_tenths(each[name]) for name in ("ordered_s", "ready_s", "stopped_s"))) for each in ends)
    header = ("replica", "requests", "output tokens", "busy", "KV use", "preemptions", "paid from s", "ready at s",
              "to s")
    return Table(f"Replicas{of}", header, rows, " ".join(notes))


def _tenths(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:,.1f}"


def _tenants(found: Sequence[Record], of: str, of_slowdowns: str) -> Table:
    """How each tenant was served; of many the ones with most requests. A note stands beside slowdowns, if any."""
    largest = sorted(found, key=lambda each: -each["requests"])[:MOST_ROWS]
    turned = ("rejected",) if any(each.get("rejected") for each in largest) else ()
    rows = tuple((str(each["tenant"]), shown(each["requests"]), *(shown(each[name]) for name in turned),
                  shown(each["completed"]),
                  shown(each["median_ttft_ms"]), shown(each["p99_ttft_ms"]), shown(each["attainment"], "share"),
                  shown(each["request_goodput"]), shown(each["slowdown"])) for each in largest)
    notes = [] if len(largest) == len(found) else [f"{len(found) - len(largest):,} more, in the JSON."]
    notes += [of_slowdowns] if of_slowdowns and any(each["slowdown"] is not None for each in largest) else []
    return Table(f"Tenants{of}", ("tenant", "requests", *turned, "finished", "p50 TTFT ms", "p99 TTFT ms",
                                  "well served", "goodput/s", "slowdown"), rows, " ".join(notes))


def shown(value: Any, unit: str = "") -> str:
    """A number as a reader wants it; "-" where nothing was measured."""
    if value is None:
        return "-"
    if unit == "share":
        return f"{value:.1%}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
