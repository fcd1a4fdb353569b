"""Baselines of runs: the same code passes, a deliberate change fails and is blamed, and what was meant is accepted."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oldest_first import SOURCE

import simulator as sim
from cost_models import Constant, CostModelError, StepShape, bundled_profiles, cost_model
from cost_models.writing import profile_text
from simulator.errors import InputError
from simulator.policies import POLICIES, Vllm
from simulator.studies import regression
from simulator.studies.regression import NOTHING, PASS, REGRESSION
from simulator.studies.regression.baseline import read_baseline
from simulator.studies.regression.causes import CODE, differences
from simulator.studies.regression.side import _digest, simulated, step_error

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "baselines"
TIGHT = sim.Scenario(num_prompts=60, load="saturated", kv_capacity_tokens=6000, max_model_len=4000)


@pytest.fixture
def baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    regression.save("tight.json", TIGHT)
    return Path("tight.json")


def test_every_policy_is_what_it_was() -> None:
    """The golden baselines; README.md beside them says how a change that is meant goes in."""
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(POLICIES)
    found = regression.regress(GOLDEN)
    found.check()
    assert {each.name: len(each.changes) > 50 for each in found.compared} == dict.fromkeys(POLICIES, True)


def test_no_change_passes(baseline: Path) -> None:
    found = regression.regress(baseline)
    found.check()
    assert found.verdict() == "Pass. tight: 66 metrics within their tolerances."
    assert regression.regress(baseline, TIGHT).passed


def test_another_victim_fails_and_is_blamed(baseline: Path) -> None:
    Path("victims.py").write_text(SOURCE)
    [found] = regression.regress(baseline, policy="victims.py:OldestFirst").compared
    assert found.outcome == REGRESSION
    assert [str(each) for each in found.differences] == ["policy vllm -> victims.py:OldestFirst"]
    assert [stage.what for stage in found.stages] == ["", CODE, "policy vllm -> victims.py:OldestFirst"]
    assert found.stages[0].metrics == found.stages[1].metrics    # the code is what it was
    assert found.stages[2].metrics == found.current.metrics      # type: ignore[union-attr]
    told = found.attribution(found.largest[0])
    assert told[0].startswith("step by step, code and files: +0; policy vllm -> victims.py:OldestFirst: ")


def test_a_policy_file_that_changed_is_what_a_check_is_for(baseline: Path) -> None:
    path = Path("victims.py")
    path.write_text(SOURCE.replace("next(iter(queue.running.values()))", "queue.youngest"))
    regression.save("own.json", TIGHT.but(policy="victims.py:OldestFirst"))
    assert regression.regress("own.json").passed
    path.write_text(SOURCE)
    [found] = regression.regress("own.json").compared
    assert found.outcome == REGRESSION
    assert [str(each) for each in found.differences] == ["victims.py changed"]


def test_files_of_a_baseline_are_looked_for_where_one_stands(baseline: Path, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    Path("victims.py").write_text(SOURCE)
    regression.save("own.json", TIGHT.but(policy="victims.py:OldestFirst"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"^policy file victims\.py: No such .* \(the files of \.\./own\.json are "
                                         r"looked for from the folder that one stands in, so go to the one in which"):
        regression.regress("../own.json")
    with pytest.raises(InputError, match=r"^none\.json: No such file or directory$"):
        regression.regress("../tight.json", results=["none.json"])
    monkeypatch.chdir(tmp_path)
    assert regression.regress("own.json").passed


def test_settings_are_told_apart_and_add_up(baseline: Path) -> None:
    """The parts of each change are its whole, to the last digit that there is."""
    changed = TIGHT.but(kv_capacity_tokens=5000.0, knobs={"max_num_seqs": 8, "block_size": 32})
    [found] = regression.regress(baseline, changed).compared
    assert [stage.what for stage in found.stages] == [
        "", CODE, "max_num_seqs 1024 by default -> 8", "block_size 16 -> 32", "kv_capacity_tokens 6000 -> 5000"]
    for change in found.failed:
        moves = [later.metrics[change.name] - earlier.metrics[change.name]    # type: ignore[operator]
                 for earlier, later in pairwise(found.stages)]
        assert sum(moves) == pytest.approx(change.after - change.before, rel=1e-9)   # type: ignore[operator]
    alone = simulated(sim.run(TIGHT.but(knobs={"max_num_seqs": 8})))
    assert found.stages[2].metrics == alone.metrics


def test_a_setting_that_nobody_gave_is_told_as_it_was_in_force(baseline: Path) -> None:
    """None is no bound here, but the engine's own choice; a file without it says so."""
    regression.save("free.json", TIGHT.but(kv_capacity_tokens=None, num_prompts=5))
    changed = TIGHT.but(num_prompts=5, knobs={"max_num_seqs": 64})
    [found] = regression.regress("free.json", changed).compared
    assert [str(each) for each in found.differences] == [
        "max_num_seqs 1024 by default -> 64", "kv_capacity_tokens 457702 by default -> 6000"]
    document = json.loads(Path("free.json").read_text())
    del document["origin"]["effective"]
    Path("free.json").write_text(json.dumps(document))
    [found] = regression.regress("free.json", changed).compared
    assert [str(each) for each in found.differences] == [
        "max_num_seqs by default -> 64", "kv_capacity_tokens by default -> 6000"]


