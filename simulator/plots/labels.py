"""Labels: names beside points, as far as there is room for them. It knows no numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simulator.plots.style import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

PLACES = ((6, 4, "left"), (-6, -9, "right"), (6, -9, "left"), (-6, 4, "right"))
"""Where a name may stand, in points from its own point, and which of its ends is there; the first that is free."""
MARK = 2.5
"""Half the width of a mark, in points."""


def label_points(axes: Axes, named: Iterable[tuple[str, float, float]], marks: Iterable[tuple[float, float]]) -> None:
    """Write each name at its point, unless it would cross a mark, an earlier name or the edge of the axes.

    The limits of the axes must be final.
    """
    figure: Any = axes.get_figure()
    figure.draw_without_rendering()    # from now on positions on the page are known
    taken = [_box(axes, x, y) for x, y in marks]
    for name, x, y in named:
        for across, up, end in PLACES:
            text = axes.annotate(name, (x, y), xytext=(across, up), ha=end, fontsize=7, color=SOFT,
                                 textcoords="offset points")
            if _is_free(axes, text, taken):
                taken.append(text.get_window_extent())
                break
            text.remove()


def _is_free(axes: Axes, text: Annotation, taken: list[Bbox]) -> bool:
    box = text.get_window_extent()
    inside = axes.bbox.containsx(box.x0) and axes.bbox.containsx(box.x1) and axes.bbox.containsy(box.y0)
    return inside and axes.bbox.containsy(box.y1) and not box.count_overlaps(taken)


def _box(axes: Axes, x: float, y: float) -> Bbox:
    from matplotlib.transforms import Bbox
    across, up = axes.transData.transform((x, y))
    half = MARK * axes.get_figure().dpi / 72    # type: ignore[union-attr]
    return Bbox.from_extents(across - half, up - half, across + half, up + half)
