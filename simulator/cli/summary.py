"""One run in two tables and a few lines. The numbers are `Result.summary()`, the words METRICS; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from simulator.metrics import METRICS, MS, json_keys
from simulator.result import Result
from simulator.tail import CAUSES, PERCENT, Tail


def print_summary(console: Console, result: Result, percentiles: Sequence[float], metrics: Sequence[str]) -> None:
    """What was served, and how it felt."""
    summary = result.summary(percentiles, metrics)
    title = f"{summary['policy']} on {summary['trace']}, {summary['load']}: {summary['model_id']} on {_gpus(summary)}"
    console.print(title, style="bold", markup=False)
    console.print(_numbers(summary))
    console.print(_latencies(summary, tuple(percentiles), metrics))
    if tail := result.ttft_tail:
        console.print(_tail(tail))


def _gpus(summary: dict[str, Any]) -> str:
    size = summary["tensor_parallel_size"]
    return f"{size} x {summary['gpu']} (tp{size})" if size > 1 else str(summary["gpu"])


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


def shown(value: Any, unit: str = "") -> str:
    """A number as a reader wants it; "-" where nothing was measured."""
    if value is None:
        return "-"
    if unit == "share":
        return f"{value:.1%}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
