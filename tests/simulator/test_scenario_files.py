"""A scenario in a file: strict YAML in, the same run out, and a record in every result that brings it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import Affine, trace_of

import simulator as sim
from cost_models import Constant, ModelSpec
from simulator.errors import FileChanged, InputError
from simulator.memory.base import UNLIMITED
from simulator.policies import POLICIES, Vllm
from simulator.policies.making import make_policies, make_policy
from simulator.scenario import FIELDS, HELD_BY, READ_FROM, Scenario
from simulator.scenarios import named, read_scenario, record
from simulator.scenarios.docs import described
from simulator.scenarios.held import together
from simulator.scenarios.template import HEADINGS, SHOWN, template
from simulator.scenarios.yaml_text import parse
from simulator.studies.campaign import Found, Store, campaign
from simulator.traffic import as_read

Write = Callable[[str], Path]
CSV = "ts,in,out\n0,10,5\n1,20,6\n1.5,30,2\n"
READING = "trace: t.csv\nreading: {columns: {arrival: ts, prompt: in, output: out}, unit: s}\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write scenario.yaml, in the folder where we stand."""
    monkeypatch.chdir(tmp_path)

    def put(text: str, name: str = "scenario.yaml") -> Path:
        Path(name).write_text(text)
        return Path(name)

    return put


# ---- YAML

def test_plain_words_are_those_of_yaml_1_2() -> None:
    text = ("a: 1e-5\nb: no\nc: 10:30\nd: 010\ne: .inf\nf: inf\ng: -3\nh: [1, 2.5, {x: y}]\ni:\nj: ~\nk: '7'\n2: 3\n"
            "true: 4\nl: 2026-11-29\nm: True\nn: 0x10\no: 1_000\np: +.5e3\n")
    assert parse(text, "x").content == {
        "a": 1e-5, "b": "no", "c": "10:30", "d": 10, "e": inf, "f": inf, "g": -3, "h": [1, 2.5, {"x": "y"}], "i": None,
        "j": None, "k": "7", "2": 3, "true": 4, "l": "2026-11-29", "m": True, "n": "0x10", "o": "1_000", "p": 500.0}


@pytest.mark.parametrize(("text", "told"), [
    ("a: &x 1\nb: *x", "x, line 1: anchors and aliases (x) are not read: write the value out"),
    ("a: 1\nb: !!python/object:os.system ls", "x, line 2: tags (tag:yaml.org,2002:python/object:os.system) are not "
                                              "read: write plain values"),
    ("a: 1\nb: {c: 2, c: 3}", "x, line 2: key 'c' appears twice"),
    ("a: 1\n'a': 2", "x, line 2: key 'a' appears twice"),
    ("a:\n  <<: {b: 1}", "x, line 2: merge keys (<<) are not read: write the keys out"),
    ("? [a]\n: b", "x, line 1: a key must be a word"),
    ("[" * 30 + "]" * 30, "x, line 1: nested deeper than 20 levels"),
    ("a: 1\n--- 2", "x, line 2: not YAML: but found another document"),
    ("a: b: c", "x, line 1: not YAML: mapping values are not allowed here"),
    ("#" * 300_000, "x: holds more than 256 KiB of text"),
])
def test_yaml_that_is_not_for_us_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text, "x")
    assert str(error.value) == told


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InputError):
        parse(text, "x")


# ---- Reading

def test_an_empty_file_is_the_scenario_of_the_library(write: Write) -> None:
    assert read_scenario(write("# nothing\n")).scenario() == Scenario()


