"""Figures of explain: what they show, on one axis, and the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_plots_figures import run_of, runs, texts
from worlds import trace_of

from simulator.errors import InputError
from simulator.ledger import LEDGERS
from simulator.plots import (
    contention_figure,
    exhaustion_figure,
    ledger_figure,
    paging_figure,
    plot_ledger,
    save_figure,
    strip_figure,
)
from simulator.plots.ledgers import LOOKS
from simulator.studies.explain import Explanation, explain
from simulator.studies.explain.following import strip_frame


@pytest.fixture(scope="module")
def found() -> Explanation:
    return explain("azure-conv-2023", num_prompts=60)


def test_every_part_of_every_ledger_has_a_look() -> None:
    assert {part for parts in LEDGERS.values() for part in parts} <= set(LOOKS)


@pytest.mark.parametrize("name", LEDGERS)
def test_ledgers_stand_one_above_the_other_on_one_axis(name: str) -> None:
    figure = ledger_figure(runs(), name)
    assert len(figure.axes) == 2
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    assert any(text.startswith("static: ") for text in texts(figure))


def test_the_areas_reach_as_high_as_there_are_slots() -> None:
    ax = plot_ledger(run_of("static", max_batch_size=4).ledger_over_time("slots"))
    assert ax.get_ylim() == (0, pytest.approx(4))
    assert len(ax.patches) >= 3    # decode, prefill, held


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        ledger_figure({}, "slots")


def test_the_strip_ends_after_the_request_has_left_everywhere() -> None:
    results = runs()
    figure = strip_figure({label: strip_frame(result, 0) for label, result in results.items()}, 0)
    left = max(float(result.timeline.left[0]) for result in results.values()) / 1e9
    assert [ax.get_xlim()[1] for ax in figure.axes] == [pytest.approx(1.25 * left)] * 2
    assert {"static", "vllm", "its slot", "finished, but held"} <= set(texts(figure)) | {
        tick.get_text() for ax in figure.axes for tick in ax.get_yticklabels()}


def test_what_was_not_measured_leaves_an_empty_axis(tmp_path: Path) -> None:
    alone = explain(trace_of([(0, 10, 1)])).answer("contention").frame("budgets")    # no gap between tokens
    figure = contention_figure(alone)
    assert [ax.get_yscale() for ax in figure.axes] == ["linear", "log"]
    save_figure(figure, tmp_path / "alone.svg")


def test_the_answers_are_drawn_and_drawn_again_the_same(found: Explanation, tmp_path: Path) -> None:
    full = found.answer("exhaustion")
    draw = {"paging": lambda: paging_figure(found.answer("paging").frame("memories")),
            "contention": lambda: contention_figure(found.answer("contention").frame("budgets")),
            "exhaustion": lambda: exhaustion_figure(full.frame("pools"), full.frame("kv"), full.frame("preemptions"),
                                                    0.5)}
    for name, figure in draw.items():
        once, again = (save_figure(figure(), tmp_path / f"{name}{turn}.svg").read_bytes() for turn in (1, 2))
        assert once == again
    assert {"refused, enough free", "effective batch"} <= set(texts(draw["paging"]()))
    assert "KV in use, in a pool of 50% of the peak demand" in texts(draw["exhaustion"]())
