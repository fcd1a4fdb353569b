"""How a trace shows itself in a notebook and in print: one line, its arrivals over time, and its lengths."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from traces.profile import arrivals_over_time
from traces.sketch import steps

if TYPE_CHECKING:
    from traces.trace import Trace

WINDOWS = 120
SHARES = (1, 50, 99)
"""Percentiles of the lengths."""


def show(trace: "Trace") -> str:
    """HTML with a sketch as inline SVG."""
    title = f"<p><b>{escape(repr(trace)[1:-1])}</b></p>"
    if not len(trace):
        return title
    rates, told = _arrivals(trace)
    said = "".join(f"<p>{escape(line)}</p>" for line in _said(trace))
    return f"{title}{steps(rates, told)}{_grid(_lengths(trace))}{said}"


def text(trace: "Trace") -> str:
    """The same words without the sketch."""
    if not len(trace):
        return repr(trace)
    rows = _lengths(trace)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    return "\n".join([repr(trace), _arrivals(trace)[1], "", *lines, *(["", *said] if (said := _said(trace)) else [])])


def _said(trace: "Trace") -> list[str]:
    """Where it is from, and what else a user of it must know."""
    return [*([trace.source] if trace.source else []), *(f"note: {note}" for note in trace.report.notes)]


def _arrivals(trace: "Trace") -> tuple[list[float], str]:
    """Requests a second in each window, and what they are in words."""
    window, counts = arrivals_over_time(trace, WINDOWS)
    rates = [count / window for count in counts]
    return rates, f"requests/s over {trace.span_s:,.4g} s; at most {max(rates):,.4g} in {window:,.4g} s"


def _lengths(trace: "Trace") -> list[tuple[str, ...]]:
    """A header, and a row each for prompts and outputs."""
    columns = (("prompt", trace.prompt), ("output", trace.output))
    return [("tokens", *(f"p{share}" for share in SHARES), "mean"),
            *((name, *(f"{value:,.0f}" for value in (*np.percentile(tokens, SHARES), tokens.mean())))
              for name, tokens in columns)]


def _grid(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    told = "".join(f"<tr><th>{name}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for name, *cells in body)
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{told}</table>"
