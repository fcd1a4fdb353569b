"""A table keeps few knots and finds the tile steps; what it cannot time alone it finds from the mixed calls."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.kernel_times import KernelTimes, at
from calibration.knots import curve_knots
from calibration.table_fit import fit_table, hat
from cost_models import StepShape

SEQUENCES, CONTEXT = (1, 2, 4, 8, 16, 32, 64), (16, 64, 256, 1024, 4096)
CHUNKS, PRIOR = (16, 64, 256, 1024), (0, 512, 1024, 4096)
TOKENS = [*range(1, 17), *range(24, 1089, 8)]


def decode_us(sequences: int, each: int) -> float:
    return 5 + 0.01 * sequences * each


def beside_us(sequences: int, each: int) -> float:
    return 1 + 0.3 * sequences + 0.018 * sequences * each


def prefill_us(new: int, prior: int) -> float:
    return 5 + 0.5 * new + 0.002 * new * prior


def tiled_us(tokens: int) -> float:
    """A layer whose matrices take a step up behind each 128 rows."""
    return 300.0 + 100.0 * ((tokens - 1) // 128)


def kernels(**changes: object) -> KernelTimes:
    mixed = {(n, p, s, k): 0.8 * prefill_us(n, p) + beside_us(s, k)
             for n in CHUNKS for p in PRIOR for s in SEQUENCES for k in CONTEXT}
    found = {"layers": 32, "linear": {tokens: tiled_us(tokens) for tokens in TOKENS},
             "head": {s: 700.0 + s for s in (1, 2, 8, 65)},
             "decode": {(s, k): decode_us(s, k) for s in SEQUENCES for k in CONTEXT},
             "prefill": {(n, p): prefill_us(n, p) for n in CHUNKS for p in PRIOR}, "mixed": mixed}
    return KernelTimes(**(found | changes))    # type: ignore[arg-type]


def test_a_step_is_what_its_kernels_add_up_to() -> None:
    rows = kernels().steps()
    shape = StepShape(8, 8 * 256, ((64, 512),))
    place = rows.shapes.index(shape)
    by_hand = 32 * (300 + 0.8 * prefill_us(64, 512) + beside_us(8, 256)) + 709    # eight decodes and a chunk
    assert rows.ms[place] == pytest.approx(by_hand / 1e3)


def test_both_edges_of_a_tile_are_knots() -> None:
    table = fit_table(kernels()).table
    assert table is not None
    edges = {128 * tile + offset for tile in range(1, 8) for offset in (0, 8)}
    assert edges <= set(table.linear.at)
    assert len(table.linear.at) <= 20


def test_straight_kernels_are_met_and_mixed_ones_found() -> None:
    fit = fit_table(kernels())
    table = fit.table
    assert table is not None
    assert table.beside_chunks is not None
    assert table.mixed.prefill_attention == pytest.approx(0.8, rel=0.01)
    grid = table.beside_chunks
    for s, row in zip(grid.sequences, grid.us, strict=True):
        # The launch of the chunk's attention and that of the decodes' cannot be told apart: only their sum is known.
        assert row[-1] == pytest.approx(beside_us(s, grid.context[-1]), rel=0.01, abs=2)
    for error in (fit.errors.decode, fit.errors.prefill, fit.errors.mixed):
        assert error is None or error.mape_percent < 0.1
    assert fit.errors.mixed is not None
    assert fit.errors.mixed.points == len(kernels().mixed) // 4
    assert fit.range is not None
    assert (fit.range.decodes, fit.range.chunk_tokens) == ((1, 64), (16, 1024))


def test_without_mixed_calls_the_factors_are_transferred() -> None:
    fit = fit_table(kernels(mixed={}))
    assert fit.table is not None
    assert (fit.table.mixed.origin, fit.table.beside_chunks, fit.errors.mixed) == ("transferred", None, None)


def test_a_cell_that_is_no_knot_is_held_out() -> None:
    """A bump between the knots of a straight grid stays, and is the error that is stated."""
    bumped = {(s, k): decode_us(s, k) for s in SEQUENCES for k in (16, 256, 1024, 4096)}
    odd = {(3, 256): 2 * decode_us(3, 256)}    # a row of one cell makes no whole grid
    fit = fit_table(kernels(decode=bumped | odd, mixed={}))
    assert fit.errors.decode is not None
    assert fit.errors.decode.residuals[-1] > 1.01
    assert fit.table is not None
    assert 3 not in fit.table.decode_attention.sequences


def test_knots_stop_where_the_line_is_close_enough() -> None:
    sizes = list(range(1, 101))
    straight = np.array([3.0 + size for size in sizes])
    assert curve_knots(sizes, straight, 40, 0.001) == [0, 99]
    curved = np.array([float(size) ** 2 for size in sizes])
    kept = curve_knots(sizes, curved, 9, 0.0)
    assert len(kept) == 9
    assert {0, 99} <= set(kept)


def test_hats_add_up_to_one() -> None:
    sizes = np.array([0.5, 1, 5, 16, 300])
    weights = hat([1, 4, 16, 64], sizes)
    assert weights.sum(axis=1) == pytest.approx(1)
    assert weights @ [10, 40, 160, 640] == pytest.approx([10, 10, 50, 160, 640])


def test_nothing_timed_takes_no_time() -> None:
    assert at({}, np.array([1, 2])).tolist() == [0, 0]
    assert at({2: 10.0, 4: 30.0}, np.array([1, 3, 9])).tolist() == [10, 20, 30]
