"""Ratios and factors on a log axis: what a switch is worth, ours beside published, a verdict. Draws frames of studies.

On a log axis factors that multiply lie end to end, and equal lengths are equal factors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.plots.style import BLUE, FAINT, INK, ORANGE, SKY, SOFT, VERMILION, new_axes, new_figure, our_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

ROW, MARGIN = 0.24, 1.1
"""Inches: a line of a figure, and what stands above and below all of them."""
LITTLE = 0.005
"""A gain or a loss that counts as none."""
WIDEST = 2.5
"""Times the published number to which a band without an upper bound is drawn."""
ORDER = 1.5
"""Inches: a panel of runs whose measure must rise."""
FACTORS = {"slots": BLUE, "memory": SKY, "padding": ORANGE}


def caveats_figure(frame: DataFrame, axis: str = "") -> Figure:
    """A bar a study from 1, to the left where the switch loses; a diamond: nothing changes. `axis` says of what."""
    with our_style():
        figure = new_figure(2 * ROW * len(frame) + MARGIN)
        plot_caveats(frame, figure.add_subplot(), axis)
    return figure


def plot_caveats(frame: DataFrame, ax: Axes | None = None, axis: str = "") -> Axes:
    """Draw a frame of `caveats.caveat_frame`: name, metric and ratio of each study."""
    with our_style():
        ax = new_axes(2 * ROW * len(frame) + MARGIN) if ax is None else ax
        for at, ratio in enumerate(frame["ratio"].tolist()):
            if abs(ratio - 1) < LITTLE:
                ax.plot(1, at, marker="D", color=SOFT, markersize=6)    # a bar too short to be seen
            ax.barh(at, ratio - 1, left=1, height=0.5, color=BLUE if ratio >= 1 else VERMILION)
            ax.annotate(f"{ratio:.2f}x", (ratio, at), (8 if ratio >= 1 else -8, 0), textcoords="offset points",
                        va="center", ha="left" if ratio >= 1 else "right")
        _lines(ax, (frame["name"] + "\n" + frame["metric"]).tolist(), [0.4, 0.5, 0.7, 1, 1.5, 2])
        ax.axvline(1, color=INK, linewidth=0.8)
        ax.set_title("Where continuous batching does not pay: what the switch is worth", loc="left", fontweight="bold")
        ax.set_xlabel(axis)
    return ax


def findings_figure(frame: DataFrame, title: str, orders: DataFrame | None = None, beside: str = "published") -> Figure:
    """Our numbers over the published ones, each on the band of its tolerance; above them what must rise, if anything.

    Args:
        frame: As `Reproduction.frame` makes it.
        title: Above all.
        orders: As `Reproduction.orders` makes it.
        beside: What our numbers are divided by.
    """
    claims = [] if orders is None else [rows for _, rows in orders.groupby("claim", sort=False)]
    heights = [ORDER] * len(claims) + [ROW * len(frame) + MARGIN]
    with our_style():
        figure = new_figure(sum(heights))
        figure.suptitle(title, x=0.008, ha="left", fontweight="bold")
        *above, last = figure.subplots(len(heights), height_ratios=heights, squeeze=False)[:, 0]
        for ax, rows in zip(above, claims, strict=True):
            plot_order(rows, ax)
        plot_findings(frame, last, beside)
    return figure


def plot_order(rows: DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one claim of a frame of `Reproduction.orders`: a bar a run, each of which must be longer than the last."""
    with our_style():
        ax = new_axes(ORDER) if ax is None else ax
        bars = ax.bar(rows["run"], rows["value"], width=len(rows) / 8, color=BLUE)    # as wide in every panel
        ax.bar_label(bars, [f"{value:.3g}" for value in rows["value"]], padding=2, fontsize=8.5, color=INK)
        ax.set_title(rows["claim"].iloc[0], loc="left", fontsize=9.5)
        ax.margins(y=0.2)
        ax.set_xlim(-0.5, len(rows) - 0.5)
        ax.set_yticks([])
    return ax


def plot_findings(frame: DataFrame, ax: Axes | None = None, beside: str = "published") -> Axes:
    """Draw a frame of `Reproduction.frame`; a row without a tolerance has no band."""
    with our_style():
        ax = new_axes(ROW * len(frame) + MARGIN) if ax is None else ax
        at = range(len(frame))
        frame = frame.assign(highest=frame["highest"].clip(upper=WIDEST))
        ax.barh(at, frame["highest"] - frame["lowest"], left=frame["lowest"], height=0.6, color=FAINT)
        ax.plot(frame["ours"], at, "o", color=BLUE, markersize=5)
        ax.axvline(1, color=INK, linewidth=0.8)
        _lines(ax, frame["claim"].tolist(), [0.25, 0.5, 0.7, 1, 1.5, 2, 4])
        ax.set_xlabel(f"ours over {beside} (grey: the tolerance)")
    return ax


def verdict_figure(frame: DataFrame, low: float, high: float) -> Figure:
    """The factors of every ratio end to end, and the range of the claim behind them."""
    with our_style():
        figure = new_figure(ROW * len(frame) + MARGIN)
        plot_verdict(frame, low, high, figure.add_subplot())
    return figure


def plot_verdict(frame: DataFrame, low: float, high: float, ax: Axes | None = None) -> Axes:
    """Draw a frame of `Verdict.frame`: the bar of a ratio is slots, memory and padding, in that order."""
    with our_style():
        ax = new_axes(ROW * len(frame) + MARGIN) if ax is None else ax
        ax.axvspan(low, high, color=FAINT, linewidth=0, label=f"{low:g} to {high:g}")
        reached = frame["slots"] * 0 + 1
        for name, colour in FACTORS.items():
            ax.barh(range(len(frame)), reached * (frame[name] - 1), left=reached, height=0.62, color=colour, label=name)
            reached = reached * frame[name]
        _lines(ax, (frame["trace"] + ", " + frame["baseline"]).tolist(), [1, 2, 5, 10, 20, 30])
        ax.set_xlabel("output throughput of vllm over that of the static baseline")
        ax.figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return ax


def _lines(ax: Axes, names: list[str], ticks: list[float]) -> None:
    """A line a name from the top, on a log axis with these ticks as far as they are needed."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(-0.6, len(names) - 0.4)
    ax.invert_yaxis()
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, 0.8) * 0.85, max(high, 1.25) * 1.12)
    ax.set_xticks([tick for tick in ticks if ax.get_xlim()[0] <= tick <= ax.get_xlim()[1]])
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0, labelcolor=SOFT)
