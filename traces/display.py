"""How a trace shows itself in a notebook: one line, its arrivals over time, and its lengths."""

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
    window, counts = arrivals_over_time(trace, WINDOWS)
    rates = [count / window for count in counts]
    sketch = steps(rates, f"requests/s over {trace.span_s:,.4g} s; at most {max(rates):,.4g} in {window:,.4g} s")
    source = f"<p>{escape(trace.source)}</p>" if trace.source else ""
    return f"{title}{sketch}{_lengths(trace)}{source}"


def _lengths(trace: "Trace") -> str:
    head = "".join(f"<th>{name}</th>" for name in ("tokens", *(f"p{share}" for share in SHARES), "mean"))
    rows = [f"<tr><th>{name}</th>" + "".join(f"<td>{value:,.0f}</td>" for value in (
        *np.percentile(tokens, SHARES), tokens.mean())) + "</tr>"
        for name, tokens in (("prompt", trace.prompt), ("output", trace.output))]
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
