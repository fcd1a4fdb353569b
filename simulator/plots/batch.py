"""Batch over time: effective batch, queue and KV use, one line a policy. Draws frames of `curves`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from simulator.plots.curves import BINS, batch_frame, mean
from simulator.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    SOFT,
    VERMILION,
    new_axes,
    new_figure,
    our_style,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from simulator.result import Result

SHARES = ("kv_share",)
FEWEST_BINS = 20
LONG = 62
"""Characters of a legend's entry that leave room for a second one beside it."""
COLOURS = (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)
"""Of the policies, in their order; after the last it begins again, with dashes."""
LABELS = {"useful": "rows a step", "running": "requests", "waiting": "requests", "kv_share": "share of the pool"}
TITLES = {
    "useful": ("Effective batch", "line: rows that compute a new token; tint above it: slots held without doing so"),
    "running": ("Requests in a slot", ""),
    "waiting": ("Queue", "requests that have arrived and are in no slot"),
    "kv_share": ("KV memory", "share of the pool that requests hold or have reserved"),
}


def plot_batch(frame: DataFrame, ax: Axes | None = None, *, column: str = "useful", label: str | None = None,
               turn: int = 0) -> Axes:
    """Draw one column of a frame of `batch_frame` against time.

    Args:
        frame: As `batch_frame` makes it.
        ax: Where to draw; None: on a new figure.
        column: "useful" (with a tint up to "running"), "running", "waiting" or "kv_share".
        label: Name of the line in a legend.
        turn: Place among the policies; picks the colour.
    """
    colour, dash = COLOURS[turn % len(COLOURS)], ("-", "--")[turn // len(COLOURS) % 2]
    with our_style():
        ax = new_axes(2.6) if ax is None else ax
        if len(frame):
            edges = np.append(frame["start_s"], frame["end_s"].iloc[-1:])
            if column == "useful":
                tint = ax.stairs(frame["running"], edges, baseline=frame["useful"], fill=True, color=colour,
                                 alpha=0.16, linewidth=0)
                tint.sticky_edges.y.clear()
            ax.stairs(frame[column], edges, baseline=0, color=colour, linestyle=dash, label=label)
        else:
            ax.plot([], [], color=colour, linestyle=dash, label=label)
        _dress(ax, column)
    return ax


def batch_figure(results: Mapping[str, Result]) -> Figure:
    """Effective batch, queue and, where the pool is bounded, KV use of all runs, on one time axis."""
    frames = _frames(results)
    columns = ["useful", "waiting"]
    if any(frame["kv_share"].notna().any() for frame in frames.values()):
        columns.append("kv_share")
    sentences = {label: _sentence(label, frame) for label, frame in frames.items()}
    beside = 2 if max(map(len, sentences.values()), default=0) <= LONG else 1
    with our_style():
        figure = new_figure(0.75 + 1.7 * len(columns) + 0.18 * -(-len(sentences) // beside))
        panels = figure.subplots(len(columns), sharex=True)
        for column, ax in zip(columns, panels, strict=True):
            for turn, (label, frame) in enumerate(frames.items()):
                plot_batch(frame, ax, column=column, label=sentences[label], turn=turn)
            add_title(ax, *TITLES[column])
            ax.label_outer()
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=beside)
    return figure


def _frames(results: Mapping[str, Result]) -> dict[str, DataFrame]:
    """The frames, with bins about as wide for a short run as for the longest: all lines are equally smooth."""
    ends = {label: int(result.record.ends.max(initial=0)) for label, result in results.items()}
    longest = max(ends.values(), default=0) or 1
    return {label: batch_frame(result, max(FEWEST_BINS, BINS * ends[label] // longest))
            for label, result in results.items()}


def _dress(ax: Axes, column: str) -> None:
    ax.set(xlabel="time since the start (s)", ylabel=LABELS[column])
    ax.update_datalim([(0, 0), (0, 1e-3 if column in SHARES else 1)])    # an empty queue has an axis, too
    ax.margins(x=0, y=0.08)
    ax.grid(axis="y")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)
    if column in SHARES:
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")


def add_title(ax: Axes, name: str, meaning: str) -> None:
    """The name of a panel at its left, what is drawn at its right."""
    ax.set_title(name, loc="left", fontweight="bold")
    ax.set_title(meaning, loc="right", color=SOFT, fontsize=8.5)


def _sentence(label: str, frame: DataFrame) -> str:
    """The policy, its mean effective batch and when it was done."""
    if not len(frame):
        return f"{label}: nothing ran"
    end = frame["end_s"].iloc[-1]
    duration = f"{end:,.0f}" if end >= 100 else f"{end:.3g}"
    return f"{label}: effective batch {mean(frame, 'useful'):.1f} on average, done after {duration} s"
