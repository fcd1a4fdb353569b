"""The pictures of a sweep: what they say, and that the same frame gives the same bytes."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_plots_figures import texts

from simulator import InputError
from simulator.plots import heatmap_figure, pareto_figure, save_figure, search_figure
from simulator.plots.style import INK, svg_of

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


def test_each_load_has_a_set_of_its_own() -> None:
    loads = POINTS.assign(load=["rate=2", "rate=2", "rate=4", "rate=4"])
    [axes] = pareto_figure(loads).axes
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[10, 900], [20, 500]], [[30, 100]]]
    assert [line.get_label().partition(":")[0] for line in axes.lines] == ["rate=2", "rate=4"]


def test_points_of_which_none_has_a_rival_are_named_by_their_loads() -> None:
    figure = pareto_figure(POINTS.assign(load=["r=1", "r=2", "r=3", "r=4"], name=""))
    [axes] = figure.axes
    assert not axes.lines
    assert {"r=1", "r=2", "r=3", "r=4"} <= set(texts(figure))


def test_points_at_one_place_share_a_name_and_no_two_names_cross() -> None:
    crowd = pd.DataFrame({"tokens_per_user": [20.0, 20.0, 10.0, 10.001, 10.002],
                          "tokens_per_gpu": [500.0, 500.0, 900.0, 899.0, 898.0], "pareto": True,
                          "name": [f"a_rather_long_name={at}" for at in range(5)]})
    figure = pareto_figure(crowd)
    [axes] = figure.axes
    assert "a_rather_long_name=0 and 1 more" in texts(figure)
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(not box.count_overlaps(boxes[:at]) for at, box in enumerate(boxes))
    assert 2 <= len(boxes) <= 4


def test_no_name_crosses_a_line_or_touches_another_name() -> None:
    """Two sets that meet at the right, and two points so near that their names would lie on each other at the left."""
    sets = pd.DataFrame({"tokens_per_user": [98.8, 84.4, 98.6, 56.5, 20.2, 16.3],
                         "tokens_per_gpu": [1526.0, 2050.0, 1540.0, 3476.0, 4759.0, 4920.0], "pareto": True,
                         "name": [f"max_num_seqs={cap}" for cap in (16, 64, 16, 64, 256, 512)],
                         "load": ["rate_scale=2"] * 2 + ["rate_scale=8"] * 4})
    figure = pareto_figure(sets)
    [axes] = figure.axes
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    assert not [text for text, box in zip(axes.texts, boxes, strict=True)
                if any(line.intersects_bbox(box, filled=False) for line in lines)]
    assert not any(box.expanded(1, 1.1).count_overlaps(boxes[:at]) for at, box in enumerate(boxes))
    assert {"max_num_seqs=64", "max_num_seqs=256", "max_num_seqs=512"} <= set(texts(figure))


def test_the_name_of_a_point_stands_beside_it_and_not_beside_its_neighbour() -> None:
    near = pd.DataFrame({"tokens_per_user": [20.0, 20.4, 33.0], "tokens_per_gpu": [2111.0, 2109.0, 2025.0],
                         "pareto": True, "name": ["by=fcfs", "by=fair", "by=shed"]})
    [axes] = pareto_figure(near).axes
    fair, fcfs = (next(text for text in axes.texts if text.get_text().endswith(name)) for name in ("fair", "fcfs"))
    assert (fcfs.get_ha(), fair.get_ha()) == ("right", "left")    # each leads away from the other


SEARCH = pd.DataFrame({"max_num_seqs": [16.0, 64.0, 1024.0], "block_size": [8.0, 16.0, 16.0],
                       "goodput": [1.0, 9.0, 9.0]})


@pytest.mark.parametrize(("less", "best", "told"), [
    (False, [[64, 16], [1024, 16]], "the best: 9, at 2 points"), (True, [[16, 8]], "the best: 1")])
def test_a_search_rings_the_best(less: bool, best: list[list[float]], told: str) -> None:
    figure = search_figure(SEARCH, "goodput", less=less)
    axes = figure.axes[0]
    assert axes.collections[0].get_array().tolist() == ([9, 9, 1] if less else [1, 9, 9])    # the best lie on top
    assert axes.collections[1].get_offsets().tolist() == best
    assert {told, "goodput", "max_num_seqs", "block_size"} <= set(texts(figure))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


def test_many_columns_are_named_aslant() -> None:
    wide = pd.DataFrame([[float(at) for at in range(30)]], columns=[f"value-{at}" for at in range(30)])
    assert {tick.get_rotation() for tick in heatmap_figure(wide).axes[0].get_xticklabels()} == {40}
    assert {tick.get_rotation() for tick in heatmap_figure(HEAT).axes[0].get_xticklabels()} == {0}


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(InputError, match="nothing to draw: no point has a value of this metric"):
        heatmap_figure(pd.DataFrame([[nan]]))
    with pytest.raises(InputError, match="nothing to draw: no point has a time per output token"):
        pareto_figure(POINTS.iloc[:0])
    with pytest.raises(InputError, match="nothing to draw: no point has a value of this metric"):
        search_figure(SEARCH.iloc[:0])


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_frame_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name, figure in (("h", lambda: heatmap_figure(HEAT, "x")), ("p", lambda: pareto_figure(POINTS, "x")),
                         ("s", lambda: search_figure(SEARCH, "x"))):
        first, second = (save_figure(figure(), tmp_path / f"{name}{at}.{suffix}").read_bytes() for at in (1, 2))
        assert first == second


def test_a_heat_map_of_ten_thousand_cells_bears_a_scale_and_no_numbers() -> None:
    side = 100
    frame = pd.DataFrame(np.arange(side * side, dtype=float).reshape(side, side), pd.Index(range(side), name="rate"),
                         pd.Index(range(side), name="max_num_seqs"))
    frame.iloc[3, 5] = nan
    figure = heatmap_figure(frame)
    axes, bar = figure.axes
    assert not axes.texts
    assert max(len(axes.get_xticks()), len(axes.get_yticks())) <= 13
    assert figure.get_size_inches()[1] < 9
    assert axes.patch.get_hatch()
    assert bar.get_ylabel() == ""
    assert len(svg_of(figure)) < 100_000


def test_the_sets_of_very_many_loads_share_one_look_and_one_line_of_the_legend() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"tokens_per_user": rng.random(600), "tokens_per_gpu": rng.random(600), "pareto": True,
                          "name": "x", "load": [f"rate={at // 6}" for at in range(600)]})
    figure = pareto_figure(frame)
    svg_of(figure)    # no warning that the layout has no room
    words = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert words == ["all points", "100 loads: no other point of the load is better in both"]


def test_a_dense_map_of_numbers_decades_apart_has_a_scale_of_ones_twos_and_fives() -> None:
    dense = pd.DataFrame(np.geomspace(1, 1000, 40).reshape(1, 40))
    figure = heatmap_figure(dense)
    assert [text for axes in figure.axes[:1] for text in axes.texts] == []
    figure.draw_without_rendering()
    shown = [tick.get_text() for tick in figure.axes[1].get_yticklabels()]
    assert [name for name in shown if name in ("1", "2", "3", "5", "10", "20", "500", "1,000")] == [
        "1", "2", "5", "10", "20", "500", "1,000"]


def test_an_axis_of_a_search_counts_by_factors_only_where_its_ends_are_far_apart() -> None:
    for turned, scales in ((["max_num_seqs", "block_size", "goodput"], ("log", "linear")),
                           (["block_size", "max_num_seqs", "goodput"], ("linear", "log"))):
        axes = search_figure(SEARCH[turned]).axes[0]
        assert (axes.get_xscale(), axes.get_yscale()) == scales
