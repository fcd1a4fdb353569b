"""A plan in two pictures: goodput against rate with its knee, and the backlog over time. Draws frames, knows no run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from simulator.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    SOFT,
    VERMILION,
    new_figure,
    our_style,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

LATENCIES = {"p99_ttft_ms": ("p99 TTFT", BLUE, "ttft"), "p99_tpot_ms": ("p99 TPOT", ORANGE, "tpot")}
MARKS = {"knee": ("knee: the objectives are kept up to here", VERMILION, "-"),
         "asked": ("the traffic asked for", SOFT, "--"),
         "saturation": ("saturation: completions follow up to here", SOFT, ":")}
COLOURS = (VERMILION, BLUE, GREEN)


def goodput_figure(curve: DataFrame, limits: Mapping[str, float], title: str = "") -> Figure:
    """Goodput above, latencies with their limits below, against the rate a replica.

    Args:
        curve: As `Plan.curve` makes it.
        limits: In ms, by ttft and tpot.
        title: Above all.
    """
    with our_style():
        figure = new_figure(5.4)
        above, below = figure.subplots(2, sharex=True, height_ratios=(3, 2))
        plot_goodput(curve, above)
        plot_latencies(curve, limits, below)
        below.set_xlabel("requests/s a replica, offered")
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_goodput(curve: DataFrame, ax: Axes) -> Axes:
    """Requests within all limits, and all that are answered, a replica; the marked rates as upright lines."""
    from numpy import fmax
    rate, replicas = curve["per_replica"], curve["offered"].iloc[-1] / curve["per_replica"].iloc[-1]
    ax.plot(rate, rate, color=SOFT, linewidth=0.8, label="as many as come")
    answered = curve["served"].astype(float) / replicas    # none where a run is too short to tell
    ax.plot(rate, answered, color=GREEN, label="answered")
    good = curve["goodput"] / replicas
    ax.plot(rate, good, color=BLUE, marker="o", markersize=3.5, label="goodput")
    _mark(curve, ax, named=True)
    ax.set(ylabel="requests/s a replica", ylim=(0, 1.15 * float(answered.combine(good, fmax).max())), xlim=(0, None))
    _dress(ax)
    _name(ax)
    return ax


def plot_latencies(curve: DataFrame, limits: Mapping[str, float], ax: Axes) -> Axes:
    """The p99 latencies and their limits, on an axis of logarithms."""
    for column, (label, colour, metric) in LATENCIES.items():
        known = curve[curve[column].notna()]
        ax.plot(known["per_replica"], known[column], color=colour, marker="o", markersize=3, label=label)
        if metric in limits:
            ax.axhline(limits[metric], color=colour, linestyle="--", linewidth=0.9)
    _mark(curve, ax, named=False)
    ax.set(ylabel="ms (dashed: limit)", yscale="log")
    _dress(ax)
    _name(ax)
    return ax


def _mark(curve: DataFrame, ax: Axes, *, named: bool) -> None:
    for name, (label, colour, dash) in MARKS.items():
        for rate in curve["per_replica"][curve["mark"].str.contains(name, regex=False)].tolist():
            ax.axvline(rate, color=colour, linestyle=dash, linewidth=1.1, label=label if named else None)


def _name(ax: Axes) -> None:
    """The names of the lines, above the axes: no line crosses them there."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def _dress(ax: Axes) -> None:
    ax.grid(axis="y")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)


def backlog_figure(backlogs: DataFrame, title: str = "") -> Figure:
    """Requests outstanding over time, a line a number of replicas: it stays, or it grows.

    Args:
        backlogs: Columns label, seconds, outstanding, follows (None: nobody can tell).
        title: Above all.
    """
    with our_style():
        figure = new_figure(3.0)
        ax = figure.add_subplot()
        for colour, (label, one) in zip(COLOURS, backlogs.groupby("label", sort=False), strict=False):
            grows = ": grows" if one["follows"].iloc[0] is False else ""
            ax.plot(one["seconds"], one["outstanding"], color=colour, label=f"{label}{grows}")
        ax.set(xlabel="time since the start (s)", ylabel="requests outstanding", ylim=(0, None))
        ax.margins(x=0)
        _dress(ax)
        _name(ax)
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure
