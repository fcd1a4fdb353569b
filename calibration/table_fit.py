"""A kernel table from timed kernels: few knots, a grid for decodes beside chunks, and errors on what is no knot.

Curves and grids keep measured times at their knots, smoothed where more work took less time. Attention of decodes
beside a chunk cannot be timed alone; its grid, and the factor on the chunk's attention, are fitted to three quarters of
the mixed calls by relative least squares of the whole step. The errors are those of ``cost_models.Table`` on the cells
and calls that made no knot.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.errors import FOLDS, error, folds
from calibration.fit import rounded
from calibration.kernel_times import ByOne, ByTwo, KernelTimes
from calibration.knots import curve_knots, monotone
from calibration.least_squares import relative_nonnegative
from calibration.rows import Floats, StepRows
from cost_models import Profile, Table
from cost_models.fits import Error, Errors, Fit, Range
from cost_models.kernels import TRANSFERRED, Curve, DecodeGrid, KernelTable, MixedFactors, PrefillGrid
from cost_models.profile import SCHEMA_VERSION, Host, Origin, Shape

CURVE_KNOTS, AXIS_KNOTS, MISS = 40, 8, 0.01
"""Most knots of a curve and of an axis of a grid, and the relative miss between knots that is good enough."""


def fit_table(times: KernelTimes, seed: int = 0) -> Fit:
    """The table that these kernels come to, with its errors and range."""
    rows = times.steps()
    table = KernelTable(linear=_curve(times.linear), head=_curve(times.head),
                        decode_attention=DecodeGrid(*_grid(times.decode)),
                        prefill_attention=PrefillGrid(*_grid(times.prefill)), mixed=TRANSFERRED,
                        all_reduce=_curve(times.all_reduce) if times.all_reduce else None)
    mixed, unseen = rows.of("mixed"), None
    if len(mixed):
        unseen = folds(len(mixed), seed) == FOLDS - 1
        table = _with_mixed(table, mixed[~unseen], times.layers)
    model = model_of(table, times.layers)
    return Fit("table", table=table, range=Range(**rows.bounds()), held_against="kernels",
               errors=Errors(_pure_error(model, rows.of("decode")), _pure_error(model, rows.of("prefill")),
                             None if unseen is None else _error(model, mixed[unseen])))


def _pure_error(model: Table, rows: StepRows) -> Error | None:
    """On the cells that are no knot of the grid; None if all are."""
    table = model.profile.fit.table
    assert table is not None
    decoding = bool(rows.decodes.all())
    sizes = (rows.decodes, rows.context / np.maximum(rows.decodes, 1)) if decoding else (rows.tokens, rows.prior)
    grid = table.decode_attention if decoding else table.prefill_attention
    axes = list(vars(grid).values())[:2]
    knot = np.isin(sizes[0], axes[0]) & np.isin(sizes[1], axes[1])
    return None if knot.all() else _error(model, rows[~knot])


def _error(model: Table, rows: StepRows) -> Error:
    return error(predicted(model, rows), rows.ms)


def predicted(model: Table, rows: StepRows) -> Floats:
    """Milliseconds that the model gives each row."""
    return np.array([model.time(shape) for shape in rows.shapes]) / 1e6


def model_of(table: KernelTable, layers: int) -> Table:
    """The table as a cost model of kernels alone."""
    shape = Shape(layers, 1, 1, 1, 1, 1, 1)
    ranks = 1 if table.all_reduce is None else 2
    return Table(Profile(SCHEMA_VERSION, "draft", "draft", "draft", ranks, "bf16", "bf16", shape,
                         Origin("measured", "draft", "draft"), Fit("table", table=table), Host("measured", 0.0)))


def _curve(times: ByOne) -> Curve:
    sizes = sorted(times)
    us = monotone(np.array([times[size] for size in sizes]))
    kept = curve_knots(sizes, us, CURVE_KNOTS, MISS)
    return Curve(tuple(sizes[place] for place in kept), tuple(map(rounded, us[kept].tolist())))


def _grid(times: ByTwo) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[float, ...], ...]]:
    """Both axes and the times at their crossings; each axis is thinned for itself."""
    rows, columns = _whole_grid(times)
    table = monotone(np.array([[times[row, column] for column in columns] for row in rows]))
    kept_rows = curve_knots(rows, table, AXIS_KNOTS, MISS)
    kept_columns = curve_knots(columns, table.T, AXIS_KNOTS, MISS)
    us = tuple(tuple(rounded(us) for us in table[row, kept_columns].tolist()) for row in kept_rows)
    return tuple(rows[at] for at in kept_rows), tuple(columns[at] for at in kept_columns), us


def _whole_grid(times: ByTwo) -> tuple[list[int], list[int]]:
    """The axes of a grid that was timed at every crossing: those with the most gaps are left out first."""
    axes = [sorted({cell[axis] for cell in times}) for axis in (0, 1)]
    while True:
        gaps = np.array([[(row, column) not in times for column in axes[1]] for row in axes[0]])
        if not gaps.any():
            return axes[0], axes[1]
        shares = [gaps.mean(axis=1), gaps.mean(axis=0)]
        worst = int(shares[1].max() > shares[0].max())
        del axes[worst][int(shares[worst].argmax())]


def _with_mixed(table: KernelTable, rows: StepRows, layers: int) -> KernelTable:
    """The table with a grid of its own for decodes beside chunks, and a factor on the chunks' attention."""
    sequences, context = table.decode_attention.sequences, table.decode_attention.context
    sequences = tuple(at for at in sequences if at <= rows.decodes.max())
    rest = predicted(model_of(replace(table, mixed=MixedFactors("measured", 0.0, 0.0)), layers), rows)
    chunks = predicted(model_of(replace(table, mixed=MixedFactors("measured", 0.0, 1.0)), layers), rows) - rest
    hats = (hat(sequences, rows.decodes)[:, :, None] * hat(context, rows.context / rows.decodes)[:, None, :])
    columns = np.column_stack([chunks, hats.reshape(len(rows), -1) * layers / 1e3])
    factor, *found = relative_nonnegative(columns, rows.ms, rest).tolist()
    us = monotone(np.reshape(found, (len(sequences), -1)))
    beside = DecodeGrid(sequences, context, tuple(tuple(map(rounded, row)) for row in us.tolist()))
    return replace(table, mixed=MixedFactors("measured", 1.0, rounded(factor)), beside_chunks=beside)


def hat(knots: Sequence[int], sizes: Floats) -> Floats:
    """How much each knot (column) counts at each size (row) of a straight-line interpolation.

    >>> hat([0, 4], np.array([1.0, 4.0])).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    return np.stack([np.interp(sizes, knots, row) for row in np.eye(len(knots))], axis=1)