def test_a_trace_that_is_other_by_a_setting_is_told_once(baseline: Path) -> None:
    checked = regression.regress(baseline, num_prompts=50, tolerance={"all": "1000%"})
    assert [str(each) for each in checked.compared[0].differences] == ["num_prompts 60 -> 50"]
    assert checked.verdict() == ("Pass. tight: 66 metrics within their tolerances. Asked for otherwise: num_prompts 60 "
                                 "-> 50. Tolerance: 1000%, as stated.")
    [found] = regression.regress(baseline, cost_model="roofline").compared
    assert [str(each) for each in found.differences] == ["cost_model auto -> roofline"]


@pytest.mark.usefixtures("baseline")
def test_knobs_given_beside_the_baseline_add_to_its_own() -> None:
    regression.save("knobs.json", TIGHT.but(num_prompts=20, knobs={"max_num_seqs": 8}))
    [found] = regression.regress("knobs.json", knobs={"block_size": 32}).compared
    assert found.current is not None
    assert found.current.scenario is not None
    assert {name: found.current.scenario["knobs"][name] for name in ("max_num_seqs", "block_size")} == {
        "max_num_seqs": 8, "block_size": 32}


def test_more_settings_than_are_told_apart_go_over_together(baseline: Path) -> None:
    changed = TIGHT.but(kv_capacity_tokens=5000.0, gpu="a100-80", request_overhead=1.0, max_model_len=3000, seed=7)
    [found] = regression.regress(baseline, changed).compared
    assert [stage.what for stage in found.stages] == [
        "", CODE, "max_model_len 4000 -> 3000", "gpu h100-80 -> a100-80", "request_overhead by default -> 1",
        "kv_capacity_tokens and seed changed"]


def test_settings_that_go_only_together_are_not_told_apart(baseline: Path) -> None:
    """A budget of 64 tokens holds no 1,024 sequences, so that there is no run with the one and without the other."""
    [found] = regression.regress(baseline, knobs={"max_num_batched_tokens": 64, "max_num_seqs": 8}).compared
    assert len(found.stages) == 4
    regression.save("many.json", TIGHT.but(knobs={"max_num_seqs": 1024}))
    changed = {"max_num_seqs": 8, "max_num_batched_tokens": 64, "block_size": 32}
    assert regression.regress("many.json", knobs=changed).compared[0].stages[-1].what == "block_size 16 -> 32"
    regression.save("few.json", TIGHT.but(knobs=changed))
    [found] = regression.regress("few.json", knobs={"max_num_seqs": 1024, "max_num_batched_tokens": 2048}).compared
    assert (found.outcome, found.stages) == (REGRESSION, ())
    assert [str(each) for each in found.differences] == ["max_num_seqs 8 -> 1024", "max_num_batched_tokens 64 -> 2048"]
    assert all(found.attribution(change) for change in found.largest)


@dataclass
class Own(Vllm):
    """The same rule as an object of this program."""


def test_an_object_in_memory_can_be_checked_and_not_kept(baseline: Path) -> None:
    [found] = regression.regress(baseline, policy=Own(max_num_seqs=4)).compared
    assert [str(each) for each in found.differences] == ["policy vllm -> vllm (an object in memory)"]
    with pytest.raises(InputError, match="the policy of this run is an object in memory, which no file holds"):
        regression.save("own.json", TIGHT.but(policy=Own()))
    assert not Path("own.json").exists()


