"""`batchsim validate`: a table or one document, and one line for what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]
NAME = "llama-3.1-8b-h100-80-bf16"


def recorded(batchsim: Call) -> Path:
    status, _, _ = batchsim("run", "--num-prompts", "40", "--max-tokens", "exact", "--save-detailed", "-o", "out",
                            "--result-filename", "run.json")
    assert status == 0
    return Path("out") / "run.json"


def test_a_run_agrees_with_itself(batchsim: Call) -> None:
    status, out, err = batchsim("validate", NAME, str(recorded(batchsim)))
    assert (status, err) == (0, "")
    rows = [line for line in out.splitlines() if line.rstrip().endswith("%")]
    assert len(rows) == 14
    assert all(row.rstrip().endswith((" +0.0%", " -0.0%")) for row in rows)
    assert "KV pool, assumed unless it was given: 0.92 x 85.00 GB device" in out


def test_as_one_document(batchsim: Call) -> None:
    path = recorded(batchsim)
    status, out, _ = batchsim("validate", NAME, str(path), "--set", "max_num_seqs=1", "--rows", "odd", "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["requests"], found["rows"], found["format"]) == (40, "odd", "batchsim --save-detailed")
    assert found["figures"]["mean_ttft_ms"]["error_percent"] > 100
    assert found["scenario"]["knobs"]["max_num_seqs"] == 1


def test_a_scenario_says_what_neither_profile_nor_run_does(batchsim: Call) -> None:
    path = str(recorded(batchsim))
    Path("s.yaml").write_text("trace: elsewhere.csv\ngpu: h200\nknobs: {max_num_seqs: 1}\nseed: 5\n")
    found = json.loads(batchsim("validate", NAME, path, "--scenario", "s.yaml", "--json")[1])
    said = found["scenario"]
    assert (said["knobs"]["max_num_seqs"], said["gpu"], said["seed"]) == (1, "h100-80", 5)
    assert found["figures"]["mean_ttft_ms"]["error_percent"] > 100
    Path("v.json").write_text(json.dumps(found))
    again = batchsim("validate", NAME, path, "--scenario", "v.json", "--set", "max_num_seqs=1024", "--json")[1]
    assert json.loads(again)["figures"]["mean_ttft_ms"]["error_percent"] == pytest.approx(0, abs=1e-9)


def test_wrong_input_is_one_line(batchsim: Call, refused: Callable[..., str]) -> None:
    path = str(recorded(batchsim))
    assert refused("validate", "nothing.yaml", path) == "nothing.yaml: No such file or directory"
    assert refused("validate", NAME, "nothing.json") == "nothing.json: No such file or directory"
    for knob, told in {"num_prompts=3": "num_prompts is no knob of vllm: the profile or the recorded run says it",
                       "vllm.replicas=2": "replicas is no knob of vllm: a file for --scenario may say it",
                       "seed=9": "seed is no knob of vllm: give --seed"}.items():
        assert refused("validate", NAME, path, "--set", knob) == told
    assert refused("validate", NAME, path, "--rows", "none").startswith("unknown choice of rows 'none'")
    assert refused("validate", NAME, path, "--kv-capacity-tokens", "64").startswith(f"{path}: ")
    Path("no-arrivals.json").write_text(json.dumps({"ttfts": [1.0], "itls": [[]], "input_lens": [1]}))
    assert "nobody knows when requests arrived" in refused("validate", NAME, "no-arrivals.json")
    Path("bad.yaml").write_text("schema_version: 2\nname: x\n")
    assert refused("validate", "bad.yaml", path).startswith("bad.yaml: missing 'model'")
