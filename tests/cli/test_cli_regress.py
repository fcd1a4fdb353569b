"""`batchsim baseline save` and `batchsim regress`: what they end with, what they write, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from oldest_first import SOURCE

from simulator.version import __version__

BROKEN = "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"
"""What a lone brace is."""
Call = Callable[..., tuple[int, str, str]]
SCENARIO = "num_prompts: 60\nload: saturated\nkv_capacity_tokens: 6000\nmax_model_len: 4000\n"
WRITTEN = ["regression.json", "regression.md", "regression.svg", "regression.xml"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def saved(batchsim: Call) -> Call:
    """`batchsim` where base.json is a baseline of chat.yaml."""
    Path("chat.yaml").write_text(SCENARIO)
    status, out, err = batchsim("baseline", "save", "--scenario", "chat.yaml", "-o", "base.json")
    assert (status, err) == (0, "")
    assert "66 metrics of a run are the baseline base.json" in out
    return batchsim


def test_json_tells_what_was_saved(saved: Call) -> None:
    status, out, err = saved("baseline", "save", "--scenario", "chat.yaml", "-o", "json.json", "--json")
    told = json.loads(out)
    assert (status, err, told["baseline"], told["kind"]) == (0, "", "json.json", "simulated")
    assert told["metrics"] == json.loads(Path("base.json").read_text())["metrics"]


def written(directory: str = "batchsim-regress") -> dict[str, bytes]:
    return {name: (Path(directory) / name).read_bytes() for name in WRITTEN}


def test_no_change_ends_with_0(saved: Call) -> None:
    status, out, err = saved("regress", "--baseline", "base.json", "--scenario", "chat.yaml")
    assert (status, out) == (0, "Pass. base: 66 metrics within their tolerances.\n")
    assert err == ("written to batchsim-regress/: regression.svg, regression.md, regression.xml, regression.json\n")
    assert json.loads(written()["regression.json"])["outcome"] == "pass"


def test_another_victim_ends_with_1_and_a_plot_that_shows_it(saved: Call) -> None:
    Path("victims.py").write_text(SOURCE)
    status, out, _ = saved("regress", "--baseline", "base.json", "--policy", "victims.py:OldestFirst")
    assert status == 1
    assert out.startswith("Regression. base: ")
    assert "The runs differ in: policy vllm -> victims.py:OldestFirst." in out
    files = written()
    found = json.loads(files["regression.json"])
    [each] = found["baselines"]
    assert (found["status"], each["outcome"], len(each["largest"])) == (1, "regression", 3)
    assert "policy vllm -> victims.py:OldestFirst" in files["regression.md"].decode()
    suites = ElementTree.fromstring(files["regression.xml"])
    assert int(suites.get("failures", "")) == sum(metric["fails"] for metric in each["metrics"])
    saved("regress", "--baseline", "base.json", "-o", "same")
    assert files["regression.svg"] != written("same")["regression.svg"]


def test_a_scenario_that_changed_is_compared(saved: Call) -> None:
    Path("chat.yaml").write_text(SCENARIO + "knobs: {max_num_seqs: 4}\n")
    status, out, _ = saved("regress", "--baseline", "base.json", "--scenario", "chat.yaml", "--json")
    [each] = json.loads(out)["baselines"]
    assert status == 1
    assert each["told"] == "The runs differ in: max_num_seqs 1024 by default -> 4."
    assert saved("regress", "--baseline", "base.json", "--set", "max_num_seqs=4", "--json")[1] == out


@pytest.mark.parametrize(("arguments", "words"), [
    (["--baseline", "none.json"], "none.json does not exist: make it with `batchsim baseline save`"),
    (["--baseline", "empty"], "empty/ holds no baseline (*.json)"),
    (["--baseline", "base.json", "--metrics", "p99_tttf_ms"], "did you mean 'p99_ttft_ms'?"),
    (["--baseline", "renamed.json"], "it was renamed")])
def test_nothing_compared_ends_with_3(saved: Call, arguments: list[str], words: str) -> None:
    Path("empty").mkdir()
    document = json.loads(Path("base.json").read_text())
    document["metrics"]["p99_ttft"] = document["metrics"].pop("p99_ttft_ms")
    Path("renamed.json").write_text(json.dumps(document))
    status, out, _ = saved("regress", *arguments)
    assert status == 3
    assert out.startswith("Nothing compared. ")
    assert words in " ".join(out.split())
    files = written()
    assert json.loads(files["regression.json"])["status"] == 3
    assert ElementTree.fromstring(files["regression.xml"]).find("testsuite/testcase/error") is not None


def test_bad_input_ends_with_2(saved: Call, refused: Callable[..., str]) -> None:
    Path("bad.json").write_text("{")
    check = ("regress", "--baseline", "base.json")
    assert refused("regress", "--baseline", "bad.json") == f"bad.json: {BROKEN}"
    assert refused(*check, "--tolerance", "much").startswith("a tolerance is exact, a percentage such as 5%")
    assert refused(*check, "--tolerance", "ttft=1%,ttft=2%") == "--tolerance says 'ttft' twice"
    assert refused(*check, "--accept", " ").startswith("a change is accepted for a reason")
    assert refused(*check, "--accept", "so", "--metrics", "ttft") == (
        "--accept takes over the whole run: leave out --metrics")
    assert refused(*check, "--result", "base.json", "--seed", "1").startswith("--result takes the place of a run")
    assert refused(*check, "--result", "none.json") == "none.json: No such file or directory"
    assert refused(*check, "--policy", "vlm").startswith("unknown policy 'vlm': did you mean 'vllm'?")
    assert "--baseline" in refused("regress")
    assert refused("regress", "--baseline", " ") == "--baseline must name a file or a folder, not ' '"
    assert refused("baseline", "save", "-o", "base.json") == (
        "base.json exists: give --force to replace it, or another -o")
    assert refused("baseline", "save", "-o", "new.json", "--result", "bad.json") == f"bad.json: {BROKEN}"
    assert not Path("new.json").exists()
    assert not Path("batchsim-regress").exists()


def test_a_change_that_is_meant_goes_in_with_its_reason(saved: Call) -> None:
    changed = ("regress", "--baseline", "base.json", "--set", "max_num_seqs=4")
    assert saved(*changed)[0] == 1
    status, out, err = saved(*changed, "--accept", "four are enough")
    assert status == 0
    assert re.fullmatch(r"Accepted: base\.json, \d+ worse, \d+ better, \d+ changed\.\n", out)
    assert err.startswith("written to batchsim-regress/: ")
    history = json.loads(Path("base.json").read_text())["history"]
    assert [entry["reason"] for entry in history] == ["saved", "four are enough"]
    assert saved("regress", "--baseline", "base.json")[0] == 0
    status, out, _ = saved("regress", "--baseline", "base.json", "--accept", "again")
    assert (status, out) == (0, "Unchanged: base.json.\n")
    told = json.loads(saved(*changed, "--accept", "so", "--json")[1])
    assert (told["outcome"], told["accepted"]) == ("pass", [])


def test_the_help_tells_no_defaults_where_the_baseline_has_them(batchsim: Call) -> None:
    out = batchsim("regress", "--help")[1]
    assert "[default:" not in out
    assert "[default: h100-80]" in batchsim("baseline", "save", "--help")[1]


def test_tolerances_are_kept_with_the_baseline_and_flags_win(saved: Call) -> None:
    saved("baseline", "save", "--scenario", "chat.yaml", "--tolerance", "500%,steps=exact", "-o", "loose.json")
    changed = ("regress", "--baseline", "loose.json", "--set", "block_size=32", "--json")
    metrics = json.loads(saved(*changed)[1])["baselines"][0]["metrics"]
    assert {metric["metric"]: metric["tolerance"] for metric in metrics}["steps"] == "exact"
    assert [metric["metric"] for metric in metrics if metric["fails"]] == ["steps"]
    assert saved(*changed, "--tolerance", "steps=500%")[0] == 0
    assert saved(*changed, "--tolerance", "exact")[0] == 1
    saved("baseline", "save", "--scenario", "chat.yaml", "--tolerance", "mean_ttft_ms=900%", "-o", "mean.json")
    slower = ("regress", "--baseline", "mean.json", "--request-overhead", "50", "--metrics", "mean_ttft_ms")
    assert [saved(*slower, *more)[0] for more in ((), ("--tolerance", "ttft=exact"))] == [0, 1]


def test_measurements_of_an_engine(saved: Call) -> None:
    """The base and the head of a change, measured in the same job."""
    base = {"backend": "vllm", "completed": 2, "duration": 2.0, "num_prompts": 2, "output_throughput": 100.0,
            "ttfts": [0.1, 0.2], "itls": [[0.01], [0.03]], "output_lens": [2, 2]}
    for name, throughput in (("base1", 100.0), ("base2", 108.0), ("head", 93.0), ("worse", 80.0)):
        Path(f"{name}.json").write_text(json.dumps(base | {"output_throughput": throughput}))
    assert saved("regress", "--baseline", "base1.json", "--result", "base1.json")[0] == 0
    assert saved("regress", "--baseline", "base1.json", "--result", "head.json")[0] == 1
    status, out, _ = saved("baseline", "save", "--result", "base1.json", "--result", "base2.json", "-o", "both.json")
    assert (status, out.splitlines()[0]) == (0, "the mean of 2 results")
    assert saved("regress", "--baseline", "both.json", "--result", "worse.json")[0] == 1
    assert saved("regress", "--baseline", "both.json", "--result", "base1.json")[0] == 0
    assert "these files do not tell" in saved("regress", "--baseline", "base1.json", "--result",
                                                         "worse.json")[1]
    asked = json.loads(Path("base.json").read_text())["conditions"]
    Path("same.json").write_text(json.dumps(base | asked))
    run = ("regress", "--baseline", "base.json", "--result", "same.json", "--metrics", "output_throughput")
    assert "The one is a simulation, the other a measurement." in saved(*run)[1]
    before = Path("base.json").read_bytes()
    status, _, err = saved(*run[:5], "--accept", "it was measured")
    assert (status, Path("base.json").read_bytes()) == (2, before)
    assert err.endswith("base.json: can be run again, and a measurement cannot: save it as a baseline of its own\n")
    status, _, err = saved("regress", "--baseline", "both.json")
    assert (status, err.count("\n")) == (2, 1)
    assert "both.json: has no scenario to run again: give the current measurement with --result" in err


def test_of_a_folder_each_baseline_is_compared(saved: Call) -> None:
    Path("all").mkdir()
    for policy in ("vllm", "orca"):
        saved("baseline", "save", "--scenario", "chat.yaml", "--policy", policy, "-o", f"all/{policy}.json")
    status, out, _ = saved("regress", "--baseline", "all")
    assert (status, out.splitlines()[0]) == (0, "Pass. All 2 passed, 132 metrics within their tolerances.")
    status, out, _ = saved("regress", "--baseline", "all", "--request-overhead", "1", "--json")
    assert [(each["name"], each["outcome"]) for each in json.loads(out)["baselines"]] == [
        ("orca", "regression"), ("vllm", "regression")]
    assert saved("regress", "--baseline", "all", "--request-overhead", "1", "--accept", "an API is in front")[0] == 0
    assert saved("regress", "--baseline", "all")[0] == 0
    status, _, err = saved("regress", "--baseline", "all", "-o", "all/")
    assert (status, sorted(path.name for path in Path("all").iterdir())) == (2, ["orca.json", "vllm.json"])
    assert "all is the folder of the baselines" in err


@pytest.mark.parametrize("name", [b"\xff.json", b"a_$5_$6_^.json", b"]]>|`<b>.json"])
def test_a_baseline_may_have_any_name(saved: Call, name: bytes) -> None:
    path = os.fsdecode(name)
    Path(path).write_bytes(Path("base.json").read_bytes())
    status, out, _ = saved("regress", "--baseline", path, "--request-overhead", "1")
    assert (status, out.startswith("Regression. ")) == (1, True)
    ElementTree.fromstring(written()["regression.xml"])
    assert saved("regress", "--baseline", "x" + path)[0] == 3


def test_a_flag_that_changes_nothing_is_told_of(saved: Call) -> None:
    status, _, err = saved("regress", "--baseline", "base.json", "--router", "random", "--cooldown", "3")
    assert status == 0
    assert "batchsim: --cooldown has no effect: without autoscale there are as many replicas as replicas says" in err
    assert "batchsim: --router has no effect: there is one replica to choose from: give replicas" in err
    assert "no effect" not in saved("regress", "--baseline", "base.json", "--replicas", "2", "--router", "random")[2]


def test_half_a_character_in_a_baseline_is_refused(saved: Call, refused: Callable[..., str]) -> None:
    document = json.loads(Path("base.json").read_text())
    document["metrics"]["half \ud800"] = 1
    Path("half.json").write_text(json.dumps(document))
    assert refused("regress", "--baseline", "half.json") == "half.json: is not JSON (it holds half a character)"


def test_of_a_folder_one_bad_baseline_hides_no_other(saved: Call) -> None:
    """The others are compared, all files are written, and the exit status is that of wrong input."""
    Path("all").mkdir()
    Path("all/good.json").write_bytes(Path("base.json").read_bytes())
    Path("all/bad.json").write_text("{")
    Path("all/engine.json").write_text(json.dumps({"backend": "vllm", "completed": 1, "duration": 2.0}))
    for changed, outcome in (([], "pass"), (["--set", "max_num_seqs=4"], "regression")):
        status, out, _ = saved("regress", "--baseline", "all", *changed)
        assert status == 2
        assert out.startswith("Wrong input. Of 3 baselines 2 cannot be read: bad, engine; 1 ")
        assert f"\nbad: all/bad.json: {BROKEN}\nengine: all/engine.json: has no scenario to run again" in out
        files = written()
        assert [each["outcome"] for each in json.loads(files["regression.json"])["baselines"]] == [
            "wrong input", "wrong input", outcome]
        assert "all/bad.json: is not JSON (" in files["regression.md"].decode()
        error = ElementTree.fromstring(files["regression.xml"]).find("testsuite/testcase/error")
        assert error is not None
        assert error.attrib == {"message": f"all/bad.json: {BROKEN}", "type": "wrong input"}


def test_what_run_wrote_into_a_folder_is_a_baseline(saved: Call) -> None:
    saved("run", "--scenario", "chat.yaml", "-o", "run1", "--result-filename", "mine.json")
    assert sorted(path.name for path in Path("run1").iterdir()) == ["manifest.json", "mine.json"]
    status, out, _ = saved("regress", "--baseline", "run1")
    assert (status, out) == (0, "Pass. mine: 66 metrics within their tolerances.\n")


def test_the_same_bytes_under_any_hash_seed_locale_and_zone(saved: Call, tmp_path: Path) -> None:
    Path("victims.py").write_text(SOURCE)
    saved("regress", "--baseline", "base.json", "--policy", "victims.py:OldestFirst", "-o", "here")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    ran = subprocess.run([sys.executable, "-m", "simulator.cli", "regress", "--baseline", "base.json", "--policy",
                          "victims.py:OldestFirst", "-o", "there"], env=env, cwd=tmp_path, check=False,
                         capture_output=True)
    assert ran.returncode == 1, ran.stderr
    assert written("here") == written("there")


def blocks(language: str, wanted: str) -> str:
    """The block of the README in this language that has these words."""
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    [block] = [each for each in found if wanted in each]
    return block


def test_the_test_of_the_readme_holds_and_breaks(saved: Call) -> None:
    code = blocks("python", "import regression")
    assert len([line for line in code.splitlines() if line.strip()]) == 3
    Path("baselines").mkdir()
    Path("base.json").rename("baselines/chat.json")
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    names["test_serving_is_what_it_was"]()
    document = json.loads(Path("baselines/chat.json").read_text())
    document["metrics"]["steps"] += 1
    Path("baselines/chat.json").write_text(json.dumps(document))
    with pytest.raises(AssertionError, match=r"Changed\. chat: 1 better of 66 metrics\. An exact"):
        names["test_serving_is_what_it_was"]()


def steps(wanted: str) -> list[dict[str, Any]]:
    """Of the only job of the workflow of the README that has these words."""
    [job] = yaml.safe_load(blocks("yaml", wanted))["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def test_the_workflow_of_the_readme_is_one() -> None:
    """It pins the version, and shows the summary and keeps the files also after a failure, but hides no cause."""
    found = steps("--baseline baselines")
    commands = [step["run"] for step in found if "run" in step]
    assert commands[:2] == [f"pip install batchsim=={__version__}", "batchsim regress --baseline baselines"]
    always = [step for step in found if str(step.get("if", "")).startswith("always()")]
    assert all("batchsim-regress" in str(step) for step in always)
    assert [("hashFiles('batchsim-regress/regression.md') != ''" in step["if"]) for step in always] == [True, False]


def test_the_workflow_for_an_engine_compares_what_it_measured(tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell, with an engine that serves three requests."""
    monkeypatch.chdir(tmp_path)
    commands = [step["run"] for step in steps("serve.sh") if "run" in step]
    assert commands[0] == f"pip install batchsim=={__version__}"
    Path("head").mkdir()
    document = {"backend": "vllm", "completed": 3, "duration": 1.0, "output_throughput": 7.0}
    Path("head/serve.sh").write_text(f"#!/bin/sh\ncat > $2 <<'END'\n{json.dumps(document)}\nEND\n")
    Path("head/serve.sh").chmod(0o755)
    shell = "\n".join(["set -e", f'batchsim() {{ {sys.executable} -m simulator.cli "$@"; }}', *commands[1:3]])
    ran = subprocess.run(["bash", "-c", shell], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "the mean of 3 results" in ran.stdout
    assert "Pass. base: 3 metrics within their tolerances. Tolerance: 5%" in ran.stdout.replace("\n", " ")


def test_our_own_ci_checks_a_scenario_for_each_policy() -> None:
    [line] = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("batchsim regress")]
    assert line.split()[2:4] == ["--baseline", "tests/golden/baselines"]
