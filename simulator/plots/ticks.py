"""Ticks: the small numbers of an axis of logarithms. It imports matplotlib, so only whoever draws imports it."""

from __future__ import annotations

from matplotlib.ticker import LogFormatter


class SmallNumbers(LogFormatter):
    """Numbers as `style.plain_numbers` has them, at those small ticks for which matplotlib finds room."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The number at a tick; empty where there is no room."""
        return f"{x:,.10g}" if super().__call__(x, pos) else ""