def test_what_is_accepted_is_kept_with_its_reason(baseline: Path) -> None:
    checked = regression.regress(baseline, knobs={"max_num_seqs": 4})
    [found] = checked.compared
    assert [each.path for each in regression.accept(checked, "four at once is enough")] == ["tight.json"]
    assert regression.regress(baseline).passed
    first, last = read_baseline(baseline).history
    assert (first["reason"], last["reason"]) == ("saved", "four at once is enough")
    assert last["changes"]["steps"] == [found.baseline.side.metrics["steps"],    # type: ignore[union-attr]
                                        found.current.metrics["steps"]]          # type: ignore[union-attr]
    again = baseline.read_bytes()
    assert regression.accept(regression.regress(baseline), "nothing") == []
    assert baseline.read_bytes() == again
    assert sim.run(sim.read_scenario(baseline).scenario()).policy.slots == 4


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_needed(baseline: Path, reason: str) -> None:
    found = regression.regress(baseline, knobs={"max_num_seqs": 4})
    with pytest.raises(InputError, match="is accepted for a reason"):
        regression.accept(found, reason)


def test_nothing_is_no_pass_and_nothing_to_accept(tmp_path: Path) -> None:
    for found in (regression.regress(tmp_path / "none.json"), regression.regress(tmp_path)):
        assert (found.outcome, found.status) == (NOTHING, 3)
        with pytest.raises(AssertionError, match="batchsim baseline save"):
            found.check()
        with pytest.raises(InputError, match="nothing to accept"):
            regression.accept(found, "because")


def test_a_baseline_of_nobody_is_neither_kept_nor_passed(baseline: Path) -> None:
    with pytest.raises(InputError, match=r"^nobody was served: of 66 requests, 66 rejected .*: give .*; a baseline "
                                         "without an answer would pass whatever serves nobody$"):
        regression.save("none.json", TIGHT.but(kv_capacity_tokens=16))
    Path("run.json").write_text(sim.run(TIGHT.but(kv_capacity_tokens=16)).to_json())
    with pytest.raises(InputError, match=r"^nobody was served; a baseline without an answer would"):
        regression.save("none.json", results=["run.json"])
    assert not Path("none.json").exists()
    found = regression.regress("run.json")
    assert (found.status, found.compared[0].reason.partition(":")[0]) == (3, "nobody was served, neither then nor now")
    assert regression.regress("run.json", kv_capacity_tokens=6000).status == 1
    gone = regression.regress(baseline, kv_capacity_tokens=16)
    assert gone.outcome == REGRESSION
    with pytest.raises(InputError, match=r"^tight\.json: nobody is served now; a baseline without an answer"):
        regression.accept(gone, "so")
    assert regression.regress(baseline).passed


def test_other_traffic_is_another_question(baseline: Path) -> None:
    """A trace that changed is refused; a definition that changed with the scenario is not compared."""
    Path("t.csv").write_text("arrival,prompt,output\n0,10,5\n1,10,5\n")
    regression.save("trace.json", sim.Scenario("t.csv", reading={"unit": "s"}, goodput={"ttft": 500}))
    assert regression.regress("trace.json").passed
    [found] = regression.regress("trace.json", goodput={"ttft": 400}).compared
    assert [change.name for change in found.missing] == ["request_goodput"]
    assert found.outcome == NOTHING
    Path("t.csv").write_text("arrival,prompt,output\n0,10,5\n1,10,500\n")
    with pytest.raises(InputError, match=r"t\.csv has changed since this result was written: restore it"):
        regression.regress("trace.json")
    [found] = regression.regress("trace.json", trace="t.csv").compared    # as it is now
    assert found.outcome == REGRESSION
    assert [str(each) for each in found.differences] == ["trace changed", "t.csv changed"]


def profile(factor: float) -> None:
    """A bundled profile whose steps begin with so many times the time."""
    text = profile_text(bundled_profiles()["llama-3.1-8b-h100-80-bf16"])
    text, count = re.subn(r"base_ms: ([\d.]+)", lambda found: f"base_ms: {factor * float(found[1])}", text)
    assert count == 3
    Path("profile.yaml").write_text(text)


def test_a_profile_calibrated_anew_may_scatter_as_it_states(baseline: Path) -> None:
    """Timings repeated on one GPU scatter by some percent: a refit inside of that flips no check, one outside does."""
    profile(1.0)
    regression.save("profile.json", TIGHT.but(num_prompts=30, cost_model="profile.yaml"))
    assert regression.regress("profile.json").passed
    stated = step_error(cost_model("profile.yaml", model="llama-3.1-8b", gpu="h100-80"))
    assert 0.05 < stated < 0.1
    for factor, outcome in ((1.02, PASS), (1.3, REGRESSION)):
        profile(factor)
        [found] = regression.regress("profile.json").compared
        assert found.outcome == outcome
        assert found.tolerances is not None
        assert stated <= found.tolerances.default.relative < stated + 0.001
        assert "step times changed" in map(str, found.differences)
    assert not regression.regress("profile.json", tolerance={"all": "exact"}).passed


