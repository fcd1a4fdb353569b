"""Figures as the bytes of a file, for whoever writes several files at once."""

from __future__ import annotations

import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def svg(figure: Figure) -> bytes:
    """What the SVG file of a figure holds."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)    # it talks of font caches and home directories
    from simulator.plots import save_figure
    with TemporaryDirectory() as scratch:
        return save_figure(figure, Path(scratch) / "figure.svg").read_bytes()
