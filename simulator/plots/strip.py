"""Strip: one request, its slot and those around it against time, a panel a policy. Draws frames of `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulator.plots.style import INK, SOFT, new_axes, new_figure, our_style, plain_numbers
from simulator.plots.timeline import LOOKS, draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

QUEUE: dict[str, Any] = {"color": "#9a9a9a", "linewidth": 2.2, "linestyle": (0, (1.2, 1.2))}
NAMED = 0.022
"""Bars wider than this share of the axis carry the number of their request."""
MARGIN = 1.25
"""The axis ends this much after the last moment of the request that is followed."""
LEGEND = {"queue": "waits in the queue", "prefill": "reads its prompt", "decode": "writes its answer",
          "recompute": "computes again", "stalled": "left out", "held": "finished, but held"}


def plot_strip(frame: DataFrame, ax: Axes | None = None, *, until: float | None = None) -> Axes:
    """Draw the rows of one policy, the first on top.

    Args:
        frame: Columns row, label, start_s, end_s, kind and request.
        ax: Where to draw; None: on a new figure.
        until: Right end of the time axis, seconds; None: the end of the last bar.
    """
    until = until or float(frame["end_s"].max() if len(frame) else 1.0)
    shown = frame[frame["start_s"] < until].assign(end_s=frame["end_s"].clip(upper=until), slot=frame["row"])
    with our_style():
        ax = new_axes(2.0) if ax is None else ax
        for kind, look in LOOKS.items():
            draw_bars(ax, shown[shown["kind"] == kind], look, until)
        _queues(ax, shown[shown["kind"] == "queue"])
        _numbers(ax, shown[shown["kind"] != "queue"], until)
        labels = frame.drop_duplicates("row").set_index("row")["label"]
        ax.set(xlim=(0, until), ylim=(len(labels) + 0.6, 0.4), xlabel="time since the start (s)")
        ax.set_yticks(list(labels.index), list(labels))
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        plain_numbers(ax.xaxis)
    return ax


def strip_figure(frames: Mapping[str, DataFrame], request: int) -> Figure:
    """A panel a policy, on one time axis, up to a little after `request` has left under all of them."""
    own = [frame[(frame["request"] == request) & (frame["label"] == f"request {request}")] for frame in frames.values()]
    until = MARGIN * max((float(frame["end_s"].max()) for frame in own if len(frame)), default=1.0)
    rows = [max(int(frame["row"].max()), 1) for frame in frames.values()]
    with our_style():
        figure = new_figure(0.27 * sum(rows) + 0.45 * len(rows) + 0.95)
        panels = figure.subplots(len(frames), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        for ax, (label, frame) in zip(panels, frames.items(), strict=True):
            plot_strip(frame, ax, until=until)
            ax.set_title(label, loc="left", fontweight="bold", x=0)
            ax.label_outer()
        figure.suptitle(f"Request {request}, its slot, and those around it. Numbers are requests.", x=0.008, ha="left",
                        fontsize=9)
        _add_legend(figure, {kind for frame in frames.values() for kind in frame[frame["start_s"] < until]["kind"]})
    return figure


def _queues(ax: Axes, bars: DataFrame) -> None:
    """Waiting is a dotted line, for it takes no slot."""
    for row, start, end in zip(bars["row"], bars["start_s"], bars["end_s"], strict=True):
        ax.plot([start, end], [row, row], solid_capstyle="butt", **QUEUE)


def _numbers(ax: Axes, bars: DataFrame, until: float) -> None:
    """Each request's number, once a row, in the widest of its bars there."""
    widest = bars.assign(width=bars["end_s"] - bars["start_s"]).sort_values("width", kind="stable")
    widest = widest.drop_duplicates(["row", "request"], keep="last")
    for row, start, end, request in zip(*(widest[name] for name in ("row", "start_s", "end_s", "request")),
                                        strict=True):
        if end - start > NAMED * until:
            ax.annotate(str(request), ((start + end) / 2, row), ha="center", va="center", fontsize=7.5, color=INK,
                        bbox={"facecolor": "white", "alpha": 0.65, "edgecolor": "none", "pad": 0.8})


def _add_legend(figure: Figure, kinds: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    known = [kind for kind in LEGEND if kind in kinds]
    handles = [Line2D([], [], **QUEUE) if kind == "queue" else Patch(linewidth=0, **LOOKS[kind]) for kind in known]
    figure.legend(handles, [LEGEND[kind] for kind in known], loc="outside lower left", ncols=5, labelcolor=SOFT)