def test_graphs_are_a_setting_and_no_calibration(baseline: Path) -> None:
    """Padding to captured sizes makes some steps longer: a change that was asked for, and by no means scatter."""
    [found] = regression.regress(baseline, cuda_graph_sizes="vllm").compared
    assert found.outcome == REGRESSION
    assert [str(each) for each in found.differences] == ["cuda_graph_sizes none -> vllm"]


def test_a_result_stands_for_a_baseline_or_for_a_run(baseline: Path) -> None:
    sim.run(TIGHT).save("run.json", detailed=True)
    sim.run(TIGHT.but(knobs={"max_num_seqs": 4})).save("slow.json")
    assert regression.regress(baseline, results=["run.json"]).passed
    assert regression.regress("run.json").passed
    assert regression.regress("run.json", results=["slow.json"]).outcome == REGRESSION
    with pytest.raises(InputError, match="is a plain result, which keeps no history"):
        regression.accept(regression.regress("run.json", results=["slow.json"]), "because")
    with pytest.raises(InputError, match="results take the place of a run"):
        regression.regress("run.json", TIGHT, results=["slow.json"])


@pytest.mark.parametrize(("change", "words"), [
    ({"format_version": 2}, r"is a baseline of format 2, and this version reads 1"),
    ({"metrics": None}, "is a damaged baseline"), ({"metrics": {"steps": "7"}}, "'steps' must be a number or null"),
    ({"kind": "guessed"}, "its kind must be simulated or measured"), ({"history": 3}, "is a damaged baseline"),
    ({"tolerances": {"all": "much"}}, "a tolerance is exact"), ({"scenario": {"trce": "x"}}, "unknown key 'trce'"),
    ({"origin": {"effective": [1]}}, "is a damaged baseline"), ({"definitions": []}, None)])
def test_a_damaged_baseline_is_one_line(baseline: Path, change: dict[str, object], words: str | None) -> None:
    baseline.write_text(json.dumps(json.loads(baseline.read_text()) | change))
    if words is None:
        assert regression.regress(baseline).outcome == NOTHING    # no definition is stated any more
        return
    with pytest.raises(InputError, match=words) as told:
        regression.regress(baseline)
    assert "\n" not in str(told.value)


def test_all_is_accepted_or_nothing(baseline: Path) -> None:
    Path("all").mkdir()
    regression.save("all/a.json", TIGHT)
    sim.run(TIGHT).save("all/b.json")    # a plain result
    before = Path("all/a.json").read_bytes()
    with pytest.raises(InputError, match=r"all/b\.json: is a plain result"):
        regression.accept(regression.regress("all", knobs={"max_num_seqs": 4}), "because")
    assert Path("all/a.json").read_bytes() == before


plain = st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers(-9, 9) | st.text(max_size=3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "base.json"
    regression.save(path, TIGHT.but(num_prompts=3))
    return path


@settings(max_examples=200)
@given(st.sampled_from(["metrics", "definitions", "conditions", "origin", "spread", "notes", "tolerances", "history",
                        "scenario", "kind"]), st.sampled_from([None, "steps", "step_error", "all", "trace", "files"]),
       plain | st.lists(plain, max_size=2) | st.dictionaries(st.sampled_from(["steps", "all", "ttft", "x"]), plain))
def test_whatever_stands_in_a_baseline_is_read_or_refused(saved: Path, key: str, inner: str | None,
                                                          value: object) -> None:
    document = json.loads(saved.read_text())
    if inner is not None and isinstance(document[key], dict):
        document[key][inner] = value
    else:
        document[key] = value
    path = saved.with_name("other.json")
    path.write_text(json.dumps(document))
    try:
        found = read_baseline(path)
    except InputError as error:
        assert "\n" not in str(error)    # noqa: PT017
        return
    with suppress(InputError):
        regression.regress(path, results=[saved]).to_dict()
    assert found.name == "other"


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", '{"a": 1}'])
def test_what_is_no_baseline_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"b\.json: is no"):
        regression.regress(path)


def test_a_switch_is_told_as_yaml_writes_it() -> None:
    before, after = (simulated(sim.simulate("azure-conv-2023", num_prompts=5, knobs={"enable_prefix_caching": cached}))
                     for cached in (True, False))
    assert [str(each) for each in differences(before, after)] == ["enable_prefix_caching true -> false"]


class Partial(Constant):
    """A cost model that prices no prompts."""

    def time(self, shape: StepShape) -> int:
        if shape.chunks:
            raise CostModelError("no prompts")
        return super().time(shape)


def test_a_model_that_does_not_price_every_step_has_no_digest() -> None:
    assert _digest(Partial(5)) is None
    assert _digest(Constant(5)) == _digest(Constant(5)) != _digest(Constant(6))
