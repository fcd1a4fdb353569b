"""Saved runs side by side: latencies, batches over time, what stopped the queues. Draws their JSON, knows no run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulator.metrics import METRICS
from simulator.plots.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
    new_figure,
    our_style,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LATENCIES = ("ttft", "tpot", "itl", "e2el", "queue_time")
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
"""Of the runs, in their order; after the last it begins again."""
STOPPED = {"no_queue_share": "#e9e9e9", "stopped_by_step_share": "#f2d3e4", "stopped_by_cap_share": "#e5a5c9",
           "stopped_by_budget_share": PURPLE, "stopped_by_memory_share": "#8f4a74", "stopped_by_batch_share": "#a9a4c4",
           "stopped_by_queue_limit_share": VERMILION}
"""What stops a queue, in the colours of the ledgers."""
ROW, MARGIN = 0.26, 0.9
"""Inches: a line of a figure, and what stands above and below all of them."""
Runs = Mapping[str, Mapping[str, Any]]


def latencies_figure(runs: Runs) -> Figure:
    """For each latency a line a run, from the median to the 99th percentile, the mean as a dot."""
    names = [name for name in LATENCIES if any(_known(run, name) for run in runs.values())]
    with our_style():
        figure = new_figure(MARGIN + ROW * max(1, len(names)) * len(runs))
        ax = plot_latencies_of(runs, names, figure.add_subplot())
        if len(runs) > 1:
            figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def plot_latencies_of(runs: Runs, names: list[str], ax: Axes) -> Axes:
    """Draw these latencies, the first on top, on an axis of logarithms."""
    step = 0.7 / len(runs)
    for turn, (label, run) in enumerate(runs.items()):
        colour = COLOURS[turn % len(COLOURS)]
        for row, name in enumerate(names):
            if _known(run, name):
                _span(ax, row + (turn - (len(runs) - 1) / 2) * step, _values(run, name), colour)
        ax.plot([], [], color=colour, linewidth=4, label=label)
    told = "ms: median to p99, the mean as a dot"
    ax.set(xlabel="; ".join([told, *_at_zero(runs)]), xscale="log", ylim=(len(names) - 0.4, -0.6))
    plain_numbers(ax.xaxis)
    ax.set_yticks(range(len(names)), [METRICS[name].label for name in names])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * (high / low) ** 0.18)    # room for the numbers
    return ax


def _known(run: Mapping[str, Any], name: str) -> bool:
    """Whether all three values are there, and above 0 for an axis of logarithms."""
    return all(run.get(key) for key in _keys(name))


def _at_zero(runs: Runs) -> list[str]:
    """That some latencies cannot be shown on such an axis, if so."""
    names = [METRICS[name].label for name in LATENCIES
             if any(run.get(f"median_{name}_ms") == 0 for run in runs.values())]
    return [f"{' and '.join(names)}: not shown where the median is 0"] if names else []


def _keys(name: str) -> tuple[str, str, str]:
    return f"median_{name}_ms", f"mean_{name}_ms", f"p99_{name}_ms"


def _values(run: Mapping[str, Any], name: str) -> list[float]:
    return [float(run[key]) for key in _keys(name)]


def _span(ax: Axes, at: float, values: list[float], colour: str) -> None:
    median, mean, high = values
    ax.plot([median, high], [at, at], color=colour, linewidth=4, solid_capstyle="butt")
    ax.plot(mean, at, marker="o", color=INK, markersize=4)
    ax.annotate(f"{_short(median)} to {_short(high)}", (max(high, mean), at), (5, 0), textcoords="offset points",
                va="center", fontsize=8, color=SOFT)


def _short(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def queue_figure(runs: Runs) -> Figure:
    """A bar a run: the time in steps, by what keeps the next request out of the batch."""
    with our_style():
        figure = new_figure(MARGIN + 0.3 + 1.6 * ROW * len(runs))
        ax = figure.add_subplot()
        reached = [0.0] * len(runs)
        for name, colour in STOPPED.items():
            parts = [float(run.get(name) or 0) for run in runs.values()]
            if any(parts):
                ax.barh(list(runs), parts, left=reached, height=0.6, color=colour, label=METRICS[name].label)
            reached = [start + part for start, part in zip(reached, parts, strict=True)]
        ax.set(xlim=(0, 1), xlabel="share of the time in steps")
        ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower left", ncols=3)
    return figure


def batches_figure(runs: Runs) -> Figure:
    """Sequences that compute new tokens over time, a line a run that ran any step."""
    with our_style():
        figure = new_figure(2.6)
        ax = figure.add_subplot()
        for turn, (label, run) in enumerate(runs.items()):
            if over_time := run["batch_over_time"]:
                ax.stairs(over_time["sequences"], [0, *over_time["end_s"]], baseline=None, label=label,
                          color=COLOURS[turn % len(COLOURS)], linewidth=1.6)
        ax.set(xlabel="time since the first request (s)", ylabel="sequences", ylim=(0, None))
        ax.margins(x=0)
        ax.grid(axis="y")
        for axis in (ax.xaxis, ax.yaxis):
            plain_numbers(axis)
        if len(runs) > 1:
            figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure
