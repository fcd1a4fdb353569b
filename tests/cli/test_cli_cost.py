"""`batchsim cost show`: facts and tables in words or as one document, and a figure that replaces nothing unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_it_prints_times_and_floors(batchsim: Call) -> None:
    status, out, err = batchsim("cost", "show", "llama-3.1-8b-h100-80-bf16")
    assert (status, err) == (0, "")
    assert "9.6 (5.8)" in out    # 32 sequences at 1,024 tokens
    assert "error: decode MAPE 2.4, p95 7.5, bias -0.4 (held out)" in out


def test_json_is_one_document(batchsim: Call) -> None:
    status, out, err = batchsim("cost", "show", "roofline", "--model", "llama-3.1-70b", "--tensor-parallel-size", "4",
                                "--json")
    assert (status, err) == (0, "")
    steps = json.loads(out)["steps"]
    assert next(step["floor_ms"] for step in steps if (step["sequences"], step["context"]) == (32, 1024)) == (
        pytest.approx(11.2, abs=0.05))


def test_a_figure_replaces_nothing_unasked(batchsim: Call, tmp_path: Path) -> None:
    status, _, err = batchsim("cost", "show", "roofline", "-o", "costs.svg")
    assert (status, err) == (0, "written to costs.svg\n")
    first = (tmp_path / "costs.svg").read_bytes()
    status, _, err = batchsim("cost", "show", "constant", "-o", "costs.svg")
    assert (status, err) == (2, "batchsim: costs.svg exists: give --force to replace it, or another --output\n")
    assert (tmp_path / "costs.svg").read_bytes() == first
    assert batchsim("cost", "show", "constant", "-o", "costs.svg", "--force")[0] == 0
    assert (tmp_path / "costs.svg").read_bytes() != first


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("cost sho", "unknown command 'sho': did you mean 'show'? (known: show)"),
        ("cost show rofline", "unknown cost model 'rofline': did you mean 'roofline'? "),
        ("cost show absent.yaml", "absent.yaml: No such file or directory"),
        ("cost show -o costs.pdf", "costs.pdf: a figure is written as .svg or .png, not as '.pdf'"),
        ("cost show --tensor-parallel-size x", "--tensor-parallel-size must be a whole number, not 'x'"),
        ("run --noise x", "--noise must be a number, not 'x'"),
        ("run --noise profile --cost-model roofline", "'roofline' states no error to draw noise from: give a number"),
        ("run --cuda-graph-sizes x", "CUDA graph sizes are vllm, none or numbers such as 1,2,4,8, got 'x'"),
        ("run --scheduler-overhead 1,2,3", "--scheduler-overhead takes [POLICY:]MS,MS, not '1,2,3'"),
        ("run --scheduler-overhead 1 --scheduler-overhead 2", "--scheduler-overhead says 'all' twice"),
        ("run --scheduler-overhead vlm:1", "unknown policy of scheduler_overhead 'vlm': did you mean 'vllm'?"),
        ("run --request-overhead -1", "--request-overhead must be a number of at least 0, not -1"),
    ],
)
def test_refusals(line: str, complaint: str, refused: Callable[..., str]) -> None:
    assert refused(*line.split()).startswith(complaint)


def test_the_flags_reach_the_run(batchsim: Call) -> None:
    status, out, _ = batchsim("run", "--num-prompts", "30", "--noise", "profile", "--cuda-graph-sizes", "vllm",
                              "--scheduler-overhead", "0.5", "--scheduler-overhead", "vllm:0.1,0.016",
                              "--request-overhead", "8", "--json")
    told = json.loads(out)
    assert status == 0
    assert (told["noise"], told["cuda_graph_sizes"], told["request_overhead_ms"]) == ("profile", "vllm", 8)
    assert (told["scheduler_overhead_ms"], told["scheduler_overhead_per_request_ms"]) == (0.1, 0.016)
