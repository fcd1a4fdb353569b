"""Figure: matplotlib's own, which shows itself in a notebook: without pyplot, without magic. It draws nothing.

It imports matplotlib, so only whoever draws imports it.
"""

from __future__ import annotations

from io import StringIO

from matplotlib.figure import Figure as Plain

from simulator.plots.style import METADATA, our_style


class Figure(Plain):
    """A figure whose value at the end of a cell is its picture.

    Example:
        >>> Figure(figsize=(1, 1))._repr_svg_().startswith("<?xml")
        True
    """

    def _repr_svg_(self) -> str:
        page = StringIO()
        with our_style():
            self.savefig(page, format="svg", metadata=METADATA["svg"])
        return page.getvalue()
