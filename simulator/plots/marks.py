"""Marks: the values of a drawn figure's curves as invisible spots of its SVG; a viewer shows the words of the one under
the pointer. It finds curves by their labels, and knows nothing of what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 80
"""Spots of a curve; of a longer one, so many spread evenly."""
RADIUS = 5
POINTS = 72
"""Units of an SVG in an inch."""


class Curve(NamedTuple):
    """A labelled curve of some axes, in their units."""

    label: str
    x: Any
    y: Any


def marks(figure: Figure) -> str:
    """One group of spots for all curves of a figure that has been drawn; empty if it has none."""
    spots = [spot for axes in figure.axes for curve in _curves(axes) for spot in _spots(figure, axes, curve)]
    return f'<g class="marks">\n{"".join(spots)}</g>\n' if spots else ""


def _curves(axes: Axes) -> Iterator[Curve]:
    """The lines, steps and scattered points that a legend would name."""
    from matplotlib.patches import StepPatch
    for line in axes.lines:
        if _is_named(line) and line.get_transform() == axes.transData:
            yield Curve(str(line.get_label()), line.get_xdata(), line.get_ydata())
    for patch in axes.patches:
        if _is_named(patch) and isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield Curve(str(patch.get_label()), (edges[1:] + edges[:-1]) / 2, values)
    for points in axes.collections:
        if _is_named(points) and len(np.atleast_2d(points.get_offsets())) > 1:
            yield Curve(str(points.get_label()), *np.asarray(points.get_offsets(), float).T)


def _is_named(artist: Any) -> bool:
    return not str(artist.get_label() or "_").startswith("_")


def _spots(figure: Figure, axes: Axes, curve: Curve) -> Iterator[str]:
    """The spots of one curve that lie inside its axes."""
    x, y = (np.asarray(values, float) for values in (curve.x, curve.y))
    chosen = np.unique(np.linspace(0, len(x) - 1, min(MOST, len(x))).round().astype(int))
    height, scale = figure.bbox.height, POINTS / figure.dpi
    for at in chosen:
        left, low = axes.transData.transform((x[at], y[at]))
        if np.isfinite([left, low]).all() and axes.bbox.padded(1).contains(left, low):
            words = escape(_words(axes, curve.label, x[at], y[at]))
            yield (f'<circle class="mark" cx="{left * scale:.1f}" cy="{(height - low) * scale:.1f}" r="{RADIUS}" '
                   f'fill="none" pointer-events="all"><title>{words}</title></circle>\n')


def _words(axes: Axes, label: str, x: float, y: float) -> str:
    """What the spot says: whose value it is, and both coordinates with what the axes call them."""
    return f"{label.partition(':')[0]}; {_name(axes, 'y')}: {y:,.4g}; {_name(axes, 'x')}: {x:,.4g}"


def _name(axes: Axes, which: str) -> str:
    """What an axis counts; panels that share it leave the name to one of them."""
    shared = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    names = [getattr(each, f"get_{which}label")() for each in (axes, *shared.get_siblings(axes))]
    return next(filter(None, names), which)
