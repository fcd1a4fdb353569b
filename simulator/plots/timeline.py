"""Timeline: slots against time, a panel a policy. The picture of what a slot does all day. Draws frames of `bars`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.plots.bars import timeline_frame, window_of
from simulator.plots.captions import headline, manner, title
from simulator.plots.style import (
    NAVY,
    ORANGE,
    PALE_SKY,
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
    from pandas import DataFrame, Series

    from simulator.result import Result

Floats = NDArray[np.float64]
Look = dict[str, Any]

LOOKS: dict[str, Look] = {
    "held": {"facecolor": "#f1f1f1", "hatch": "//////", "edgecolor": "#a8a8a8"},
    "decode": {"facecolor": SKY},
    "decode, next": {"facecolor": PALE_SKY},
    "stalled": {"facecolor": ORANGE},
    "prefill": {"facecolor": NAVY},
    "recompute": {"facecolor": VERMILION},
}
"""How bars look, in the order of drawing. Decode has two looks: requests that follow one another take turns."""
THIN: Look = {"linewidth": 0.0}
WHITE_EDGE: Look = {"linewidth": 0.5, "edgecolor": "white"}
BLANK: Look = {"facecolor": "white", "edgecolor": "#c8c8c8", "linewidth": 0.6}

LEGEND = {
    "prefill": "reads its prompt (prefill)",
    "decode": "writes its answer (decode); the next request has the other shade",
    "recompute": "computes again what a preemption threw away",
    "stalled": "left out: the token budget is spent",
    "held": "finished, but its slot is not free yet",
    "empty": "nobody in the slot",
}
SLOTS = 32
TURNS = 3
LONG = 100
"""Characters that fit into the line above a panel."""
EDGE = 1 / 150
"""Bars wider than this share of the axis have a white edge."""


def plot_timeline(frame: DataFrame, ax: Axes | None = None, *, slots: int | None = None,
                  until: float | None = None) -> Axes:
    """Draw the bars of one policy.

    Args:
        frame: As `timeline_frame` makes it.
        ax: Where to draw; None: on a new figure, with a legend.
        slots: Show slots 1 to this one; None: all.
        until: Right end of the time axis, seconds; None: the end of the last bar.
    """
    slots = slots or int(frame["slot"].max() if len(frame) else 1)
    until = until or float(frame["end_s"].max() if len(frame) else 1.0)
    shown = frame[frame["slot"] <= slots]
    looks = _looks(shown)
    with our_style():
        alone = ax is None
        ax = new_axes(_height(slots) + 1.2) if ax is None else ax
        for look in LOOKS:
            draw_bars(ax, shown[looks == look], LOOKS[look], until)
        _dress(ax, slots, until)
        if alone:
            _add_legend(ax.figure, set(shown["kind"]))
    return ax


def timeline_figure(results: Mapping[str, Result], until: float | None = None, slots: int = SLOTS,
                    what: str = "") -> Figure:
    """One panel a policy, one above the other, on one time axis.

    Args:
        results: Runs by the name to show, in the order of the panels.
        until: Right end, seconds. None: until the slots of the first run that returns answers late, or else of the
            first run, have served three requests each; for static batching, three batches.
        slots: Show at most so many slots of each.
        what: Of which runs this is, such as "saturated"; put into the headline.
    """
    until = until or _window(results)
    frames = {label: timeline_frame(result, until) for label, result in results.items()}
    shown = {label: min(slots, int(frame["slot"].max()) if len(frame) else 1) for label, frame in frames.items()}
    heights = [_height(count) for count in shown.values()]
    with our_style():
        figure = new_figure(sum(heights) + 0.6 * len(heights) + 1.25)
        figure.suptitle(headline(until, what), x=0.008, ha="left", fontsize=9)
        panels = figure.subplots(len(frames), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        kinds: set[str] = set()
        for ax, (label, frame) in zip(panels, frames.items(), strict=True):
            plot_timeline(frame, ax, slots=shown[label], until=until)
            told = title(frame, results[label], shown[label], until)
            _add_title(ax, label, told.text, manner(frame))
            ax.label_outer()
            kinds |= told.kinds
        _add_legend(figure, kinds)
    return figure


def _window(results: Mapping[str, Result]) -> float:
    """Seconds that show `TURNS` requests a slot of the first run that returns answers late, else of the first."""
    if not results:
        raise InputError("nothing to draw: give at least one run")
    late = [result for result in results.values() if not result.setup.policy.streams]
    return window_of((late or list(results.values()))[0].only.record, TURNS) or 1.0


def _height(slots: int) -> float:
    """Inches of a panel."""
    return min(0.12 + 0.26 * slots, 0.9 + 0.05 * slots)


def _looks(frame: DataFrame) -> Series[str]:
    """The look of each bar."""
    bars = frame.sort_values(["slot", "start_s"], kind="stable")
    turn = (bars["request"] != bars["request"].shift()).groupby(bars["slot"]).cumsum()
    second = (bars["kind"] == "decode") & (turn % 2 == 0)
    return bars["kind"].mask(second, "decode, next").reindex(frame.index)


def draw_bars(ax: Axes, bars: DataFrame, look: Look, until: float) -> None:
    """All bars of one look, as two shapes: the wide ones with a white edge, the others without."""
    from matplotlib.patches import PathPatch

    left, right, slot = (bars[name].to_numpy() for name in ("start_s", "end_s", "slot"))
    wide = (right - left > EDGE * until) & ("hatch" not in look)
    for chosen, edge in ((~wide, THIN), (wide, WHITE_EDGE)):
        if chosen.any():
            ax.add_patch(PathPatch(_rectangles(left[chosen], right[chosen], slot[chosen]), **(edge | look)))


def _rectangles(left: Floats, right: Floats, slot: NDArray[np.int64], height: float = 0.86) -> Any:
    """One path with a rectangle a bar: files stay small, and drawing fast."""
    from matplotlib.path import Path

    low, high = slot - height / 2, slot + height / 2
    corners = np.stack([left, low, right, low, right, high, left, high, left, low], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(left))
    return Path(corners, codes)


def _dress(ax: Axes, slots: int, until: float) -> None:
    """Limits, ticks and labels; slot 1 is on top."""
    ax.set(xlim=(0, until), ylim=(slots + 0.6, 0.4), xlabel="time since the start (s)", ylabel="slot")
    step = next(step for step in (1, 2, 4, 8, 16, 64, 256, slots) if slots / step <= 5)
    ax.set_yticks(sorted({1, *range(step, slots + 1, step)}))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    plain_numbers(ax.xaxis)


def _add_title(ax: Axes, label: str, told: str, manner: str) -> None:
    """The policy and its figures in one line, its manner in the next; without the manner where space is short."""
    if len(label) + len(told) > LONG:
        told, manner = "", told
    ax.set_title(label, loc="left", fontweight="bold", pad=18)
    ax.set_title(told, loc="right", pad=18)
    ax.annotate(manner, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", color=SOFT, fontsize=8.5)


def _add_legend(figure: Any, kinds: set[str]) -> None:
    """What the colours mean, for the kinds that occur."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.patches import Patch

    looks = {kind: [look] for kind, look in LOOKS.items()} | {"empty": [BLANK]}
    looks["decode"] += looks["decode, next"]
    known = [kind for kind in LEGEND if kind in kinds]
    handles: list[Any] = [tuple(Patch(**(THIN | look)) for look in looks[kind]) for kind in known]
    figure.legend(handles, [LEGEND[kind] for kind in known], loc="outside lower left", ncols=2,
                  handler_map={tuple: HandlerTuple(ndivide=None, pad=0)}, handlelength=2.6, handleheight=1.0)