def test_fields_have_their_kinds(write: Write) -> None:
    found = read_scenario(write(
        "num_prompts: 5\nrate_scale: 2\nrequest_timeout:\nknobs: {max_num_seqs: inf}\nmax_concurrency: inf\n"
        "max_model_len: inf\nkv_capacity_tokens: inf\nscheduler_overhead: {all: [0.1, 0.01], vllm: 2}\n"
        "goodput:\n  ttft: 500\nprices: {h100-80: 2.5}\nmax_tokens: 64\n")).scenario()
    assert found == Scenario(num_prompts=5, rate_scale=2.0, knobs={"max_num_seqs": inf}, max_model_len=UNLIMITED,
                             kv_capacity_tokens=inf, scheduler_overhead={"all": (0.1, 0.01), "vllm": (2, 0.0)},
                             goodput={"ttft": 500}, prices={"h100-80": 2.5}, max_tokens=64)
    assert type(found.rate_scale) is float
    found = read_scenario(write("knobs: {max_batch_size: 8, preferred_batch_size: [4, 8]}\n"))
    assert found.fields["knobs"] == {"max_batch_size": 8, "preferred_batch_size": (4, 8)}


@pytest.mark.parametrize(("text", "told"), [
    ("seed: 1\ngpuu: h200", "scenario.yaml, line 2: unknown key 'gpuu': did you mean 'gpu'? (nearest of "),
    ("read: x", "scenario.yaml, line 1: unknown key 'read': did you mean 'reading'? (nearest of "),
    ("rate_scale: 0", "scenario.yaml, line 1: rate_scale must be above 0, not 0"),
    ("rate_scale: fast", "scenario.yaml, line 1: rate_scale must be a number, not 'fast'"),
    ("rate_scale: .nan", "scenario.yaml, line 1: rate_scale must be above 0, not nan"),
    ("seed: [1]", "scenario.yaml, line 1: seed must be one value, not [1]"),
    ("seed: soon", "scenario.yaml, line 1: seed must be a whole number, not 'soon'"),
    ("replicas: inf", "scenario.yaml, line 1: replicas must be a whole number of at least 1, not inf"),
    ("max_retries: .inf", "scenario.yaml, line 1: max_retries must be a whole number of at least 0, not inf"),
    ("kv_capacity_tokens: 1e30", "scenario.yaml, line 1: kv_capacity_tokens must be at most 1152921504606846976 or"),
    ("model: {name: mine, layers: 2}", "scenario.yaml, line 1: model: missing 'hidden' (needed: hidden, heads, "),
    ("gpu: 5", "scenario.yaml, line 1: gpu must be text, not 5: put it in quotes if it is meant so"),
    ("exact: 1", "scenario.yaml, line 1: exact must be true or false, not 1"),
    ("goodput: [ttft]", "scenario.yaml, line 1: goodput must map names to values, not ['ttft']"),
    ("goodput: {tft: 1}", "scenario.yaml: unknown goodput objective 'tft' (known: ttft, tpot, e2el)"),
    ("goodput: {ttft: null}", "scenario.yaml, line 1: goodput ttft must be above 0, not None"),
    ("goodput: {p99_ttft: null}", "scenario.yaml, line 1: goodput p99_ttft must be above 0, not None"),
    ("classes: {a: {ttft: null}}", "scenario.yaml, line 1: classes of a: ttft must be above 0, not None"),
    ("tenants: {a: null}", "scenario.yaml, line 1: tenants a must be above 0, not None"),
    ("prices: {h100-80: null}", "scenario.yaml, line 1: prices h100-80 must be above 0, not None"),
    (f"goodput: {{ttft: {'9' * 400}}}", "scenario.yaml, line 1: goodput ttft is too large, a number of 400 digits"),
    (f"cap_gaps: {'9' * 400}", "scenario.yaml, line 1: cap_gaps is too large, a number of 400 digits"),
    (f"noise: {'9' * 400}", "scenario.yaml: noise, if not profile, is too large, a number of 400 digits"),
    ("prices: {h100: 1}", "scenario.yaml: unknown GPU 'h100': did you mean 'h100-80'? (known: "),
    ("prices: {h100-80: 0}", "scenario.yaml, line 1: prices h100-80 must be above 0, not 0"),
    ("reading: {unt: s}", "scenario.yaml: unknown setting of reading 'unt': did you mean 'unit'? (known: format, "),
    ("reading: {limit: 0}", "scenario.yaml: limit of reading must be a whole number of at least 1, not 0"),
    ("- a", "scenario.yaml: must map fields of a scenario to values: `batchsim init` writes an example"),
])
def test_what_does_not_fit_is_told_with_its_place(text: str, told: str, write: Write) -> None:
    with pytest.raises(InputError) as error:
        read_scenario(write(text))
    assert str(error.value).startswith(told)


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {
    each for each in FIELDS if Scenario.__dataclass_fields__[each].default is None}))
