"""Ledgers over time: where slots, token positions or KV cache went, as stacked areas, a panel a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from simulator.binned import Binned
from simulator.errors import InputError
from simulator.ledger import LEDGERS
from simulator.plots.style import ORANGE, PURPLE, SKY, SOFT, VERMILION, new_axes, new_figure, our_style, plain_numbers
from simulator.plots.timeline import LOOKS as BARS
from simulator.plots.timeline import THIN, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from simulator.result import Result

HATCHED = BARS["held"]
LOOKS: dict[str, Look] = BARS | {
    "behind_prefill": {"facecolor": ORANGE}, "stalled": {"facecolor": "#f4cd7a"},
    "blocked_cap": {"facecolor": "#e5a5c9"}, "blocked_budget": {"facecolor": PURPLE},
    "blocked_memory": {"facecolor": "#8f4a74"}, "blocked_fragmentation": {"facecolor": "#4f2340"},
    "blocked_batch": {"facecolor": "#a9a4c4"}, "blocked_step": {"facecolor": "#f2d3e4"},
    "forming": {"facecolor": "#f0e442"}, "no_queue": {"facecolor": "#e9e9e9"}, "idle": {"facecolor": "#f7f7f7"},
    "useful": {"facecolor": SKY}, "padding": HATCHED,
    "holding": {"facecolor": SKY}, "reserved": HATCHED, "internal": {"facecolor": ORANGE},
    "external": {"facecolor": VERMILION}, "cached": {"facecolor": "#9fd6c5"}, "free": {"facecolor": "#f3f3f3"},
}
"""How the parts look: what requests do in the colours of the timeline, what keeps others out in purples."""
AXES = {"slots": "slots", "tokens": "token positions/s", "kv": "tokens of KV"}
TITLES = {"slots": "where the slots went", "tokens": "what was computed", "kv": "what the KV cache held"}
VISIBLE = 0.001
"""Parts with a smaller share everywhere are not explained."""
LONG = 66
"""Characters of a legend's entry that leave no room for a second one beside it."""
TOLD = 3
"""Parts that a panel's title tells."""


def plot_ledger(binned: Binned, ax: Axes | None = None, *, until: float | None = None) -> Axes:
    """Draw one ledger of one run as stacked areas over time.

    Args:
        binned: As `Result.ledger_over_time` makes it.
        ax: Where to draw; None: on a new figure.
        until: Right end of the time axis, seconds; None: the end of the run.
    """
    frame = binned.frame()
    with our_style():
        ax = new_axes(2.4) if ax is None else ax
        edges = np.append(frame["start_s"], frame["end_s"].iloc[-1:])
        floor = np.zeros(len(frame))
        for part in binned.parts:
            top = floor + frame[part].to_numpy()
            if len(frame) and (top > floor).any():
                ax.stairs(top, edges, baseline=floor, fill=True, **(THIN | LOOKS[part]))
            floor = top
        ax.set(xlim=(0, until or (edges[-1] if len(edges) else 1.0)), ylim=(0, max(floor.max(initial=0.0), 1e-9)),
               xlabel="time since the start (s)")
        plain_numbers(ax.xaxis)
        plain_numbers(ax.yaxis)
    return ax


def ledger_figure(results: Mapping[str, Result], name: str) -> Figure:
    """One ledger ("slots", "tokens" or "kv") of all runs, one above the other on one time axis."""
    if not results:
        raise InputError("nothing to draw: give at least one run")
    binned = {label: result.ledger_over_time(name) for label, result in results.items()}
    until = max(float(found.edges[-1]) for found in binned.values()) / 1e9 or 1.0
    parts = [part for part in LEDGERS[name] if any(_share(found, part) > VISIBLE for found in binned.values())]
    with our_style():
        figure = new_figure(1.65 * len(binned) + 0.45 + 0.2 * -(-len(parts) // _columns(name, parts)))
        panels = figure.subplots(len(binned), sharex=True, squeeze=False)[:, 0]
        for ax, (label, found) in zip(panels, binned.items(), strict=True):
            plot_ledger(found, ax, until=until)
            ax.set_title(f"{label}: {TITLES[name]}", loc="left", fontweight="bold")
            ax.set_title(_told(found), loc="right", color=SOFT, fontsize=8.5)
            ax.set_ylabel(_axis(name, ax.get_ylim()[1]))
            ax.label_outer()
        _add_legend(figure, name, parts)
    return figure


def _axis(name: str, top: float) -> str:
    """What the axis counts; for a ledger of things there are, how many, for each panel has its own scale."""
    return AXES[name] if name == "tokens" else f"{top:,.0f} {AXES[name]}"


def _share(found: Binned, part: str) -> float:
    """Of all that is known."""
    whole = sum(found.totals)
    return sum(found.parts.get(part, [])) / whole if whole else 0.0


def _told(found: Binned) -> str:
    """The largest parts and their shares."""
    largest = sorted(found.parts, key=lambda part: -_share(found, part))[:TOLD]
    return " · ".join(f"{part.replace('_', ' ')} {_share(found, part):.0%}" for part in largest if _share(found, part))


def _columns(name: str, parts: list[str]) -> int:
    """How many entries of the legend stand side by side."""
    return 2 if max((len(_words(name, part)) for part in parts), default=0) < LONG else 1


def _words(name: str, part: str) -> str:
    return f"{part.replace('_', ' ')}: {LEDGERS[name][part].removeprefix('empty: ').removeprefix('free, and ')}"


def _add_legend(figure: Figure, name: str, parts: list[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(**(THIN | LOOKS[part])) for part in parts]
    figure.legend(handles, [_words(name, part) for part in parts], loc="outside lower left",
                  ncols=_columns(name, parts))
