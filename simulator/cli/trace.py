"""`batchsim trace describe`: what is in a trace. In a notebook: `traces.load(name).describe()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from typer import Argument

from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.options import Common, Reading
from traces import ReadReport

SHOWN_REJECTS = 5


@with_flags
def describe(name: Annotated[str, Argument(metavar="NAME|FILE", autocompletion=complete.traces,
                                           help="A bundled trace or a file.")],
             reading: Reading, common: Common) -> None:
    """Rows, rejects, span, rate, burstiness and lengths of a trace."""
    trace = reading.load(name, common)
    facts = trace.describe()
    if common.json:
        print_json(facts)
        return
    console = answers()
    console.print(_facts(facts))
    console.print(_lengths(facts))
    for line in _rejects(trace.report):
        console.print(line, markup=False)


def _facts(facts: Mapping[str, Any]) -> Table:
    """One line a fact; what is not known is left out."""
    table = Table(title=str(facts["name"]), title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for fact, value in facts.items():
        if fact != "name" and value is not None and not isinstance(value, Mapping):
            table.add_row(fact.replace("_", " "), _said(fact, value))
    return table


def _said(fact: str, value: object) -> str:
    if fact == "span_s":
        return f"{value:,.3f}"
    if fact == "rate":
        return f"{value:,.4g} requests/s"
    if fact == "burstiness":
        return f"{value:.3g} (coefficient of variation of the gaps; Poisson: 1)"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _lengths(facts: Mapping[str, Any]) -> Table:
    """Tokens: a row for each kind of length."""
    rows = {name: value for name, value in facts.items() if isinstance(value, Mapping)}
    table = Table("tokens", box=SIMPLE_HEAD, pad_edge=False)
    for column in next(iter(rows.values()), {}):
        table.add_column(column, justify="right", no_wrap=True)
    for name, lengths in rows.items():
        table.add_row(name.replace("_", " "), *(f"{value:,.0f}" for value in lengths.values()))
    return table


def _rejects(report: ReadReport) -> list[str]:
    """The first rows that were left out, and how many more there are."""
    shown = [f"left out: {reject}" for reject in report.rejected[:SHOWN_REJECTS]]
    more = len(report.rejected) - len(shown)
    return [*shown, f"... and {more:,} more"] if more else shown