def test_none_is_no_value_where_one_is_needed(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name} must have a value, not None$"):
        Scenario(**{name: None})


@pytest.mark.parametrize(("text", "told"), [
    ('{"backend": "batchsim:vllm"}', "r.json: holds a result without its scenario: run it again with this version"),
    ('{"scenario": {"gpuu": "x"}}', "r.json: unknown key 'gpuu': did you mean 'gpu'? (nearest of "),
    ('{"backend": "openai-chat"}', "r.json: holds what another tool measured, without a scenario: batchsim validate "),
    ("{", "r.json: is not JSON ("),
    ("[1]", "r.json: must map fields of a scenario to values"),
])
def test_json_that_holds_no_scenario(text: str, told: str, write: Write) -> None:
    with pytest.raises(InputError) as error:
        read_scenario(write(text, "r.json"))
    assert str(error.value).startswith(told)


def test_a_file_that_is_not_there_and_one_that_is_no_text(write: Write) -> None:
    with pytest.raises(InputError, match=r"^none.yaml: No such file or directory$"):
        read_scenario("none.yaml")
    write("")
    Path("bytes.yaml").write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(InputError, match=r"^bytes.yaml: is no text in UTF-8$"):
        read_scenario("bytes.yaml")


def test_another_trace_is_read_in_its_own_way_and_another_policy_has_its_own_knobs(write: Write) -> None:
    found = read_scenario(write("trace: a.csv\nreading: {unit: s}\npolicy: orca\nknobs: {max_bs: 4}\nrequest_rate: 3"))
    kept = found.with_changes({"trace": "a.csv", "policy": "orca", "seed": 2})
    assert kept == {"trace": "a.csv", "reading": {"unit": "s"}, "policy": "orca", "knobs": {"max_bs": 4},
                    "request_rate": 3, "seed": 2}
    assert found.with_changes({"trace": "b.csv", "policy": "vllm", "rate_scale": 2.0}) == {
        "trace": "b.csv", "policy": "vllm", "rate_scale": 2.0}


# ---- The record

def again(result: sim.Result, write: Any) -> str:
    """The JSON of the scenario that a result carries, run again."""
    return sim.run(read_scenario(write(result.to_json(), "r.json")).scenario()).to_json()


@pytest.mark.parametrize("name", POLICIES)
def test_a_result_runs_again_to_the_same_bytes(name: str, write: Write) -> None:
    result = sim.simulate("azure-conv-2023", name, num_prompts=20, request_rate=2, goodput={"ttft": 500}, seed=3,
                          prices={"h100-80": 2}, noise=0.1, kv_capacity_tokens=60_000)
    assert again(result, write) == result.to_json()


@pytest.mark.parametrize("knobs", [{}, {"max_num_seqs": inf}, {"max_num_batched_tokens": 4096, "watermark": 0.5}])
def test_knobs_run_again_however_they_were_given(knobs: dict[str, Any], write: Write) -> None:
    options: dict[str, Any] = {"trace": "azure-code-2023", "num_prompts": 10, "max_model_len": UNLIMITED}
    by_name = sim.run(Scenario(policy="vllm", knobs=knobs, **options))
    by_object = sim.run(Scenario(policy=make_policy("vllm", knobs), **options))
    assert again(by_name, write) == by_name.to_json() == by_object.to_json() == again(by_object, write)


