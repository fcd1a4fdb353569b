"""A sweep as a heat map: one number over two parameters. It draws a frame and knows no run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulator.errors import InputError
from simulator.plots.style import BLUE, INK, NAVY, new_figure, our_style, plain_numbers

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

COLOURS = ("#f4f9fd", "#a6cfe8", BLUE, NAVY)
"""From the least to the most."""
MISSING: dict[str, Any] = {"facecolor": "#f1f1f1", "edgecolor": "#a8a8a8", "hatch": "//////", "linewidth": 0}
CELL, MARGIN, LEAST = 0.42, 1.3, 2.4
"""Inches: the height of a row, what stands around all rows, the least height."""
DECADES, DARK = 30, 0.55
"""How far apart numbers lie that are coloured by factors; the share of the scale from which on text is white."""
COLUMNS, ROWS = 16, 40
"""Most of each in whose cells a number can be read."""
TICKS = 12
"""Most names at an axis whose cells bear no numbers."""
ASLANT: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
LETTERS = 90
"""Of the names of all columns, from which on they are written aslant."""


def heatmap_figure(frame: DataFrame, title: str = "") -> Figure:
    """One cell for each pair of values, its number written in it; a hatched one has none.

    Of very many cells the colours tell, with a scale beside them.

    Args:
        frame: A row a value of one parameter, a column a value of the other; the names of index and columns are those
            of the parameters. NaN where nothing was measured.
        title: Above all: what the numbers are.
    """
    if frame.isna().to_numpy().all():
        raise InputError("nothing to draw: no point has a value of this metric")
    with our_style():
        figure = new_figure(max(LEAST, MARGIN + CELL * min(len(frame), COLUMNS if _is_dense(frame) else ROWS)))
        plot_heatmap(frame, figure.add_subplot())
        figure.suptitle(title, x=0.008, ha="left", fontsize=9.5)
    return figure


def plot_heatmap(frame: DataFrame, axes: Axes) -> Axes:
    """The cells, the first row at the bottom."""
    values = frame.to_numpy(float)
    image = axes.imshow(values, cmap=colours_of(), aspect="auto", origin="lower", norm=norm_of(values))
    if _is_dense(frame):
        axes.patch.set(facecolor=MISSING["facecolor"], edgecolor=MISSING["edgecolor"], hatch=MISSING["hatch"])
        scale(axes, image)
    else:
        _write_numbers(axes, image, values)
    _name_axes(axes, frame)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def _is_dense(frame: DataFrame) -> bool:
    """Whether the cells are too small to write in."""
    return len(frame.columns) > COLUMNS or len(frame) > ROWS


def _write_numbers(axes: Axes, image: AxesImage, values: NDArray[np.float64]) -> None:
    """The number of each cell; hatched where there is none."""
    from matplotlib.patches import Rectangle
    for row, column in [(row, column) for row in range(values.shape[0]) for column in range(values.shape[1])]:
        if values[row, column] != values[row, column]:
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **MISSING))
            continue
        dark = float(image.norm(float(values[row, column]))) > DARK    # type: ignore[arg-type]
        axes.text(column, row, figure_of(values[row, column]), ha="center", va="center", fontsize=8,
                  color="white" if dark else INK)


def _name_axes(axes: Axes, frame: DataFrame) -> None:
    """The names of the columns and rows; of very many every so manieth."""
    dense = _is_dense(frame)
    columns, rows = ([(at, str(name)) for at, name in enumerate(names)][::max(1, len(names) // TICKS) if dense else 1]
                     for names in (frame.columns, frame.index))
    aslant = len("  ".join(name for _, name in columns)) > LETTERS
    axes.set_xticks([at for at, _ in columns], [name for _, name in columns], **(ASLANT if aslant else {}))
    axes.set_yticks([at for at, _ in rows], [name for _, name in rows])
    axes.set(xlabel=str(frame.columns.name), ylabel=str(frame.index.name))


def scale(axes: Axes, coloured: ScalarMappable) -> None:
    """What the colours stand for, in plain numbers, at the right edge."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator
    bar = axes.get_figure().colorbar(coloured, ax=axes, pad=0.02)    # type: ignore[union-attr]
    bar.outline.set_visible(False)
    if isinstance(coloured.norm, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        bar.ax.minorticks_off()
    plain_numbers(bar.ax.yaxis)


def colours_of() -> Colormap:
    """From the least to the most."""
    from matplotlib.colors import LinearSegmentedColormap
    return LinearSegmentedColormap.from_list("batchsim", COLOURS)


def norm_of(values: NDArray[np.float64] | Series) -> Normalize:
    """How numbers become colours. Factors count where the numbers lie decades apart, else differences."""
    import numpy as np
    from matplotlib.colors import LogNorm, Normalize
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return LogNorm(low, high) if low > 0 and high > DECADES * low else Normalize(low, high)


def figure_of(value: float) -> str:
    """A number, as short as it can be read."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
