"""Ladder: where a ratio comes from, one bar a switch on an axis of logarithms, so that equal factors are equally long.

It draws the frame of an attribution and knows no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.errors import InputError
from simulator.plots.style import (
    BLUE,
    FAINT,
    GREEN,
    NAVY,
    ORANGE,
    PALE_SKY,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
    new_axes,
    new_figure,
    our_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

COLOURS = {"granularity": BLUE, "cap": PALE_SKY, "reservation": SKY, "memory": GREEN, "padding": ORANGE,
           "forming": NAVY, "prefill": VERMILION, "prefix": PURPLE, "engine": SOFT}
"""Of a switch, the same in every panel; what is no switch is hatched."""
ARTEFACT: dict[str, Any] = {"facecolor": "#f1f1f1", "edgecolor": "#a8a8a8", "hatch": "//////"}
ROW = 0.27
"""Inches of a bar and the space around it."""
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


def ladder_figure(frame: DataFrame, title: str = "", axis: str = "") -> Figure:
    """One panel an order, one above the other, on one axis.

    Args:
        frame: As the `frame` of an attribution makes it.
        title: Above all.
        axis: What the axis counts.
    """
    if not len(frame):
        raise InputError("nothing to draw: some run serves nothing, so that its factor has no value")
    orders = list(dict.fromkeys(frame["order"]))
    rows = [int((frame["order"] == order).sum()) for order in orders]
    with our_style():
        figure = new_figure(ROW * sum(rows) + 0.45 * len(orders) + 0.75)
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
        panels = figure.subplots(len(orders), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        for ax, order in zip(panels, orders, strict=True):
            plot_ladder(frame[frame["order"] == order], ax)
            ax.set_title(f"{order[:1].upper()}{order[1:]}", loc="left", fontweight="bold")
            ax.set_xlabel(axis)
            ax.label_outer()
        _reach(panels[0], frame)
    return figure


def plot_ladder(frame: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the bars of one order, the first at the top; a switch that loses goes to the left.

    Args:
        frame: Rows of one order.
        ax: Where to draw; None: on a new figure.
    """
    with our_style():
        ax = new_axes(ROW * len(frame) + 0.9) if ax is None else ax
        ax.set_xscale("log")
        for at, row in enumerate(frame.itertuples()):
            _draw(ax, at, row, at + 1 < len(frame))
        _dress(ax, list(frame["words"]))
        _reach(ax, frame)
    return ax


def _draw(ax: Axes, at: int, row: Any, goes_on: bool) -> None:
    """One bar, the line down to the next, and the factor at its right."""
    start, end = row.start, row.end
    look = {"facecolor": COLOURS[row.key]} if row.key in COLOURS else ARTEFACT
    ax.barh(at, abs(end - start), left=min(start, end), height=0.62, linewidth=0.6, **look)
    if abs(end / start - 1) < 0.02:    # too short to be seen
        ax.plot([end, end], [at - 0.31, at + 0.31], color=look["facecolor"], linewidth=2)
    if goes_on:
        ax.plot([end, end], [at + 0.31, at + 0.69], color=SOFT, linewidth=0.7)
    ax.annotate(f"{row.factor:.2f}x", (max(start, end), at), (4, 0), textcoords="offset points",
                va="center", fontsize=8.5)
    ax.annotate(f"{row.factor_in_steps:.2f}x in steps", (1, at), (0, 0), xycoords=("axes fraction", "data"),
                textcoords="offset points", va="center", ha="right", fontsize=8, color=SOFT)


def _dress(ax: Axes, words: list[str]) -> None:
    ax.set_ylim(len(words) - 0.4, -0.6)
    ax.set_yticks(range(len(words)), words)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    ax.axvline(1, color=SOFT, linewidth=0.7)
    ax.grid(axis="x", color=FAINT)


def _reach(ax: Axes, frame: DataFrame) -> None:
    """Let the axis reach over all bars, and leave room for the numbers at their right."""
    low, high = frame[["start", "end"]].min().min(), frame[["start", "end"]].max().max()
    ax.set_xlim(low / 1.04, high * (high / low) ** 0.3 * 1.1)
    ax.set_xticks([tick for tick in TICKS if low / 1.04 <= tick <= high])
    ax.minorticks_off()
