"""Figures of the three questions of `explain`. They draw the plain numbers of its answers, and know no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.plots.ledgers import HATCHED
from simulator.plots.style import (
    BLUE,
    INK,
    ORANGE,
    SKY,
    SOFT,
    VERMILION,
    new_figure,
    our_style,
    plain_numbers,
)
from simulator.plots.timeline import THIN, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series

KV_LOOKS: dict[str, tuple[str, Look]] = {
    "holding": ("holds the KV of a token", {"facecolor": SKY}),
    "reserved": ("reserved, not filled", HATCHED),
    "internal": ("rounding", {"facecolor": ORANGE}),
    "external": ("free, in holes too short", {"facecolor": VERMILION}),
    "rest": ("free", {"facecolor": "#f3f3f3"}),
}


def paging_figure(memories: DataFrame) -> Figure:
    """Where the pool went under each memory, and what came of it: the batch, and refusals with enough free."""
    from matplotlib.patches import Patch
    with our_style():
        figure = new_figure(2.5)
        left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=[2.2, 1, 1])
        known = [f"{part}_share" for part in ("holding", "reserved", "internal", "external")]
        frame = memories.assign(rest_share=1 - memories[known].sum(axis=1))
        floor = frame["holding_share"] * 0
        for part, (_, look) in KV_LOOKS.items():
            left.barh(frame["memory"], frame[f"{part}_share"], left=floor, height=0.62, **(THIN | look))
            floor = floor + frame[f"{part}_share"]
        left.set(xlim=(0, 1), title="KV cache, mean over time")
        left.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
        refused = frame["refused_with_enough_free"] / frame["steps"]
        _amounts(middle, frame["memory"], frame["effective_batch"], "effective batch", BLUE, "{:,.1f}")
        _amounts(right, frame["memory"], refused, "refused, enough free", VERMILION, "{:.0%}")
        left.invert_yaxis()
        left.tick_params(axis="y", length=0)
        figure.legend([Patch(**(THIN | look)) for _, look in KV_LOOKS.values()],
                      [words for words, _ in KV_LOOKS.values()], loc="outside lower left", ncols=5)
    return figure


def _amounts(ax: Axes, names: Series[str], values: Series[float], title: str, colour: str, form: str) -> None:
    """Bars with their numbers beside them."""
    bars = ax.barh(names, values, height=0.62, color=colour)
    ax.bar_label(bars, [form.format(value) for value in values], padding=3, fontsize=8.5, color=INK)
    ax.set(title=title, xlim=(0, 1.3 * max(values.max(), 1e-9)))
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def contention_figure(budgets: DataFrame) -> Figure:
    """ITL above, TTFT below, over the token budget of a step."""
    with our_style():
        figure = new_figure(3.6)
        panels = figure.subplots(2, sharex=True)
        for ax, name, title in zip(panels, ("itl", "ttft"), ("Gap between two tokens (ITL)",
                                                             "Time to first token (TTFT)"), strict=True):
            size = budgets["max_num_batched_tokens"]
            ax.plot(size, budgets[f"p99_{name}_ms"], color=VERMILION, marker="o", markersize=4, label="p99")
            ax.plot(size, budgets[f"median_{name}_ms"], color=BLUE, marker="s", markersize=3.5, label="median")
            ax.set(ylabel="ms", xscale="log")
            ax.set_title(title, loc="left", fontweight="bold")
            ax.set_xticks(list(size), [f"{each:,}" for each in size])
            ax.minorticks_off()
            _logarithmic(ax, budgets[f"median_{name}_ms"])
        panels[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
        panels[1].set_xlabel("tokens a step (max_num_batched_tokens)")
    return figure


def _logarithmic(ax: Axes, values: Series[float]) -> None:
    """A logarithmic axis with a few round numbers, if there is any value to show."""
    from matplotlib.ticker import LogLocator, NullLocator
    if not values.gt(0).any():
        return
    ax.set_yscale("log")
    ax.grid(axis="y")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    ax.yaxis.set_minor_locator(NullLocator())
    plain_numbers(ax.yaxis)


def exhaustion_figure(pools: DataFrame, kv: DataFrame, preemptions: DataFrame, tight: float) -> Figure:
    """On top a run whose KV runs out: its pool, and who is away when. Below what less memory does to first tokens.

    `tight` is the pool of that run, as a share of the peak.
    """
    with our_style():
        figure = new_figure(6.2)
        used, away, cliff = figure.subplots(3, height_ratios=[1, 1.6, 1.6])
        used.stairs(kv["used_share"], [*kv["start_s"], *kv["end_s"].iloc[-1:]], baseline=0, fill=True, color=SKY)
        used.set(ylim=(0, 1.02), xlim=(0, kv["end_s"].max()))
        used.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
        used.set_title(f"KV in use, in a pool of {tight:.0%} of the peak demand", loc="left", fontweight="bold")
        _plot_away(away, preemptions)
        away.set_xlabel("time since the start (s)")
        if not len(preemptions):
            away.set_xlim(used.get_xlim())
        _plot_cliff(cliff, pools)
    return figure


def _plot_away(ax: Axes, preemptions: DataFrame) -> None:
    """One line a preemption: from the loss of the slot to the next token."""
    rows = range(1, len(preemptions) + 1)
    if len(preemptions):
        lost, back, again = (preemptions[name] for name in ("lost_s", "admitted_s", "next_token_s"))
        ax.hlines(rows, lost, back, color=SOFT, linewidth=2.5, label="in the queue")
        ax.hlines(rows, back, again, color=VERMILION, linewidth=4, label="computes again")
        ax.plot(lost, rows, linestyle="", marker="|", color=INK, markersize=min(9, 4 + 80 / len(preemptions)),
                label="loses its KV")
        ax.legend(loc="upper right", ncols=3)
    ax.set_title("Preemptions, one a row, closer up", loc="left", fontweight="bold")
    ax.set_ylim(len(preemptions) + 1.5, -len(preemptions) * 0.25 - 0.5)
    ax.set_yticks([])


def _plot_cliff(ax: Axes, pools: DataFrame) -> None:
    """TTFT over the pool, and how many were preempted there."""
    share = 100 * pools["share_of_peak"]
    ax.plot(share, pools["p99_ttft_ms"], color=VERMILION, marker="o", markersize=4, label="TTFT, p99")
    ax.plot(share, pools["median_ttft_ms"], color=BLUE, marker="s", markersize=3.5, label="TTFT, median")
    for at, height, count in zip(share, pools["p99_ttft_ms"], pools["preemptions"], strict=True):
        ax.annotate(f"{count:,}", (at, height), (0, 6), textcoords="offset points", ha="center", fontsize=8, color=SOFT)
    ax.set(ylabel="ms", xlabel="KV pool, in % of the peak demand (numbers: preemptions)")
    ax.set_title("Time to first token (TTFT), from little memory to enough", loc="left", fontweight="bold")
    ax.margins(y=0.18)
    _logarithmic(ax, pools["median_ttft_ms"])
    ax.legend(loc="upper right", ncols=2)
