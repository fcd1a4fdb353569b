"""A sweep in two pictures: one number over two parameters, and speed for each user against output for each GPU.

It draws frames and knows no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.errors import InputError
from simulator.plots.style import BLUE, FAINT, INK, NAVY, SOFT, VERMILION, new_figure, our_style, plain_numbers

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from pandas import DataFrame

COLOURS = ("#f4f9fd", "#a6cfe8", BLUE, NAVY)
"""From the least to the most."""
MISSING: dict[str, Any] = {"facecolor": "#f1f1f1", "edgecolor": "#a8a8a8", "hatch": "//////", "linewidth": 0}
CELL, MARGIN, LEAST = 0.42, 1.3, 2.4
"""Inches: the height of a row, what stands around all rows, the least height."""
DECADES, DARK = 30, 0.55
"""How far apart numbers lie that are coloured by factors; the share of the scale from which on text is white."""
NAMED = 8
"""Most points of the Pareto set that bear a name."""


def heatmap_figure(frame: DataFrame, title: str = "") -> Figure:
    """One cell for each pair of values, its number written in it; a hatched one has none.

    Args:
        frame: A row a value of one parameter, a column a value of the other; the names of index and columns are those
            of the parameters. NaN where nothing was measured.
        title: Above all: what the numbers are.
    """
    if frame.isna().to_numpy().all():
        raise InputError("nothing to draw: no point has a value of this metric")
    with our_style():
        figure = new_figure(max(LEAST, MARGIN + CELL * len(frame)))
        plot_heatmap(frame, figure.add_subplot())
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_heatmap(frame: DataFrame, axes: Axes) -> Axes:
    """The cells, the first row at the bottom."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle
    colours = LinearSegmentedColormap.from_list("batchsim", COLOURS)
    values = frame.to_numpy(float)
    image = axes.imshow(values, cmap=colours, aspect="auto", origin="lower", norm=_norm(values))
    for row, column in [(row, column) for row in range(values.shape[0]) for column in range(values.shape[1])]:
        if values[row, column] != values[row, column]:
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **MISSING))
            continue
        dark = float(image.norm(float(values[row, column]))) > DARK    # type: ignore[arg-type]
        axes.text(column, row, _figure(values[row, column]), ha="center", va="center", fontsize=8,
                  color="white" if dark else INK)
    axes.set_xticks(range(values.shape[1]), [str(name) for name in frame.columns])
    axes.set_yticks(range(values.shape[0]), [str(name) for name in frame.index])
    axes.set(xlabel=str(frame.columns.name), ylabel=str(frame.index.name))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def pareto_figure(frame: DataFrame, title: str = "") -> Figure:
    """All points, and those that no other one beats, joined and named.

    Args:
        frame: Columns tokens_per_user, tokens_per_gpu, pareto (whether nobody beats it), name.
        title: Above all.
    """
    if frame.empty:
        raise InputError("nothing to draw: no point has a time per output token")
    with our_style():
        figure = new_figure(4.2)
        plot_pareto(frame, figure.add_subplot())
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_pareto(frame: DataFrame, axes: Axes) -> Axes:
    """The points, and the set."""
    best = frame[frame["pareto"]].sort_values("tokens_per_user", kind="stable")
    axes.scatter(frame["tokens_per_user"], frame["tokens_per_gpu"], s=18, color="#b5b5b5", label="all points")
    axes.plot(best["tokens_per_user"], best["tokens_per_gpu"], color=VERMILION, marker="o", markersize=4.5,
              label="no other point is better in both")
    middle = (frame["tokens_per_user"].min() + frame["tokens_per_user"].max()) / 2
    best = best.drop_duplicates(["tokens_per_user", "tokens_per_gpu"])    # points that fall together have one name
    for name, x, y in best[["name", "tokens_per_user", "tokens_per_gpu"]].iloc[::-(-len(best) // NAMED)].to_numpy():
        left = x > middle
        axes.annotate(name, (x, y), xytext=(-6, -9) if left else (6, 4), ha="right" if left else "left",
                      fontsize=7, color=SOFT, textcoords="offset points")
    axes.set(xlabel="output tokens/s for each user (1000 / median TPOT in ms)", ylabel="output tokens/s for each GPU",
             ylim=(0, None))
    axes.margins(x=0.12)
    axes.grid(color=FAINT)
    for axis in (axes.xaxis, axes.yaxis):
        plain_numbers(axis)
    axes.legend(loc="lower left")
    return axes


def _norm(values: NDArray[np.float64]) -> Normalize:
    """Factors count where the numbers lie decades apart, else differences."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return LogNorm(low, high) if low > 0 and high > DECADES * low else Normalize(low, high)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
