"""Step time over batch and context, with the floors dashed beside it. It draws the frame of a cost sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.plots.style import BLUE, FAINT, GREEN, ORANGE, SOFT, VERMILION, new_figure, our_style, plain_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

COLOURS = (BLUE, GREEN, ORANGE, VERMILION)
HEIGHT = 3.6


def costs_figure(frame: DataFrame, title: str = "") -> Figure:
    """Decode steps on the left, prompt chunks on the right; steps that do not fit the KV pool are left out."""
    with our_style():
        figure = new_figure(HEIGHT)
        left, right = figure.subplots(1, 2)
        plot_costs(left, frame[frame["kind"] == "decode"], "sequences", "context")
        plot_costs(right, frame[frame["kind"] == "prefill"], "tokens", "prior")
        left.set(title="A decode step", xlabel="sequences", ylabel="milliseconds")
        right.set(title="A prompt chunk", xlabel="new tokens")
        figure.suptitle(title, fontsize=9, color=SOFT)
    return figure


def plot_costs(axes: Axes, frame: DataFrame, size: str, by: str) -> Axes:
    """A line for each value of ``by`` over ``size``, and its floor dashed."""
    from matplotlib.ticker import LogLocator

    fitting = frame[frame["fits"]]
    for colour, (value, rows) in zip(COLOURS, fitting.groupby(by), strict=False):
        axes.plot(rows[size], rows["ms"], color=colour, marker="o", markersize=3, label=f"{value:,}")
        axes.plot(rows[size], rows["floor_ms"], color=colour, linestyle="--", linewidth=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
        axis.grid(color=FAINT)
    axes.minorticks_off()
    axes.set_xticks(sorted(set(fitting[size])))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.legend(title=f"{LEGENDS[by]} (dashed: floor)", title_fontsize=8.5)
    return axes


LEGENDS = {"context": "context of each", "prior": "tokens already there"}
