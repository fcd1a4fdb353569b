"""Regression: each metric beside its baseline, with the band in which it may move. Draws the frame of a study.

Percent of the baseline, so that seconds and tokens a second stand on one axis; what leaves the picture has an arrow.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from simulator.plots.style import BLUE, FAINT, INK, ORANGE, SOFT, VERMILION, new_axes, new_figure, our_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

WRAP = 110
"""Characters in a line of the title."""
ROW, MARGIN = 0.24, 0.8
"""Inches: a metric, and what stands above and below all of them."""
WIDEST, NARROWEST = 1.0, 0.01
"""The shares of the baseline that the axis reaches at most and at least, either way."""
LOOKS = {"worse": (VERMILION, "X"), "better": (BLUE, "D"), "changed": (ORANGE, "s"), "same": (SOFT, "o"),
         "told only": (SOFT, "v")}
WORDS = {"same": "within its tolerance", "changed": "changed, neither better nor worse"}
BAND = "#e4edf4"


def regression_figure(frame: DataFrame, title: str = "") -> Figure:
    """A line a metric, a panel a baseline; where nothing was compared, only the title, which says so.

    Args:
        frame: As `regression.pictures.frame` makes it.
        title: Above all.
    """
    lines = wrap(title, WRAP)
    names = list(dict.fromkeys(frame["baseline"]))
    rows = [int((frame["baseline"] == name).sum()) for name in names]
    with our_style():
        figure = new_figure(ROW * (sum(rows) + len(lines)) + 0.35 * len(names) + (MARGIN if names else 0.2))
        figure.suptitle("\n".join(lines), x=0.008, ha="left", fontsize=9.5)
        if names:
            panels = figure.subplots(len(names), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
            for ax, name in zip(panels, names, strict=True):
                plot_regression(frame[frame["baseline"] == name], ax, _limit(frame))
                ax.set_title(name, loc="left", fontweight="bold")
                ax.label_outer()
            figure.legend(handles=_legend(frame), loc="outside lower right", ncols=4)
    return figure


def plot_regression(frame: DataFrame, ax: Axes | None = None, limit: float | None = None) -> Axes:
    """Draw the metrics of one baseline, the first at the top; `limit` is how far the axis reaches, as a share."""
    limit = _limit(frame) if limit is None else limit
    with our_style():
        ax = new_axes(ROW * len(frame) + MARGIN) if ax is None else ax
        for at, row in enumerate(frame.itertuples()):
            _draw(ax, at, row, limit)
        ax.axvline(0, color=INK, linewidth=0.8)
        ax.set_yticks(range(len(frame)), frame["metric"].tolist())
        ax.set_ylim(len(frame) - 0.4, -0.6)
        ax.set_xlim(-1.12 * limit, 1.12 * limit)
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.3g}%" if value else "baseline")
        ax.set_xlabel("now, beside the baseline")
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color=FAINT)
    return ax


def _draw(ax: Axes, at: int, row: Any, limit: float) -> None:
    """The band, the way from the baseline, the mark, and both values at the right."""
    colour, mark = LOOKS[row.verdict]
    end = min(max(row.moved, -limit), limit)
    low, high = max(row.low, -1.12 * limit), min(row.high, 1.12 * limit)
    ax.barh(at, high - low, left=low, height=0.7, color=BAND, zorder=0)
    ax.plot([0, end], [at, at], color=colour, linewidth=1.4)
    outside = end != row.moved
    ax.plot(end, at, marker=(">" if row.moved > 0 else "<") if outside else mark, color=colour, markersize=5.5,
            clip_on=False)
    ax.annotate(row.words, (1, at), (6, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                va="center", fontsize=8, color=INK if row.fails else SOFT, annotation_clip=False)


def _legend(frame: DataFrame) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    used = set(frame["verdict"])
    marks: list[Any] = [Line2D([], [], color=colour, marker=mark, linestyle="", label=WORDS.get(verdict, verdict))
                        for verdict, (colour, mark) in LOOKS.items() if verdict in used]
    return [*marks, Patch(facecolor=BAND, label="tolerance")] if (frame["high"] > 1e-6).any() else marks


def _limit(frame: DataFrame) -> float:
    """As far as the furthest metric that is no more than doubled, or the widest band."""
    found = [abs(value) for name in ("moved", "high") for value in frame[name]]
    return min(max([NARROWEST, *(value for value in found if value < float("inf"))]), WIDEST)
