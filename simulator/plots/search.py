"""A search in one picture: two parameters of each point, coloured by what came out. It knows no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.errors import InputError
from simulator.plots.style import FAINT, INK, VERMILION, new_figure, our_style, plain_numbers
from simulator.plots.sweep import colours_of, figure_of, norm_of, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

WIDE = 16
"""An axis counts by factors if its ends are so many times apart."""


def search_figure(frame: DataFrame, title: str = "", *, less: bool = False) -> Figure:
    """A dot for each point, the best one in a ring.

    Args:
        frame: A row a point: its two parameters, then the number that came out, under their names.
        title: Above all: what that number is.
        less: Whether a lower one is better.
    """
    if frame.empty:
        raise InputError("nothing to draw: no point has a value of this metric")
    with our_style():
        figure = new_figure(4.2)
        plot_search(frame, figure.add_subplot(), less=less)
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_search(frame: DataFrame, axes: Axes, *, less: bool = False) -> Axes:
    """The dots, the better ones above the others, and their scale."""
    x, y, value = frame.columns
    ordered = frame.sort_values(value, ascending=not less, kind="stable")
    dots = axes.scatter(ordered[x], ordered[y], c=ordered[value], cmap=colours_of(), norm=norm_of(ordered[value]),
                        s=46, edgecolor=INK, linewidth=0.5)
    best = ordered[ordered[value] == ordered[value].iloc[-1]]
    alike = f", at {len(best):,} points" if len(best) > 1 else ""
    axes.scatter(best[x], best[y], s=130, facecolor="none", edgecolor=VERMILION, linewidth=1.6,
                 label=f"the best: {figure_of(best[value].iloc[0])}{alike}")
    axes.set(xlabel=str(x), ylabel=str(y))
    if _is_wide(frame[x]):
        axes.set_xscale("log", base=2)
    if _is_wide(frame[y]):
        axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    axes.grid(color=FAINT)
    scale(axes, dots)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return axes


def _is_wide(values: Series) -> bool:
    return bool(values.min() > 0 and values.max() >= WIDE * values.min())
