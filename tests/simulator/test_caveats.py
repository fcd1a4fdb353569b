"""Caveats: each ratio in closed form or by its sign, and the same numbers each time."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simulator as sim
from simulator.plots import plot_caveats
from simulator.policies import StaticBatching
from simulator.studies.caveats import HOST_MS, STUDIES, Caveat, caveat_frame, caveat_table, caveats, records


@pytest.fixture(scope="module")
def found() -> dict[str, Caveat]:
    return {each.name: each for each in caveats()}


def test_alone_exactly_the_host_time_of_every_step_is_lost(found: dict[str, Caveat]) -> None:
    static = sim.simulate("azure-conv-2023", StaticBatching(max_batch_size=1), num_prompts=300, load="saturated",
                          max_concurrency=1)
    steps, took = len(static.record.ends), int(static.record.ends[-1])
    expected = took / (took + steps * round(sum(HOST_MS) * 1e6))
    assert found["one request at a time"].ratio == pytest.approx(expected)
    assert 0.9 < expected < 1


def test_equal_answers_gain_nothing(found: dict[str, Caveat]) -> None:
    assert found["equal answers"].ratio == 1


def test_one_slot_cannot_be_refilled_better_and_paging_makes_more_of_them(found: dict[str, Caveat]) -> None:
    tight = found["tight memory, no paging"]
    assert tight.ratio == pytest.approx(1)
    assert tight.measured["vllm"] > 2 * tight.measured["static"]


def test_a_noisy_neighbour_is_felt(found: dict[str, Caveat]) -> None:
    shared = found["strict isolation"]
    assert shared.ratio == shared.measured["alone"] / shared.measured["shared"] < 0.8


def test_at_a_low_rate_both_serve_what_is_asked_and_only_the_wait_differs(found: dict[str, Caveat]) -> None:
    assert found["a low rate"].ratio == pytest.approx(1, rel=0.02)


def test_each_has_a_reason_of_two_sentences(found: dict[str, Caveat]) -> None:
    assert len(found) == len(STUDIES) == 5
    for each in found.values():
        assert each.reason.count(". ") == 1
        assert each.reason.endswith(".")


def test_the_same_seed_gives_the_same_numbers(found: dict[str, Caveat]) -> None:
    told: list[tuple[str, int, int]] = []
    again = caveats(progress=lambda *words: told.append(words))
    assert json.dumps(records(again)) == json.dumps(records(tuple(found.values())))
    assert told[-1] == ("caveats", 5, 5)
    assert caveats(seed=1)[4].ratio != again[4].ratio


def test_the_table_and_the_figure_show_the_ratios(found: dict[str, Caveat]) -> None:
    every = tuple(found.values())
    assert [row[-1] for row in caveat_table(every).rows] == [f"{each.ratio:.2f}x" for each in every]
    axes = plot_caveats(caveat_frame(every))
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]    # type: ignore[attr-defined]
    assert np.allclose(ends, [each.ratio for each in every])
    assert [text.get_text() for text in axes.texts] == [f"{each.ratio:.2f}x" for each in every]
