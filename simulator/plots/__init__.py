"""Figures: one function makes the numbers (a frame), one draws them (Axes), one makes the whole figure.

`bars` and `curves` turn a Result into frames and know no colour; `timeline` and `batch` draw frames and know no
Result but to ask for its frame; `style` holds the look and writes files. matplotlib is loaded when something is
drawn, not when this package is imported, and pyplot never: no figure needs closing, no setting of yours changes.
"""

from simulator.occupancy import KINDS
from simulator.plots.bars import timeline_frame
from simulator.plots.batch import batch_figure, plot_batch
from simulator.plots.capacity import backlog_figure, goodput_figure, plot_goodput, plot_latencies
from simulator.plots.costs import costs_figure
from simulator.plots.curves import batch_frame
from simulator.plots.factors import (
    caveats_figure,
    findings_figure,
    plot_caveats,
    plot_findings,
    plot_verdict,
    verdict_figure,
)
from simulator.plots.followups import contention_figure, exhaustion_figure, paging_figure
from simulator.plots.ladder import ladder_figure, plot_ladder
from simulator.plots.ledgers import ledger_figure, plot_ledger
from simulator.plots.pareto import pareto_figure, plot_pareto
from simulator.plots.regression import plot_regression, regression_figure
from simulator.plots.search import plot_search, search_figure
from simulator.plots.strip import plot_strip, strip_figure
from simulator.plots.style import save_figure, svg_of
from simulator.plots.summaries import batches_figure, latencies_figure, queue_figure
from simulator.plots.sweep import heatmap_figure, plot_heatmap
from simulator.plots.timeline import plot_timeline, timeline_figure
from simulator.plots.traffic import traffic_figure
from simulator.plots.whatif import whatif_figure

__all__ = [
    "KINDS",
    "backlog_figure",
    "batch_figure",
    "batch_frame",
    "batches_figure",
    "caveats_figure",
    "contention_figure",
    "costs_figure",
    "exhaustion_figure",
    "findings_figure",
    "goodput_figure",
    "heatmap_figure",
    "ladder_figure",
    "latencies_figure",
    "ledger_figure",
    "paging_figure",
    "pareto_figure",
    "plot_batch",
    "plot_caveats",
    "plot_findings",
    "plot_goodput",
    "plot_heatmap",
    "plot_ladder",
    "plot_latencies",
    "plot_ledger",
    "plot_pareto",
    "plot_regression",
    "plot_search",
    "plot_strip",
    "plot_timeline",
    "plot_verdict",
    "queue_figure",
    "regression_figure",
    "save_figure",
    "search_figure",
    "strip_figure",
    "svg_of",
    "timeline_figure",
    "timeline_frame",
    "traffic_figure",
    "verdict_figure",
    "whatif_figure",
]
