"""A step composed of measured kernels, added up by hand: table.yaml has 2 layers on 2 GPUs and 0.1 ms of host time."""

from dataclasses import replace
from pathlib import Path

import pytest

from cost_models import CostModelError, Regimes, StepShape, Table, read_profile
from cost_models.fits import Range
from cost_models.kernels import DecodeGrid
from cost_models.lines import blend, line, neighbours

TINY = Table(read_profile(Path(__file__).with_name("table.yaml")))


def us(model: Table, shape: StepShape) -> float:
    """Without the host's share."""
    return model.time(shape) / 1e3 - 100 - 10 * (shape.decodes + len(shape.chunks))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # 2 * (linear + attention + 2 * all-reduce) + head
        (StepShape(1, 16), 2 * (10 + 1 + 2 * 3) + 5),
        (StepShape(1, 40), 2 * (10 + 1.5 + 2 * 3) + 5),
        (StepShape(4, 4 * 64), 2 * (10 + 5 + 2 * 3.3) + 8),
        # between 1 and 4 sequences; below the smallest context the attention stays level
        (StepShape(3, 3 * 64), 2 * (10 + 4 + 2 * 3.2) + 7),
        (StepShape(1, 3), 2 * (10 + 1 + 2 * 3) + 5),
        # beyond both: 16 sequences as 8 and twice what 4 more cost; context goes on as from 64 to 256
        (StepShape(16, 16 * 64), 2 * (12 + 9 + 8 + 2 * 4.5) + 20),
        (StepShape(1, 448), 2 * (10 + 10 + 2 * 3) + 5),
        # prefill: exact at a knot, between knots, below the smallest chunk
        (StepShape(0, 0, ((64, 128),)), 2 * (60 + 14 + 2 * 9.3) + 5),
        (StepShape(0, 0, ((40, 64),)), 2 * (36 + 6.5 + 2 * 6.9) + 5),
        (StepShape(0, 0, ((1, 0),)), 2 * (10 + 2 + 2 * 3) + 5),
        # two chunks launch once
        (StepShape(0, 0, ((16, 0), (16, 128))), 2 * (28 + 2 + 4 - 2 + 2 * 6.1) + 6),
        # 80 tokens are 64 and 16 that come after those: 6 + 3 - 2
        (StepShape(0, 0, ((80, 0),)), 2 * (60 + 16 * 48 / 48 + 7 + 2 * 10.9) + 5),
        # together: 1.5 x decode and 0.5 x prefill attention
        (StepShape(4, 4 * 64, ((16, 0),)), 2 * (16 + 1.5 * 5 + 0.5 * 2 + 2 * 4.9) + 9),
    ],
)
def test_a_step_by_hand(shape: StepShape, expected: float) -> None:
    assert us(TINY, shape) == pytest.approx(expected, abs=0.002)


def test_decodes_beside_chunks_may_have_a_grid_of_their_own() -> None:
    table = TINY.profile.fit.table
    assert table is not None
    beside = DecodeGrid((1, 4), (16, 64), ((20.0, 30.0), (40.0, 80.0)))
    model = Table(replace(TINY.profile, fit=replace(TINY.profile.fit, table=replace(table, beside_chunks=beside))))
    assert us(model, StepShape(4, 4 * 64, ((16, 0),))) == pytest.approx(
        2 * (16 + 1.5 * 80 + 0.5 * 2 + 2 * 4.9) + 9, abs=0.002)
    assert model.time(StepShape(4, 4 * 64)) == TINY.time(StepShape(4, 4 * 64))


def test_range_is_that_of_the_grids_unless_it_is_stated() -> None:
    inside = [StepShape(8, 8 * 256), StepShape(8, 80, ((56, 128),)), StepShape(0, 0, ((32, 0), (32, 0)))]
    outside = [StepShape(9, 9), StepShape(1, 257), StepShape(8, 80, ((57, 0),)), StepShape(0, 0, ((1, 129),))]
    assert [TINY.in_range(shape) for shape in inside + outside] == [True] * 3 + [False] * 4
    stated = replace(TINY.profile, fit=replace(TINY.profile.fit, range=Range(decodes=(1, 9))))
    assert Table(stated).in_range(StepShape(9, 9)) is True


def test_several_gpus_need_an_all_reduce() -> None:
    assert TINY.profile.fit.table is not None
    without = replace(TINY.profile.fit, table=replace(TINY.profile.fit.table, all_reduce=None))
    with pytest.raises(CostModelError, match=r"^profile 'tiny-table': a table for several GPUs needs 'all_reduce'$"):
        Table(replace(TINY.profile, fit=without))
    alone = Table(replace(TINY.profile, fit=without, tensor_parallel_size=1))
    assert us(alone, StepShape(1, 16)) == pytest.approx(2 * 11 + 5)


def test_a_form_that_the_profile_lacks() -> None:
    with pytest.raises(CostModelError, match=r"^profile 'tiny-table' has no regimes: use its form 'table'$"):
        Regimes(TINY.profile)
    with pytest.raises(CostModelError, match=r"^profile 'round' has no table: use its form 'regimes'$"):
        Table(read_profile(Path(__file__).with_name("round.yaml")))


def test_a_line_goes_on_with_its_upper_half_and_not_with_its_last_tile() -> None:
    steps = line([1, 8, 16, 24, 32], [80, 80, 160, 240, 240])
    assert [steps.value(x) for x in (0, 1, 8, 12, 24, 31, 32, 48)] == [80, 80, 80, 120, 240, 240, 240, 320]
    assert line([5], [7]).value(50) == 7


def test_strides_cross_every_knot() -> None:
    found = line([3, 10, 20, 21], [1_000_000, 900_000_000, 50_000_000, 60_000_000])
    for start in range(25):
        for stride in (1, 2, 7, 30):
            assert found.times(start, stride, 12) == [found.time(start + i * stride) for i in range(12)]


def test_neighbours_and_blends() -> None:
    assert [neighbours([4, 8, 16], x) for x in (1, 4, 5, 8, 9, 16, 99)] == [
        (0, 0), (0, 0), (0, 1), (0, 1), (1, 2), (1, 2), (1, 2)]
    assert neighbours([4], 9) == (0, 0)
    # what falls between the last two knots stays level beyond them
    assert blend([10, 50], [20, 40], 16, 4, 8) == [40, 40]
