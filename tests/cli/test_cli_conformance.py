"""`batchsim conformance`: what it prints, and with which status it ends."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.conformance import ENGINES

Call = Callable[..., tuple[int, str, str]]

GOLDEN = Path(__file__).parents[1] / "golden" / "vllm"


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., str]:
    """A directory with a copy of two recordings, one of them with a step changed by `change`."""

    def make(change: Callable[[dict[str, Any]], None], step: int = 38) -> str:
        folder = tmp_path / "own"
        folder.mkdir()
        for path in [*GOLDEN.glob("01_light.*"), *GOLDEN.glob("09b_giant_output.*")]:
            (folder / path.name).write_bytes(path.read_bytes())
        trace = folder / "09b_giant_output.trace.jsonl.gz"
        lines = [json.loads(line) for line in gzip.decompress(trace.read_bytes()).splitlines()]
        change(lines[step + 1])
        trace.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
        return str(folder)

    return make


def test_each_identical_scenario_is_a_line(batchsim: Call) -> None:
    status, out, err = batchsim("conformance", "vllm", str(GOLDEN), "--scenario", "01*", "--scenario", "09?_giant*")
    assert (status, err) == (0, "4 of 4 identical, 910 steps\n")
    assert out.splitlines() == ["01_light identical, 539 steps", "09a_giant_prompt identical, 51 steps",
                                "09b_giant_output identical, 136 steps", "09c_giant_rejected identical, 184 steps"]


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_the_first_step_that_differs_is_shown_from_both_sides(mode: str, batchsim: Call,
                                                              changed: Callable[..., str]) -> None:
    def change(line: dict[str, Any]) -> None:
        line["preempted"], line["used_sched"] = ["r007"], 99

    status, out, err = batchsim("conformance", "vllm", changed(change), "--mode", mode)
    lines = [line.split() for line in out.splitlines() if line.strip()]
    assert (status, err) == (1, "1 of 2 identical, 577 steps\n")
    assert lines[:3] == [["01_light", "identical,", "539", "steps"],
                         ["09b_giant_output", "differs", "in", "step", "38,", mode, "mode"],
                         ["field", "recorded", "simulated"]]
    assert lines[4:6] == [["preempted", '["r007"]', '["r011"]'], ["used_sched", "99", "95"]]
    assert " ".join(lines[6]) == ("the same: step, arrived, sched, tokens, sampled, finished, used, free, n_running, "
                                  "n_waiting, running, waiting")


def test_long_lists_are_cut_to_where_they_differ(batchsim: Call, changed: Callable[..., str],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    def change(line: dict[str, Any]) -> None:
        line["waiting"] = [*line["waiting"][:7], "nobody", *line["waiting"][8:]]

    status, out, _ = batchsim("conformance", "vllm", changed(change), "--scenario", "09b*")
    assert status == 1
    [cells] = [line for line in out.splitlines() if line.startswith(" waiting")]
    assert '[6 alike, "r014", "nobody",' in cells
    assert '[6 alike, "r014", "s003",' in cells
    assert out.count("more]") == 2


def test_a_step_that_one_side_lacks_is_shown_whole(batchsim: Call, changed: Callable[..., str]) -> None:
    folder = Path(changed(lambda line: None))
    trace = folder / "01_light.trace.jsonl.gz"
    lines = gzip.decompress(trace.read_bytes()).splitlines()
    trace.write_bytes(gzip.compress(b"\n".join(lines[:101])))
    status, out, _ = batchsim("conformance", "vllm", str(folder), "--scenario", "01_light")
    assert status == 1
    assert out.startswith("01_light differs in step 107, exact mode\n")
    assert "recorded: ended" in out
    assert any(line.split()[:2] == ["step", "107"] for line in out.splitlines())


def test_a_header_that_differs_is_named(batchsim: Call, changed: Callable[..., str]) -> None:
    folder = changed(lambda line: line["header"].update(usable_blocks=8), step=-1)
    status, out, _ = batchsim("conformance", "vllm", folder, "--scenario", "09b*")
    assert (status, out.splitlines()[0]) == (1, "09b_giant_output differs in the header, exact mode")
    assert ["usable_blocks", "8", "100"] in [line.split() for line in out.splitlines()]


def test_what_was_not_recorded_is_said(batchsim: Call, changed: Callable[..., str]) -> None:
    folder = changed(lambda line: line.pop("waiting"))
    status, out, _ = batchsim("conformance", "vllm", folder, "--quiet")
    assert status == 0
    assert out.splitlines()[1] == "09b_giant_output identical, 136 steps (not recorded: waiting)"


def test_json_is_one_document(batchsim: Call, changed: Callable[..., str]) -> None:
    status, out, err = batchsim("conformance", "vllm", changed(lambda line: line.update(used=1)), "--json")
    document = json.loads(out)
    assert (status, err) == (1, "")
    assert {key: document[key] for key in ("engine", "modes", "identical", "different")} == {
        "engine": "vllm", "modes": ["exact", "fast"], "identical": 1, "different": 1}
    first, second = document["scenarios"]
    assert first == {"name": "01_light", "identical": True, "steps": 539, "modes": ["exact", "fast"],
                     "unrecorded": [], "difference": None}
    difference = second["difference"]
    assert {key: difference[key] for key in ("mode", "part", "number", "fields")} == {
        "mode": "exact", "part": "step", "number": 38, "fields": ["used"]}
    assert (difference["recorded"]["used"], difference["simulated"]["used"]) == (1, 95)


def test_where_there_is_nothing_nothing_was_compared(batchsim: Call, tmp_path: Path) -> None:
    assert batchsim("conformance", "vllm", str(tmp_path)) == (
        3, "", f"batchsim: {tmp_path} holds no scenario: nothing was compared\n")
    status, out, _ = batchsim("conformance", "vllm", str(tmp_path), "--json")
    assert (status, json.loads(out)["scenarios"]) == (3, [])


def test_what_cannot_be_compared_is_one_line(refused: Callable[..., str], tmp_path: Path) -> None:
    assert refused("conformance", "vlm", str(GOLDEN)) == (
        f"unknown engine 'vlm': did you mean 'vllm'? (known: {', '.join(ENGINES)})")
    assert refused("conformance", "vllm", str(tmp_path / "no")) == (
        f"{tmp_path / 'no'} is not there: give a directory of recordings")
    assert refused("conformance", "vllm", str(GOLDEN / "README.md")) == (
        f"{GOLDEN / 'README.md'} is not a directory: give a directory of recordings")
    assert refused("conformance", "vllm", str(GOLDEN), "--mode", "slow") == (
        "unknown mode 'slow' (known: exact, fast, both)")
    assert refused("conformance", "vllm", str(GOLDEN), "--scenario", "3_kv_preempt").startswith(
        "unknown scenario '3_kv_preempt': did you mean '03_kv_preempt'? (known: 01_light, ")
    (tmp_path / "a.options.json").write_text("{}")
    assert refused("conformance", "vllm", str(tmp_path)).endswith(
        "scenario 'a' has no requests: add a.requests.jsonl")
    (tmp_path / "a.requests.jsonl").write_text("")
    (tmp_path / "a.trace.jsonl").write_text("[")
    assert refused("conformance", "vllm", str(tmp_path)).startswith(
        f"{tmp_path / 'a.trace.jsonl'}, line 1: is not JSON (")
    (tmp_path / "a.options.json").write_text('{"max_num_seq": 3}')
    assert "did you mean 'max_num_seqs'?" in refused("conformance", "vllm", str(tmp_path))
