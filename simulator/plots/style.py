"""The look of all figures, and how they are written. Knows no numbers.

Every figure starts from matplotlib's own defaults and this file, whatever the user has set, and leaves the user's
settings as they were. Colours: Okabe and Ito's set, told apart with any colour vision, and tints of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError
from simulator.plots.marks import marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, SKY, VERMILION = "#0072B2", "#56B4E9", "#D55E00"
GREEN, ORANGE, PURPLE = "#009E73", "#E69F00", "#CC79A7"
NAVY, PALE_SKY = "#00436B", "#A6D8F5"
"""A shade of the blue and a tint of the sky blue."""
INK, SOFT, FAINT = "#222222", "#666666", "#dddddd"
"""Text, secondary text, grid."""

WIDTH = 8.6
"""Inches: the width of a notebook cell or a page."""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9.0, "text.color": INK, "figure.facecolor": "white",
    "axes.facecolor": "white", "axes.edgecolor": SOFT, "axes.labelcolor": INK, "axes.titlesize": 9.5,
    "axes.labelsize": 9.0, "axes.linewidth": 0.7, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.6, "xtick.color": SOFT, "ytick.color": SOFT,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "legend.frameon": False, "legend.fontsize": 8.5, "hatch.linewidth": 0.6, "lines.linewidth": 1.6,
    "savefig.facecolor": "white", "savefig.dpi": 160, "svg.hashsalt": "batchsim", "svg.fonttype": "path",
    "text.parse_math": False,    # names come from files, and a dollar in one is a dollar
}


@contextmanager
def our_style() -> Iterator[None]:
    """Our look, and nothing of the user's, until the block ends."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty white figure of this size in inches. pyplot does not know it, so it need not be closed."""
    from simulator.plots.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def new_axes(height: float) -> Axes:
    """The only axes of a new figure."""
    return new_figure(height).add_subplot()


def plain_numbers(axis: Axis) -> None:
    """Ticks as people write them: 20,000 and 0.2."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    if axis.get_scale() == "log":
        from simulator.plots.ticks import SmallNumbers

        axis.set_minor_formatter(SmallNumbers())


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as SVG or PNG, by the suffix. The same figure gives the same bytes.

    The file appears whole or not at all. Returns the path. Raises InputError for any other suffix.
    """
    path = Path(path)
    form = path.suffix.lower().lstrip(".")
    if form not in METADATA:
        raise InputError(f"{path.name}: a figure is written as .svg or .png, not as {path.suffix or 'no suffix'!r}")
    content = svg_of(figure).encode() if form == "svg" else _drawn(figure, form)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix, delete=False) as draft:
        try:
            draft.write(content)
            draft.close()
            os.chmod(draft.name, 0o666 & ~_umask())
            os.replace(draft.name, path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
    return path


def svg_of(figure: Figure) -> str:
    """The figure as SVG, with the values of its curves where a pointer rests on them."""
    drawing = _drawn(figure, "svg").decode()
    return drawing.replace("</svg>", f"{marks(figure)}</svg>")    # positions are known once it has been drawn


def _drawn(figure: Figure, form: str) -> bytes:
    content = BytesIO()
    with our_style():
        figure.savefig(content, format=form, metadata=METADATA[form])
    return content.getvalue()


METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "batchsim"},
    "png": {"Software": "batchsim"},
}
"""What files say about their making, by suffix: nothing that a clock or a version changes."""


def _umask() -> int:
    """The process's mask for new files: temporary files are private, a figure is not."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