def test_a_file_is_read_again_as_it_was_read(write: Write) -> None:
    write(CSV, "t.csv")
    result = sim.run(read_scenario(write(READING + "tenants: {}\nrepeat: 2\nrate_scale: 2\n")).scenario())
    assert again(result, write) == result.to_json()
    assert json.loads(result.to_json())["scenario"]["files"].keys() == {"t.csv"}


def test_a_file_that_has_changed_is_told(write: Write) -> None:
    write(CSV, "t.csv")
    result = sim.run(read_scenario(write(READING)).scenario())
    write(CSV + "9,9,9\n", "t.csv")
    found = read_scenario(write(result.to_json(), "r.json"))
    with pytest.raises(InputError) as error:
        found.scenario()
    assert str(error.value) == ("r.json: t.csv has changed since this result was written: restore it, or give --trace "
                                "t.csv to take it as it is")
    assert len(sim.run(found.scenario(trace="t.csv")).setup.trace) == 4


def test_a_mix_that_has_changed_is_told_with_its_flag(write: Write) -> None:
    for name in ("one.csv", "other.csv"):
        write("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,10,5\n2023-11-16 18:15:49,10,5\n", name)
    mixed = sim.Scenario("azure-conv-2023", num_prompts=2, mix={"one.csv": 2, "other.csv": 0.5})
    found = read_scenario(write(sim.run(mixed).to_json(), "r.json"))
    write("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,10,9\n", "other.csv")
    with pytest.raises(InputError, match=r"other\.csv has .* give --mix one\.csv=2,other\.csv=0\.5 to take it as"):
        found.scenario()


