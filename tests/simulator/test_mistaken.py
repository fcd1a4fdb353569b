"""What a Python program gives in place of something else is told in one line, with the call that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import simulator as sim
from simulator import checks
from traces import Trace, TraceError

TWO = Trace("two", arrival=[0, 1_000_000_000], prompt=[100, 50], output=[10, 30])
FRAME = pd.DataFrame({"at": [0.5, 2.25], "prompt": [100, 50], "output": [10, 30]})


def refusal(call: Any, *given: Any, **options: Any) -> str:
    with pytest.raises(sim.InputError) as caught:
        call(*given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["chat.yaml", Path("chat.yaml")])
def test_run_of_a_name_tells_who_takes_names(name: str | Path) -> None:
    assert refusal(sim.run, name) == (
        "run answers a Scenario, not 'chat.yaml': sim.simulate('chat.yaml') replays a trace of that name, "
        "sim.run(sim.read_scenario('chat.yaml').scenario()) answers a scenario file")


def test_run_of_a_scenario_file_tells_how_it_becomes_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("num_prompts: 2\npolicy: static\n")
    found = sim.read_scenario(path)
    assert refusal(sim.run, found).endswith("type ScenarioFile: it has one, so say sim.run(it.scenario())")
    assert refusal(sim.run, sim.run(found.scenario())).endswith(
        "type Result: it has one, so say sim.run(it.scenario)")


@pytest.mark.parametrize(("given", "told"), [
    ({"policy": "vllm"}, "not a value of type dict: sim.simulate(**fields) takes its fields"),
    (TWO, "not a value of type Trace: sim.simulate(trace) replays a Trace"),
    (FRAME, "not a value of type DataFrame: sim.simulate(trace) replays a Trace"),
    (7, "not a value of type int: sim.simulate(trace, policy) makes one and runs it"),
])
def test_run_of_something_else_tells_the_call_for_it(given: object, told: str) -> None:
    assert refusal(sim.run, given) == f"run answers a Scenario, {told}"


def test_a_mapping_is_no_scenario_file() -> None:
    assert refusal(sim.read_scenario, {"policy": "vllm"}) == (
        "read_scenario takes the path of a file, not a dict: sim.Scenario(**fields) takes fields")


def test_a_frame_is_no_trace_and_the_recipe_in_the_complaint_makes_one() -> None:
    told = refusal(sim.simulate, FRAME)
    assert told.startswith("trace must be a Trace, a name or a file, not a DataFrame: of columns at (seconds, sorted)")
    recipe = told[told.index("traces.Trace"):].removesuffix(" makes one")
    made = eval(recipe, {"traces": __import__("traces"), "frame": FRAME})
    assert (made.arrival.tolist(), made.prompt.tolist(), made.output.tolist()) == (
        [500_000_000, 2_250_000_000], [100, 50], [10, 30])
    assert sim.simulate(made).summary()["completed"] == 2


def test_a_path_is_to_be_given_as_text() -> None:
    assert refusal(sim.simulate, Path("some.csv")).endswith("give the path as text, 'some.csv'")


def test_arrivals_in_seconds_are_told_to_become_nanoseconds() -> None:
    with pytest.raises(TraceError, match="column arrival must be a list of integers, not float64") as caught:
        Trace("mine", arrival=FRAME["at"], prompt=[1, 1], output=[1, 1])
    assert str(caught.value).endswith("; of seconds (seconds * 1e9).astype('int64') makes nanoseconds")
    with pytest.raises(TraceError, match=r"column prompt must be a list of integers, not float64\(2,\)$"):
        Trace("mine", arrival=[0, 1], prompt=[1., 1.], output=[1, 1])


@pytest.mark.parametrize("call", [sim.simulate, sim.compare, sim.Scenario().but])
@pytest.mark.parametrize("name", ["format", "columns", "unit", "lenient", "limit", "window", "prompts"])
def test_how_a_file_is_read_stands_in_reading(call: Any, name: str) -> None:
    assert refusal(call, **{name: "s"}) == f'{name} says how a file is read: give it as reading={{"{name}": ...}}'


def test_a_knob_stands_in_knobs() -> None:
    assert refusal(sim.simulate, max_num_batched_tokens=5).endswith(
        'vllm-0, hybrid: give it as knobs={"max_num_batched_tokens": ...}, or as '
        'settings={"max_num_batched_tokens": ...} where several policies run')


def test_but_names_the_nearest_field() -> None:
    assert refusal(sim.Scenario().but, knob={}).startswith("unknown field of a scenario 'knob': did you mean 'knobs'?")
    assert sim.Scenario().but(num_prompts=5, read=None).num_prompts == 5


@pytest.mark.parametrize(("vary", "told"), [
    ({"max_num_seqs": 32}, "max_num_seqs is varied over a list of values, such as [32], not 32"),
    ({"policy": "vllm"}, "policy is varied over a list of values, such as ['vllm'], not 'vllm'"),
    ({"goodput": {"ttft": 500}}, "goodput is varied over a list of values, such as [{'ttft': 500}], not "
                                 "{'ttft': 500}"),
    (["max_num_seqs"], "vary maps names to values, such as {\"max_num_seqs\": [32, 64]}, not ['max_num_seqs']"),
])
def test_a_sweep_varies_lists(vary: Any, told: str) -> None:
    assert refusal(sim.sweep, vary=vary) == told


@pytest.mark.parametrize(("field", "text", "told"), [
    ("rate_scale", "4", "rate_scale must be above 0"), ("num_prompts", "4", "num_prompts must be a whole number of at "
                                                                           "least 1"),
    ("cooldown", " 1e3", "cooldown must be a number of at least 0"),
])
def test_text_is_no_number_whatever_it_spells(field: str, text: str, told: str) -> None:
    assert refusal(sim.Scenario, **{field: text}) == f"{told}, not the text {text!r}: leave out its quotes"
    assert refusal(sim.Scenario, **{field: "many"}) == f"{told}, not 'many'"


@pytest.mark.parametrize(("call", "given", "told"), [
    (sim.compare, {"policies": "static"}, "policies must be a list, such as ['static'], not 'static'"),
    (sim.plan, {"gpus": "h200"}, "gpus must be a list, such as ['h200'], not 'h200'"),
    (sim.plan, {"tensor_parallel_sizes": 2}, "tensor_parallel_sizes must be a list, such as [2], not 2"),
    (sim.plan, {"slo": "p99_ttft:500"}, "slo must be a list, such as ['p99_ttft:500'], not 'p99_ttft:500'")])
def test_one_value_where_several_belong(call: Any, given: dict[str, Any], told: str) -> None:
    assert refusal(call, **given) == told


def test_a_name_with_bytes_that_are_no_text_is_refused() -> None:
    assert refusal(checks.text, "trace", "a\udc80.csv") == (
        "trace must be text, and 'a\\udc80.csv' has bytes that are none: rename that file")
