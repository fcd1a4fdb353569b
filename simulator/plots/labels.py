"""Labels: names beside points, as far as there is room for them. It knows no numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simulator.plots.style import SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

PLACES = ((6, 4, "left"), (-6, -9, "right"), (6, -9, "left"), (-6, 4, "right"), (0, 7, "center"), (0, -13, "center"))
"""Where a name may stand, in points from its own point, and which part of it is there; the first that is free."""
MARK = 2.5
"""Half the width of a mark, in points."""
AIR = 1.2
"""What is left free around a name, as a share of its height: a viewer may have another font."""


def label_points(axes: Axes, named: Iterable[tuple[str, float, float]], marks: Iterable[tuple[float, float]]) -> None:
    """Write each name at its point, unless it would cross a mark, a line, an earlier name or the edge of the axes.

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
    if not (axes.bbox.contains(box.x0, box.y0) and axes.bbox.contains(box.x1, box.y1)):
        return False
    lines = (line.get_path().transformed(line.get_transform()) for line in axes.lines)
    return not box.expanded(1, AIR).count_overlaps(taken) and not any(
        line.intersects_bbox(box, filled=False) for line in lines)


def _box(axes: Axes, x: float, y: float) -> Bbox:
    from matplotlib.transforms import Bbox
    across, up = axes.transData.transform((x, y))
    half = MARK * axes.get_figure().dpi / 72    # type: ignore[union-attr]
    return Bbox.from_extents(across - half, up - half, across + half, up + half)