def test_a_file_that_says_no_digests_reads_none_of_what_it_names(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may be a whole disk."""
    monkeypatch.setattr(named, "digest_of", None)
    Path("folder").mkdir()
    assert read_scenario(write("trace: folder\n")).scenario().trace == "folder"


@pytest.mark.parametrize("named", ["/", "/proc"])
def test_a_folder_that_is_a_disk_is_not_digested(named: str, write: Write) -> None:
    text = json.dumps({"scenario": {"trace": named, "files": {named: "0" * 16, "other": 5}}})
    assert read_scenario(write(text, "r.json")).scenario().trace == named


def test_a_policy_file_runs_again_and_a_changed_one_is_told(write: Write) -> None:
    code = ("from dataclasses import dataclass\nfrom simulator.policies import Vllm\n@dataclass\nclass Mine(Vllm):\n"
            "    patience: int = 3\n")
    write(code, "my.py")
    policy = make_policies(["my.py:Mine"], {"patience": 4})[0]
    result = sim.simulate("azure-conv-2023", policy, num_prompts=5)
    said = record(result.scenario)
    assert (said["policy"], said["knobs"]["patience"], list(said["files"])) == ("my.py:Mine", 4, ["my.py"])
    assert again(result, write) == result.to_json()
    write(code + "\n", "my.py")
    with pytest.raises(InputError, match=r"my.py has changed since .* give --policy my.py:Mine to take it as it is"):
        read_scenario("r.json").scenario()


@dataclass
class Own(Vllm):
    """A policy of this program, which no file names."""


@pytest.mark.parametrize(("name", "value"), [("trace", trace_of([(0, 5, 3), (1, 5, 2)])), ("policy", Own())])
def test_an_object_of_a_program_is_told(name: str, value: object, write: Write) -> None:
    fields = {"trace": "azure-conv-2023", "num_prompts": 2, name: value}
    result = sim.run(Scenario(**fields))    # type: ignore[arg-type]
    found = read_scenario(write(result.to_json(), "r.json"))
    with pytest.raises(InputError) as error:
        found.scenario()
    assert str(error.value) == (f"r.json: the {name} of this result was an object in memory, which no file holds: give "
                                f"--{name}")
    assert found.scenario(**{name: {"trace": "azure-code-2023", "policy": "vllm"}[name]})


def test_objects_that_a_name_or_their_fields_bring_back(write: Write) -> None:
    model = ModelSpec("mine", 2, 64, 8, 2, 8, 64, 100, 2048)
    result = sim.simulate("azure-conv-2023", num_prompts=5, model=model, cost_model=Constant(12_345_678))
    assert "in_memory" not in record(result.scenario)
    assert again(result, write) == result.to_json()
    assert record(Scenario(cost_model=Affine()))["in_memory"] == ["cost_model"]


def test_a_comparison_carries_what_was_asked_and_not_what_was_read(write: Write) -> None:
    found = sim.compare("azure-conv-2023", num_prompts=20)
    document = found.records()
    assert document["scenario"]["trace"] == "azure-conv-2023"
    assert "in_memory" not in document["scenario"]
    result = found.results["vllm", "trace"]
    assert again(result, write) == result.to_json()


def test_the_record_stands_apart_from_notes() -> None:
    result = sim.simulate("azure-conv-2023", num_prompts=2)
    with pytest.raises(InputError, match="metadata 'scenario' is a name of the result itself"):
        result.to_json(metadata={"scenario": "x"})


# ---- The trace at hand

@pytest.mark.parametrize("name", sorted(READ_FROM))
def test_another_trace_is_not_the_one_at_hand(name: str) -> None:
    read = as_read(Scenario())
    assert read.read is not None
    other = {"trace": "azure-code-2023", "reading": {"limit": 3}, "mix": {"azure-code-2023": 1.0},
             "tenants": {"a": 1.0}, "sample": 0.5, "repeat": 2, "seed": 1,
             "prompt_scale": 2.0, "output_scale": 2.0}
    assert read.but(**{name: other[name]}).read is None
    assert read.but(policy="static", request_rate=2.0).read is read.read


@pytest.mark.parametrize(("change", "kept"), [
    ({"num_prompts": 5}, True), ({"num_prompts": 11}, False), ({"num_prompts": None}, False), ({"policy": "ft"}, True),
    *(({name: value}, False) for name, value in zip(sorted(HELD_BY), (128, 64, "opt-13b", "truncate", "recorded"),
                                                    strict=True))])
def test_a_trace_that_was_cut_can_only_be_cut_further(change: dict[str, Any], kept: bool) -> None:
    read = as_read(Scenario(num_prompts=10))
    changed = read.but(**change)
    assert (changed.read is not None) == kept
    if kept:
        assert sim.run(changed).to_json() == sim.run(Scenario(num_prompts=10).but(**change)).to_json()


# ---- The template

def test_every_field_and_knob_is_described_and_every_heading_stands() -> None:
    assert set(described(Scenario)) >= set(FIELDS)
    assert set(HEADINGS) | set(SHOWN) <= set(FIELDS)
    for kind in POLICIES.values():
        assert set(described(kind)) >= set(kind.knobs()), kind

@pytest.mark.parametrize("word", ["-", "<<", "\x7f", "\x85", "\u2028", "a #b", "a: b", "\n", "null", "1e5", "{", "\\U"])
def test_a_template_holds_any_word(word: str, write: Write) -> None:
    said = {"cost_model": word, "mix": {word: 2.0}, "reading": {"columns": {word: word}}}
    assert read_scenario(write(template(said))).fields.items() >= said.items()



def test_the_template_asks_for_nothing(write: Write) -> None:
    assert read_scenario(write(template({}))).scenario() == Scenario()
    commented = [line.removeprefix("# ") for line in template({}).splitlines()]
    for name in FIELDS:
        assert any(line.startswith(f"{name}:") for line in commented), name


@given(st.fixed_dictionaries({}, optional={
    "trace": st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1),
    "policy": st.sampled_from(sorted(POLICIES)),
    "rate_scale": st.floats(0.001, 1e6), "request_rate": st.just(inf), "seed": st.integers(0, 1 << 59),
    "num_prompts": st.integers(1, 1 << 59), "require_prefixes": st.booleans(),
    "goodput": st.dictionaries(st.sampled_from(["ttft", "tpot"]), st.floats(0.001, 1e9), min_size=1),
    "tenants": st.dictionaries(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1),
                               st.floats(0.1, 10), min_size=1),
    "scheduler_overhead": st.just({"all": (0.25, 0.5)}),
    "reading": st.just({"columns": {"arrival": "", "prompt": "no: yes"}, "lenient": True}),
}))
def test_what_is_said_is_read_back(said: dict[str, Any]) -> None:
    if {"rate_scale", "request_rate"} <= said.keys():
        del said["rate_scale"]
    from tempfile import TemporaryDirectory
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_text(template(said), encoding="utf-8")
        found = read_scenario(path)
    assert found.scenario() == Scenario(**said)


# ---- Replicas and prices

CLUSTER: list[dict[str, Any]] = [
    {"replicas": 3, "router": "power-of-two", "queue_limit": 2, "max_retries": 1},
    {"replicas": 2, "router": "least-outstanding", "queue_limit": 4, "overflow": "fcfs"},
    {"replicas": 1, "autoscale": "queue:2", "max_replicas": 3, "startup_delay": 1, "cooldown": 2},
]


@pytest.mark.parametrize("options", CLUSTER, ids=lambda options: options.get("router", "autoscale"))
def test_replicas_run_again_to_the_same_bytes(options: dict[str, Any], write: Write) -> None:
    result = sim.simulate("azure-conv-2023", num_prompts=60, rate_scale=8, **options)
    assert again(result, write) == result.to_json()


def test_the_bill_is_of_the_gpu_time_paid() -> None:
    rows = [(0, 5, 3), (10 ** 9, 5, 2)]
    options: dict[str, Any] = {"trace": trace_of(rows), "cost_model": Constant(10 ** 6), "tensor_parallel_size": 2}
    paid = sim.simulate(prices={"h100-80": 3.6, "h200": 9}, **options).summary()
    assert paid["dollars"] == pytest.approx(paid["gpu_seconds"] * 0.001)
    assert paid["gpu_seconds"] == pytest.approx(2 * 1.002)
    assert paid["dollars_per_million_output_tokens"] == pytest.approx(paid["dollars"] / 5 * 1e6)
    unpaid = sim.simulate(prices={"h200": 9}, **options).summary()
    assert (unpaid["dollars"], unpaid["dollars_per_million_output_tokens"]) == (None, None)


# ---- Campaigns

def p50(scenario: Scenario) -> float:
    """What is measured: the median TTFT."""
    return float(sim.run(scenario).summary()["median_ttft_ms"])


def test_a_point_of_a_campaign_carries_what_was_asked(tmp_path: Path) -> None:
    asked = Scenario(num_prompts=10, rate_scale=2.0)
    with Store(tmp_path, told=print) as store:
        found = campaign({"a": asked}, p50, store=store)["a"]
    assert isinstance(found, Found)
    path = next((tmp_path / "points").glob("*.json"))
    assert read_scenario(path).scenario() == asked.but(knobs=record(asked)["knobs"])
    assert p50(read_scenario(path).scenario()) == found.value


def test_files_of_two_rounds_go_together_or_are_told() -> None:
    assert together({"a": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}
    assert together({"a": "1", "b": "2"}, {"b": "2", "c": "3"}) == {"a": "1", "b": "2", "c": "3"}
    with pytest.raises(FileChanged, match="b has changed"):
        together({"a": "1", "b": "2"}, {"b": "3"})


def test_whole_numbers_of_numpy_are_taken() -> None:
    asked = Scenario(num_prompts=np.int64(5), seed=np.uint8(3), knobs={"max_num_seqs": np.int32(2)})    # type: ignore[arg-type]
    assert asked == Scenario(num_prompts=5, seed=3, knobs={"max_num_seqs": 2})
    assert [type(each) for each in (asked.num_prompts, asked.seed, asked.knobs["max_num_seqs"])] == [int] * 3
