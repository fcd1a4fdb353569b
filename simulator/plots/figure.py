"""Figure: matplotlib's own, which shows itself in a notebook, without pyplot or magic, and is always the same picture.

It imports matplotlib, so only whoever draws imports it.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure as Plain

from simulator.plots.style import svg_of


class Figure(Plain):
    """A figure whose value at the end of a cell is its picture.

    Example:
        >>> Figure(figsize=(1, 1))._repr_svg_().startswith("<?xml")
        True
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """As matplotlib has it, but the first picture settles the layout: worked out anew, it would move by a hair."""
        super().savefig(fname, **options)
        self.set_layout_engine("none")

    def _repr_svg_(self) -> str:
        return svg_of(self)
