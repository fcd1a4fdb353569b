"""What-if: effective batch and queue of a few runs, drawn fast enough to follow a slider. Draws frames of `curves`.

Margins are fixed: working them out would take longer than the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simulator.plots.batch import TITLES, add_title, plot_batch
from simulator.plots.curves import batch_frame
from simulator.plots.style import new_figure, our_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from simulator.result import Result

BINS = 200
MARGINS = {"left": 0.075, "right": 0.99, "top": 0.93, "bottom": 0.12, "hspace": 0.28}
"""As shares of the figure."""
BESIDE_THE_TITLE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.16, 0.985), "ncols": 3}
"""Where the legend hides no line."""


def whatif_figure(results: Mapping[str, Result]) -> Figure:
    """Effective batch above, queue below, a line a run, on one time axis."""
    with our_style():
        figure = new_figure(3.9)
        figure.set_layout_engine(None)
        figure.subplots_adjust(**MARGINS)
        panels = dict(zip(("useful", "waiting"), figure.subplots(2, sharex=True), strict=True))
        for turn, (label, result) in enumerate(results.items()):
            frame = batch_frame(result, BINS)
            for column, ax in panels.items():
                plot_batch(frame, ax, column=column, label=label, turn=turn)
        for column, ax in panels.items():
            add_title(ax, *TITLES[column])
            ax.label_outer()
        panels["useful"].legend(**BESIDE_THE_TITLE)
    return figure
