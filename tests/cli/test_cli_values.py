"""What is written behind a flag, to a value."""

from __future__ import annotations

import sys
from io import StringIO
from math import inf

import numpy as np
import pytest

from simulator.cli import values
from simulator.cli.console import PIPED_WIDTH, Trimmed, answers, as_json, plain
from simulator.cli.lines import one_line
from simulator.cli.options import Common, Simulated
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.scenario import FIELDS, Scenario

ASKED_ELSEWHERE = {"policy", "knobs", "load", "exact"}


@pytest.mark.parametrize(("text", "value"), [
    ("32", 32), ("-1", -1), ("0.5", 0.5), ("1e3", 1000.0), ("inf", inf), ("true", True), ("False", False),
    ("declared", "declared"), ("1st", "1st")])
def test_a_knob_is_what_it_looks_like(text: str, value: object) -> None:
    assert values.scalar(text) == value
    assert type(values.scalar(text)) is type(value)


def test_settings_keep_their_policies() -> None:
    found = values.settings(["static.max_batch_size=8", "watermark=.1"])
    assert found == {"static.max_batch_size": 8, "watermark": 0.1}


def test_objectives_come_alone_or_between_commas() -> None:
    assert values.goodput(["ttft:500,tpot:50", "e2el: 9000"]) == {"ttft": 500.0, "tpot": 50.0, "e2el": 9000.0}
    with pytest.raises(InputError, match="says 'ttft' twice"):
        values.goodput(["ttft:1", "ttft:2"])


def test_a_value_may_hold_the_mark() -> None:
    assert values.pairs("--metadata", ["note=a=b, c"]) == {"note": "a=b, c"}


def test_a_column_may_be_absent() -> None:
    assert values.pairs("--columns", ["arrival=,prompt=p"], split=True, empty=True) == {"arrival": "", "prompt": "p"}


def test_flags_left_alone_give_the_scenario_of_the_library() -> None:
    assert Scenario(**Simulated().scenario(Common())) == Scenario()


def test_every_field_of_a_scenario_has_a_flag() -> None:
    assert set(Simulated().scenario(Common())) == set(FIELDS) - ASKED_ELSEWHERE


def test_inf_lifts_every_bound() -> None:
    flags = Simulated(num_prompts="inf", max_concurrency="inf", max_model_len="inf", kv_capacity_tokens="inf",
                      request_rate="inf", burstiness="Infinity")
    asked = flags.scenario(Common())
    assert [asked[name] for name in ("num_prompts", "max_concurrency", "max_model_len", "kv_capacity_tokens",
                                     "request_rate", "burstiness")] == [None, None, UNLIMITED, inf, inf, inf]


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(InputError, match=r"^--seed must be a whole number, not 'x{59}\.\.\.$"):
        values.count("--seed", "x" * 1000)


def test_a_document_has_no_number_that_json_lacks() -> None:
    assert as_json({"a": inf, "b": float("nan"), "c": (1, True)}) == (
        '{\n  "a": "inf",\n  "b": null,\n  "c": [\n    1,\n    true\n  ]\n}\n')
    assert plain({"a": np.float64("inf"), "b": np.array([1.5, float("nan")]), 3: np.int64(7)}) == {
        "a": "inf", "b": [1.5, None], "3": 7}


def test_answers_are_as_wide_as_the_terminal_and_untrimmed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "33")
    assert (answers().width, type(answers().file)) == (33, Trimmed)
    monkeypatch.setattr(sys, "stdout", screen := StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    assert (answers().width, answers().file) == (33, screen)
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(screen, "isatty", lambda: False)
    assert answers().width == PIPED_WIDTH


def test_a_line_is_a_line() -> None:
    assert one_line("a\n\tb \x1b[0m é") == r"a b \x1b[0m é"
