"""`batchsim trace describe`: what is in a trace, in numbers or as a figure. In a notebook: `trace.describe()` of a
trace from `traces.load`, and `simulator.plots.traffic_figure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from typer import Argument, Option

from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.drawing import check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, Common, Reading
from simulator.cli.output import free_path
from simulator.errors import InputError
from simulator.plots.style import METADATA
from traces import ReadReport

SHOWN_REJECTS = 5
BAR = 40
LENGTHS = ("prompt", "output", "max_tokens")
SHOWN_APART = ("name", *LENGTHS, "arrivals", "slot_utilization", "notes")
ZERO_MATTERS = ("rows", "rejects", "span_s")
SAID = {
    "clock": "{} (as --window counts)",
    "span_s": "{:,.3f}",
    "rate": "{:,.4g} requests/s",
    "gap_cv": "{:.3g} (coefficient of variation of the gaps; Poisson: 1, bursts: more)",
    "failed": "{:,} (no output tokens or an error; left out)",
    "outside": "{:,} (not in the window)",
    "think_s_median": "{:,.3g}",
    "reused_share": "{:.1%} of the prompt tokens, with a cache without bounds",
}


@with_flags
def describe(name: Annotated[str, Argument(metavar="NAME|FILE", autocompletion=complete.traces,
                                           help="A bundled trace or a file.")],
             reading: Reading, common: Common,
             output: Annotated[str | None, Option("--output", "-o", metavar="FILE", rich_help_panel=FILES, help=(
                 "Also draw it: arrivals, lengths and slot utilisation, as .svg or .png."))] = None,
             force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES,
                                           help="Replace any file.")] = False) -> None:
    """Rows, rejects, span, rate, variation of the gaps, lengths, arrivals over time and slot utilisation of a trace."""
    if output is not None:
        _check_figure(Path(output), force=force)
        check_drawing()
    trace = reading.load(name, common)
    facts = trace.describe()
    if output is not None:
        _draw(trace, Path(output))
    if common.json:
        print_json(facts)
    else:
        _print(facts, trace.report)


def _check_figure(path: Path, *, force: bool) -> None:
    if path.suffix.lower().lstrip(".") not in METADATA:
        raise InputError(f"{path.name}: a figure is written as .svg or .png, not as {path.suffix or 'no suffix'!r}")
    free_path("--output", str(path), force=force)


def _draw(trace: Any, path: Path) -> None:
    from simulator.plots import save_figure, traffic_figure

    save_figure(traffic_figure(trace), path)
    note(f"written: {path}")


def _print(facts: Mapping[str, Any], report: ReadReport) -> None:
    console = answers()
    console.print(_facts(facts))
    console.print(_lengths(facts))
    console.print(_arrivals(facts["arrivals"]))
    console.print(_slots(facts["slot_utilization"]))
    for line in [f"note: {each}" for each in facts["notes"]] + _rejects(report):
        console.print(line, markup=False)


def _facts(facts: Mapping[str, Any]) -> Table:
    """One line a fact; what is not known and counts of nothing are left out."""
    table = Table(title=str(facts["name"]), title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for fact, value in facts.items():
        if fact in SHOWN_APART or value is None or (value == 0 and fact not in ZERO_MATTERS):
            continue
        table.add_row(fact.replace("_", " "), _said(fact, value))
    if facts["reused_share"] is None:
        table.add_row("prefixes", "none told: nothing is shared between requests")
    return table


def _said(fact: str, value: object) -> str:
    if fact in SAID:
        return SAID[fact].format(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _lengths(facts: Mapping[str, Any]) -> Table:
    """Tokens: a row for each kind of length."""
    rows = {name: facts[name] for name in LENGTHS if facts[name] is not None}
    table = Table("tokens", box=SIMPLE_HEAD, pad_edge=False)
    for column in next(iter(rows.values()), {}):
        table.add_column(column, justify="right", no_wrap=True)
    for name, lengths in rows.items():
        table.add_row(name.replace("_", " "), *(f"{value:,.0f}" for value in lengths.values()))
    return table


def _arrivals(found: Mapping[str, Any]) -> Table:
    """Requests in each window of time, with a bar."""
    window, counts = found["window_s"], found["counts"]
    table = Table("arrivals from", "requests", "", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[1].justify = "right"
    most = max(counts, default=0) or 1
    for at, requests in enumerate(counts):
        start = str(timedelta(seconds=at * window)) if window >= 1 else f"{at * window:.3g} s"
        table.add_row(start, f"{requests:,}", "━" * round(BAR * requests / most))
    return table


def _slots(shares: Mapping[str, float]) -> Table:
    """Slot utilisation of request-level batches, by their size."""
    table = Table("batch size", *shares, box=SIMPLE_HEAD, pad_edge=False)
    table.add_row("slots in use, request-level", *(f"{share:.1%}" for share in shares.values()))
    return table


def _rejects(report: ReadReport) -> list[str]:
    """The first rows that were left out, and how many more there are."""
    shown = [f"left out: {reject}" for reject in report.rejected[:SHOWN_REJECTS]]
    more = len(report.rejected) - len(shown)
    return [*shown, f"... and {more:,} more"] if more else shown
