"""What-if: the answers are those of plain runs, and they come fast enough for a slider."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
import traces
from simulator import InputError
from simulator.studies.whatif import WhatIf, what_if
from traces import TraceError


@pytest.fixture(scope="module")
def chat() -> WhatIf:
    return what_if("azure-conv-2023", num_prompts=300)


def same(one: sim.Result, other: sim.Result) -> bool:
    return one.summary() == other.summary() and np.array_equal(one.record.ends, other.record.ends)


def test_without_settings_it_is_the_plain_run(chat: WhatIf) -> None:
    found = chat.ask()
    for label in ("static", "vllm"):
        assert same(found.results[label], sim.simulate("azure-conv-2023", label, num_prompts=300))


def test_each_setting_is_the_field_or_the_knob_that_it_names(chat: WhatIf) -> None:
    found = chat.ask(batch_cap=8, kv_capacity_tokens=60_000, max_num_batched_tokens=512, request_rate=20.0)
    shared = {"num_prompts": 300, "kv_capacity_tokens": 60_000, "request_rate": 20.0}
    knobs = {"static": {"max_batch_size": 8}, "vllm": {"max_num_seqs": 8, "max_num_batched_tokens": 512}}
    for label, own in knobs.items():
        assert same(found.results[label], sim.simulate("azure-conv-2023", label, knobs=own, **shared))


def test_the_trace_is_read_once(chat: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "load", None)
    assert chat.ask(request_rate=5.0, output_spread=2.0).results["vllm"].summary()["completed"] == 300


def test_equal_answers_leave_no_slot_idle_in_a_full_batch() -> None:
    rows = [(0, 10, 1 + 40 * row % 79) for row in range(64)]
    asked = what_if(trace_of(rows), load="saturated")
    uneven, even = (asked.ask(batch_cap=16, output_spread=spread).results["static"] for spread in (1.0, 0.0))
    # One mixed step, then equal decodes: who is in a batch computes in every step of it.
    assert even.summary()["mean_batch_size"] == 16
    assert uneven.summary()["mean_batch_size"] < 12


def test_a_spread_answer_tells_of_its_trace_and_runs_again(chat: WhatIf) -> None:
    found = chat.ask(output_spread=2.0).results["vllm"]
    assert found.scenario.trace.report.notes[-1] == "outputs spread: to the power of 2, at the same mean"
    assert same(sim.run(found.scenario), found)


def test_what_has_been_made_of_the_trace_is_not_made_again() -> None:
    asked = what_if("azure-conv-2023", sample=0.01, repeat=2, mix={"azure-code-2023": 0.01})
    assert len(asked.ask(output_spread=0.5).results["vllm"].setup.trace) == len(asked.trace)


def test_settings_that_do_not_go_together_are_refused_in_a_line(chat: WhatIf) -> None:
    with pytest.raises(InputError, match=r"max_num_batched_tokens \(16\) must be at least max_num_seqs \(64\)"):
        chat.ask(batch_cap=64, max_num_batched_tokens=16)
    with pytest.raises(TraceError, match="a spread must be a number from 0 to 4, not -1"):
        chat.ask(output_spread=-1)
    with pytest.raises(InputError, match="replicas"):
        what_if(replicas=2)


def test_table_and_figure_show_both_policies(chat: WhatIf) -> None:
    found = chat.ask(request_rate=30.0)
    assert found.table().header == ("", "static", "vllm")
    above, below = found.figure().axes
    assert [text.get_text() for text in above.get_legend().get_texts()] == ["static", "vllm"]
    assert below.get_xlabel() == "time since the start (s)"


def test_another_setting_draws_another_picture_and_the_same_one_the_same(chat: WhatIf) -> None:
    one, same_one, other = (chat.ask(request_rate=rate).figure()._repr_svg_() for rate in (30.0, 30.0, 10.0))
    assert one == same_one != other
    assert one.lstrip().startswith("<?xml")


def test_a_redraw_of_two_thousand_requests_is_little_work() -> None:
    """Half a second of it, as notebooks were measured: some thousand plans, and a picture of some thousand points."""
    found = what_if("azure-conv-2023", num_prompts=2000).ask(batch_cap=64, request_rate=18.0, output_spread=1.5)
    plans = {label: len(result.record.plans) for label, result in found.results.items()}
    assert plans == {"static": 1723, "vllm": 3097}
    assert len(found.figure()._repr_svg_()) < 200_000
    assert len(found.table()._repr_html_()) < 2_000
