"""One run in two tables and a few lines. The numbers are `Result.summary()`, the words METRICS; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from simulator.balance import Share, shares
from simulator.metrics import METRICS, MS, json_keys
from simulator.result import Result
from simulator.tail import CAUSES, PERCENT, Tail
from simulator.tenancy import Tenant

MOST_ROWS = 12
"""Replicas or tenants in a table."""


def print_summary(console: Console, result: Result, percentiles: Sequence[float], metrics: Sequence[str]) -> None:
    """What was served, and how it felt."""
    summary = result.summary(percentiles, metrics)
    title = f"{summary['policy']} on {summary['trace']}, {summary['load']}: {summary['model_id']} on {_gpus(summary)}"
    console.print(title, style="bold", markup=False)
    console.print(_numbers(summary))
    if full := result.fullness:
        console.print(f"batch over {full.ends[-1]:,.4g} s, up to {shown(max(full.sequences))} sequences", markup=False)
        console.print(f"|{full.drawn()}|", markup=False)
    console.print(_latencies(summary, tuple(percentiles), metrics))
    if tail := result.ttft_tail:
        console.print(_tail(tail))
    if result.cluster is not None:
        console.print(_replicas(shares(result)))
    if result.tenants:
        console.print(_tenants(result.tenants))


def _gpus(summary: dict[str, Any]) -> str:
    size, routed = summary["tensor_parallel_size"], ""
    if summary["router"] is not None:
        count = f"{summary['replicas']:,} replicas" if summary["replicas"] > 1 else "1 replica"
        routed = f"{count} behind {summary['router']}, each on "
    return routed + (f"{size} x {summary['gpu']} (tp{size})" if size > 1 else str(summary["gpu"]))


def _numbers(summary: dict[str, Any]) -> Table:
    """The metrics with one value, in the order of METRICS; unmeasured ones are left out."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for name, metric in METRICS.items():
        if not metric.spread and summary.get(name) is not None:
            unit = "" if metric.unit == "share" else metric.unit
            table.add_row(metric.label, shown(summary[name], metric.unit), unit)
    table.add_row("slots", shown(summary["slots"]), str(summary["slots_counted"]))
    return table


def _latencies(summary: dict[str, Any], percentiles: tuple[float, ...], metrics: Sequence[str]) -> Table:
    """The metrics with many values, in milliseconds."""
    table = Table("milliseconds", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("mean", "median", "std", *(f"p{percent:g}" for percent in percentiles)):
        table.add_column(column, justify="right", no_wrap=True)
    for name in metrics:
        keys = json_keys(name, percentiles)
        table.add_row(METRICS[name].label, *(shown(summary[key]) for key in keys))
    return table


def _tail(tail: Tail) -> Table:
    """What held up the slowest first tokens; causes that held up nobody are left out."""
    title = f"slowest first tokens: {tail.requests:,}, from {shown(tail.from_ns / MS)} ms on (p{PERCENT})"
    table = Table(title, box=SIMPLE_HEAD, pad_edge=False)
    for column in ("share of their TTFT", "longest part of"):
        table.add_column(column, justify="right", no_wrap=True)
    for cause, words in CAUSES.items():
        if tail.shares[cause]:
            table.add_row(words, shown(tail.shares[cause], "share"), shown(tail.counts[cause]))
    return table


def _replicas(found: Sequence[Share]) -> Table:
    """What each replica did; of many the busiest and the idlest ones."""
    table = Table("replica", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("requests", "output tokens", "busy", "KV use", "preemptions", "from s", "to s"):
        table.add_column(column, justify="right", no_wrap=True)
    ranked = sorted(found, key=lambda each: -(each.busy or 0))
    ends = found if len(found) <= MOST_ROWS else [*ranked[:MOST_ROWS // 2], None, *ranked[-MOST_ROWS // 2:]]
    for each in ends:
        table.add_row(*_replica(each) if each else (f"{len(found) - MOST_ROWS:,} between",))
    return table


def _replica(each: Share) -> tuple[str, ...]:
    return (str(each.replica), f"{each.requests:,}", f"{each.output_tokens:,}", shown(each.busy, "share"),
            shown(each.kv_usage_mean, "share"), f"{each.preemptions:,}", f"{each.ready_s:,.1f}",
            f"{each.stopped_s:,.1f}")


def _tenants(found: Sequence[Tenant]) -> Table:
    """How each tenant was served; of many the ones with most requests."""
    table = Table("tenant", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("requests", "finished", "p50 TTFT ms", "p99 TTFT ms", "well served", "goodput/s", "slowdown"):
        table.add_column(column, justify="right", no_wrap=True)
    for each in sorted(found, key=lambda each: -each.requests)[:MOST_ROWS]:
        table.add_row(each.tenant, f"{each.requests:,}", f"{each.completed:,}", shown(each.median_ttft_ms),
                      shown(each.p99_ttft_ms), shown(each.attainment, "share"), shown(each.request_goodput),
                      shown(each.slowdown))
    if len(found) > MOST_ROWS:
        table.add_row(f"{len(found) - MOST_ROWS:,} more, in --json")
    return table


def shown(value: Any, unit: str = "") -> str:
    """A number as a reader wants it; "-" where nothing was measured."""
    if value is None:
        return "-"
    if unit == "share":
        return f"{value:.1%}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
