"""The pictures of a sweep: what they say, and that the same frame gives the same bytes."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pandas as pd
import pytest
from test_plots_figures import texts

from simulator import InputError
from simulator.plots import heatmap_figure, pareto_figure, save_figure
from simulator.plots.style import INK

HEAT = pd.DataFrame([[1.0, nan], [2345.6, 9000.0]], pd.Index(["1", "inf"], name="request_rate"),
                    pd.Index(["8", "64"], name="max_num_seqs"))
POINTS = pd.DataFrame({"tokens_per_user": [10.0, 20.0, 30.0, 5.0], "tokens_per_gpu": [900.0, 500.0, 100.0, 100.0],
                       "pareto": [True, True, True, False], "name": ["a=1", "a=2", "a=3", "a=4"]})


def test_a_heat_map_writes_each_number_in_its_cell_and_hatches_what_is_missing() -> None:
    figure = heatmap_figure(HEAT, "goodput")
    [axes] = figure.axes
    cells = {text.get_position(): text.get_text() for text in axes.texts}
    assert cells == {(0, 0): "1", (0, 1): "2,346", (1, 1): "9,000"}
    assert [patch.get_xy() for patch in axes.patches] == [(0.5, -0.5)]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["8", "64"]
    assert {"goodput", "max_num_seqs", "request_rate"} <= set(texts(figure))


def test_numbers_are_legible_on_light_and_on_dark() -> None:
    [axes] = heatmap_figure(HEAT).axes
    colours = {text.get_text(): text.get_color() for text in axes.texts}
    assert (colours["1"], colours["9,000"]) == (INK, "white")


@pytest.mark.parametrize(("low", "middle", "share"), [(1.0, 10.0, 0.5), (80.0, 90.0, 0.5)])
def test_factors_count_where_numbers_lie_decades_apart(low: float, middle: float, share: float) -> None:
    [axes] = heatmap_figure(pd.DataFrame([[low, middle, 100.0]])).axes
    assert axes.images[0].norm(middle) == pytest.approx(share)


def test_one_number_alone_can_be_drawn(tmp_path: Path) -> None:
    assert save_figure(heatmap_figure(pd.DataFrame([[3.0]])), tmp_path / "one.png").stat().st_size > 0


def test_the_pareto_set_is_joined_and_named() -> None:
    figure = pareto_figure(POINTS, "4 points")
    [axes] = figure.axes
    assert axes.lines[0].get_xydata().tolist() == [[10, 900], [20, 500], [30, 100]]
    assert len(axes.collections[0].get_offsets()) == 4
    assert {"a=1", "a=2", "a=3", "4 points"} <= set(texts(figure))
    assert "a=4" not in texts(figure)


def test_no_more_than_some_points_are_named() -> None:
    many = pd.DataFrame({"tokens_per_user": range(50), "tokens_per_gpu": range(50, 0, -1), "pareto": True,
                         "name": [f"n{at}" for at in range(50)]})
    assert 4 <= sum(text.startswith("n") and text[1:].isdigit() for text in texts(pareto_figure(many))) <= 8


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(InputError, match="nothing to draw: no point has a value of this metric"):
        heatmap_figure(pd.DataFrame([[nan]]))
    with pytest.raises(InputError, match="nothing to draw: no point has a time per output token"):
        pareto_figure(POINTS.iloc[:0])


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_frame_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name, figure in (("h", lambda: heatmap_figure(HEAT, "x")), ("p", lambda: pareto_figure(POINTS, "x"))):
        first, second = (save_figure(figure(), tmp_path / f"{name}{at}.{suffix}").read_bytes() for at in (1, 2))
        assert first == second
