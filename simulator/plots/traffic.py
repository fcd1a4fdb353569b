"""A trace at a glance: arrivals over time, lengths, and what request-level batches would waste. Knows no policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.counting import counted
from simulator.plots.style import BLUE, GREEN, SOFT, VERMILION, new_figure, our_style, plain_numbers
from traces import Trace
from traces.profile import arrivals_over_time, slot_utilization

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WINDOWS = 200
BINS = 60


def traffic_figure(trace: Trace) -> Figure:
    """Arrivals over time, prompt and output lengths, and the slot-utilisation curve of a trace with rows."""
    with our_style():
        figure = new_figure(6.4)
        arrivals, lengths, slots = figure.subplots(3)
        _draw_arrivals(trace, arrivals)
        _draw_lengths(trace, lengths)
        _draw_slots(trace, slots)
    return figure


def _draw_arrivals(trace: Trace, ax: Axes) -> None:
    window, counts = arrivals_over_time(trace, WINDOWS)
    edges = np.arange(len(counts) + 1) * window
    ax.stairs(np.array(counts) / window, edges, baseline=0, color=BLUE, fill=True, alpha=0.8)
    ax.set(xlabel="time since the first request (s)", ylabel="requests/s", ylim=(0, None), xlim=(0, edges[-1]))
    _title(ax, "Arrivals", f"{counted(len(trace), 'request')}; means over {window:,.3g} s")


def _draw_lengths(trace: Trace, ax: Axes) -> None:
    longest = max(int(trace.prompt.max()), int(trace.output.max()))
    edges = np.unique(np.rint(np.geomspace(1, longest + 1, BINS + 1)))
    for name, tokens, colour in (("prompt", trace.prompt, BLUE), ("output", trace.output, VERMILION)):
        counts = np.histogram(tokens, edges)[0] / len(trace)
        ax.stairs(counts, edges, baseline=0, color=colour, fill=True, alpha=0.5,
                  label=f"{name}, median {np.median(tokens):,.0f}")
    ax.set(xscale="log", xlabel="tokens", ylabel="share of requests", ylim=(0, None))
    ax.legend(loc="upper left")
    _title(ax, "Lengths", "bins of equal width on a logarithmic scale")


def _draw_slots(trace: Trace, ax: Axes) -> None:
    shares = slot_utilization(trace)
    ax.plot(list(shares), list(shares.values()), color=GREEN, marker="o", markersize=4)
    ax.set(xlabel="batch size", ylabel="slots in use", ylim=(0, 1.05), xscale="log")
    ax.set_xticks(list(shares), [str(batch) for batch in shares], minor=False)
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
    _title(ax, "Slot utilisation of request-level batches", "in the order of arrival, each until its longest answer")


def _title(ax: Axes, name: str, meaning: str) -> None:
    ax.set_title(name, loc="left", fontweight="bold")
    ax.set_title(meaning, loc="right", color=SOFT, fontsize=8.5)
    ax.grid(axis="y")
    if ax.get_xscale() != "log" or name == "Lengths":
        plain_numbers(ax.xaxis)
