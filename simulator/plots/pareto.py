"""The Pareto set of a sweep: speed for each user against output for each GPU. It draws a frame and knows no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.errors import InputError
from simulator.plots.labels import label_points
from simulator.plots.style import (
    BLUE,
    FAINT,
    GREEN,
    NAVY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    our_style,
    plain_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

COLOURS, MARKERS = (VERMILION, BLUE, GREEN, ORANGE, PURPLE, SKY, NAVY), "os^D"
"""Of the sets of several loads, in turn."""
NAMED = 8
"""Most points of a set that bear a name."""
LOADS = 12
"""Most loads whose sets are told apart by colours and marks."""
USER, GPU = AXES = ["tokens_per_user", "tokens_per_gpu"]
GREY = "#b5b5b5"


def pareto_figure(frame: DataFrame, title: str = "") -> Figure:
    """All points, and those of each load that no other one beats, joined and named.

    Args:
        frame: Columns tokens_per_user, tokens_per_gpu, pareto (whether none of the same load beats it), name and load;
            where all points have the same load, that may be missing.
        title: Above all.
    """
    if frame.empty:
        raise InputError("nothing to draw: no point has a time per output token")
    with our_style():
        figure = new_figure(4.4)
        plot_pareto(frame, figure.add_subplot())
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_pareto(frame: DataFrame, axes: Axes) -> Axes:
    """The points, and the sets. A load with one point has nothing to be compared with: then all are just points."""
    frame = frame if "load" in frame else frame.assign(load="")
    axes.scatter(frame[USER], frame[GPU], s=18, color=GREY, label="all points")
    if frame["load"].nunique() < len(frame):
        sets = [(str(load), _set(points)) for load, points in frame[frame["pareto"]].groupby("load", sort=False)]
        named = (_draw_many if len(sets) > LOADS else _draw_each)(axes, sets)
    else:
        joined = frame["load"].where(frame["name"] == "", frame["load"] + ", " + frame["name"])
        named = _names(_set(frame.assign(name=joined.str.strip(", ") if len(frame) > 1 else frame["name"])))
    _dress(axes, frame[GPU].max())
    label_points(axes, named, frame[AXES].drop_duplicates().to_numpy())
    return axes


Sets = list[tuple[str, "DataFrame"]]
Names = list[tuple[str, float, float]]


def _draw_each(axes: Axes, sets: Sets) -> Names:
    """The sets, each in a look of its own; returns the names of their points."""
    for at, (load, best) in enumerate(sets):
        axes.plot(best[USER], best[GPU], color=COLOURS[at % len(COLOURS)], marker=MARKERS[at // len(COLOURS) % 4],
                  markersize=4.5, label=f"{load and f'{load}: '}no other point is better in both")
    return [each for _, best in sets for each in _names(best)]


def _draw_many(axes: Axes, sets: Sets) -> Names:
    """Very many sets, all in one look, and nobody named."""
    for at, (_, best) in enumerate(sets):
        axes.plot(best[USER], best[GPU], color=COLOURS[0], marker=MARKERS[0], markersize=2.5, linewidth=0.6,
                  label="" if at else f"{len(sets):,} loads: no other point of the load is better in both")
    return []


def _set(points: DataFrame) -> DataFrame:
    """Each place once, from left to right, by the name of its first point and how many more there are."""
    best = points.groupby(AXES, sort=True)["name"].agg(["first", "size"]).reset_index()
    more = (best["size"] - 1).map(lambda count: f" and {count:,} more" if count else "")
    return best.assign(name=best["first"] + more)


def _names(best: DataFrame) -> Names:
    """Of very many points those that are spread evenly, from the last one backwards."""
    return [(name, x, y) for name, x, y in
            best[["name", *AXES]].iloc[::len(best) // -NAMED].itertuples(index=False) if name]


def _dress(axes: Axes, highest: float) -> None:
    axes.margins(x=0.12)
    axes.set(xlabel="output tokens/s for each user (1000 / median TPOT in ms)", ylabel="output tokens/s for each GPU",
             ylim=(0, 1.12 * highest))
    axes.grid(color=FAINT)
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    handles = axes.get_legend_handles_labels()[0]
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=min(2, len(handles)))
