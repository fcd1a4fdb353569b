"""Figures on their way into files."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from simulator.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_drawing() -> None:
    """Refuse before any work a name in the environment that keeps matplotlib from loading, and have it load in silence.

    It would talk of font caches, of home directories, and of letters that its font has not.
    """
    warnings.filterwarnings("ignore", "Glyph", UserWarning)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if backend := os.environ.get("MPLBACKEND"):
        try:
            import matplotlib  # noqa: F401
        except ValueError:
            raise InputError(f"matplotlib does not know MPLBACKEND={backend}: unset it") from None


def as_files(figures: Mapping[str, Figure]) -> dict[str, bytes]:
    """The figures' files by their names."""
    from simulator.plots import save_figure
    with TemporaryDirectory() as scratch:
        return {name: save_figure(figure, Path(scratch) / name).read_bytes() for name, figure in figures.items()}
