"""`batchsim explain`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from simulator.cli.explain import FIGURES

Call = Callable[..., tuple[int, str, str]]
FEW = ("explain", "--num-prompts", "40")


def test_it_tells_the_story_the_ledgers_and_the_answers(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim(*FEW, "--quiet")
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for words in ("requests: the first 40 of 19,366 requests of azure-conv-2023", "static: request ", "step by step",
                  "KV pool: 0.92 x 85.00 GB device", "cost model: llama-3.1-8b-h100-80-bf16 (",
                  "static: 32 slots, the most by default; the longest reservation, request 37 (prompt 4,105",
                  "; a longer trace may have a longer one, and fewer slots", "Where the KV cache went",
                  "Why does it need paged memory?", "How do prefill and decode contend?",
                  "What happens when KV runs out in mid-batch?"):
        assert words in flat
    assert list(tmp_path.iterdir()) == []


def test_it_writes_its_findings_and_figures_and_the_same_bytes_again(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim(*FEW, "--json", "-o", "there")
    assert (status, err) == (0, "")
    there = tmp_path / "there"
    assert {path.name for path in there.iterdir()} == {"explain.json", "manifest.json", *FIGURES}
    assert json.loads(out) == json.loads((there / "explain.json").read_text())
    before = {path.name: path.read_bytes() for path in there.iterdir()}
    assert batchsim(*FEW, "-o", "there")[2].startswith("written to there/: explain.json, strip.svg, ")
    assert {path.name: path.read_bytes() for path in there.iterdir()} == before


def test_what_was_done_to_the_trace_is_told(batchsim: Call) -> None:
    line = (*FEW, "--sample", "0.9", "--output-scale", "0.5", "--repeat", "2")
    done = ["a sample of 0.9 of the requests", "prompts x 1, outputs x 0.5", "repeated: 2 rounds"]
    assert set(done) <= set(batchsim(*line)[1].splitlines())
    assert json.loads(batchsim(*line, "--json")[1])["facts"][-3:] == done


def test_a_request_is_chosen_by_its_row(batchsim: Call) -> None:
    out = batchsim(*FEW, "--json", "--request", "5", "--policies", "vllm")[1]
    assert json.loads(out)["request"] == 5
    assert set(json.loads(out)["story"]) == {"vllm"}


def test_what_it_refuses(refused: Callable[..., str], tmp_path: Path) -> None:
    assert refused(*FEW, "--request", "one") == "--request must be a whole number, not 'one'"
    assert refused(*FEW, "--request", "40").startswith("request must be shortest or a row of the 40 used")
    assert refused(*FEW, "--policies", "vlm").startswith("unknown policy 'vlm': did you mean 'vllm'?")
    (tmp_path / "explain.json").write_text("mine")
    assert refused(*FEW, "-o", ".").startswith("explain.json was not written by an earlier run")
