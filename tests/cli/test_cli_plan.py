"""`batchsim plan`: the answer and how sure it is, its files, its exit status, and what it refuses."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]
FEW = ("--num-prompts", "100", "--request-rate", "20", "--replications", "2", "--workers", "1", "--attainment", "0.9",
       "--confidence", "0.8", "--goodput", "ttft:500,tpot:50")

def test_the_answer_is_one_document_and_its_flags_run_it_again(batchsim: Call) -> None:
    status, out, err = batchsim("plan", "--json", *FEW)
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["feasible"] is True
    assert found["replicas"] >= 1
    assert found["question"]["seeds"] == 2
    answer = next(row for row in found["around"]["neighbours"] if row["replicas"] == found["replicas"])
    assert answer["holds"]
    assert found["scenario"]["replicas"] == found["replicas"]
    status, out, _ = batchsim("run", "--json", *FEW[:4], *FEW[-2:], *shlex.split(answer["flags"]))
    run = json.loads(out)
    assert (run["replicas"], run["offered_request_rate"]) == (found["replicas"], pytest.approx(found["request_rate"]))


def test_an_answer_that_there_is_not_is_an_honest_no(batchsim: Call, tmp_path: Path) -> None:
    flags = ("plan", *FEW[:-2], "--goodput", "ttft:1", "-o", "out")
    status, out, err = batchsim(*flags)
    assert (status, err) == (1, "written to out/: plan.json, plan.csv\n")
    text = " ".join(out.split())
    assert "No answer" in text
    assert "even with a replica to itself, a request meets its limits in 0.0% of the cases" in text
    assert "ms on TTFT in place of 1 ms would do" in text
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["feasible"] is False


def test_where_no_gpu_holds_the_model_the_answer_is_no_and_says_why(batchsim: Call) -> None:
    status, out, err = batchsim("plan", *FEW, "--model", "llama-3.1-70b", "--gpus", "h100-80,l40s")
    text = " ".join(out.split())
    assert (status, err) == (1, "")
    assert text.startswith("No answer")
    for gpu in ("h100-80", "l40s"):
        assert f"llama-3.1-70b in bf16 on 1 x {gpu} does not fit" in text


def test_files_are_written_and_the_same_each_time(batchsim: Call, tmp_path: Path) -> None:
    for name in ("a", "b"):
        status, out, err = batchsim("plan", *FEW, "-o", name)
        assert (status, err) == (0, f"written to {name}/: plan.json, plan.csv, goodput.svg, backlog.svg\n")
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("a", "b"))
    assert one == other
    assert set(one) == {"plan.json", "plan.csv", "goodput.svg", "backlog.svg", "manifest.json"}
    rows = one["plan.csv"].decode().splitlines()
    assert len(rows) == 1 + json.loads(one["plan.json"])["runs"]
    assert rows[0].startswith("gpu,tensor_parallel_size,replicas,scale,change,seed,load,requests,share_1,offered,")
    for part in ("The answer and its neighbours", "What binds: each constraint lifted by itself",
                 "Goodput against rate", "A million tokens, in GPU-hours", "Run them again: batchsim run",
                 "A run counts the warm-up, too, which the answer leaves out"):
        assert part in " ".join(out.split())


def test_figures_of_an_earlier_answer_do_not_stay_beside_a_no(batchsim: Call, tmp_path: Path) -> None:
    assert batchsim("plan", *FEW, "-o", "out")[0] == 0
    assert batchsim("plan", *FEW[:-2], "--goodput", "ttft:1", "-o", "out")[0] == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"plan.json", "plan.csv", "manifest.json"}
    assert batchsim("plan", *FEW, "-o", "out")[0] == 0
    figure = tmp_path / "out" / "goodput.svg"
    figure.write_text("mine")
    status, _, err = batchsim("plan", *FEW[:-2], "--goodput", "ttft:1", "-o", "out")
    assert (status, figure.read_text()) == (2, "mine")
    assert "goodput.svg was not written by an earlier run, or was changed since" in err


def test_the_flags_that_run_it_again_outvote_the_file(batchsim: Call, tmp_path: Path) -> None:
    """The file says 2 replicas of another GPU; the answer is 1 of the one that is cheaper."""
    (tmp_path / "svc.yaml").write_text("replicas: 2\ngpu: a100-80\nprices: {a100-80: 90, l40s: 60}\n")
    asked = ("--scenario", "svc.yaml", *FEW)
    status, out, err = batchsim("plan", "--json", *asked, "--gpus", "h100-80,a100-80", "--prices", "h100-80=1")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["replicas"], found["gpu"]) == (1, "h100-80")
    assert found["scenario"]["prices"] == {"a100-80": 90, "l40s": 60, "h100-80": 1}
    flags = found["around"]["neighbours"][0]["flags"]
    assert flags == "--gpu h100-80 --replicas 1"
    run = json.loads(batchsim("run", "--json", "--scenario", "svc.yaml", *FEW[:4], *shlex.split(flags))[1])
    latencies = found["around"]["neighbours"][0]["sample"]
    assert (run["gpu"], run["replicas"]) == ("h100-80", 1)
    assert run["offered_request_rate"] == pytest.approx(latencies["offered"])


@pytest.mark.parametrize(("line", "told"), [
    ("plan", "a plan needs an objective: give --goodput ttft:500,tpot:50, for example, or --slo p99_ttft:500"),
    ("plan --goodput ttft:500 --attainment 2", "attainment must be below 1, not 2.0: nobody can promise every single"),
    ("plan --goodput ttft:500 --find fewest", "unknown answer to find 'fewest'"),
    ("plan --slo p99:500", "--slo takes pP_METRIC:MS such as p99_ttft:500, not 'p99:500'"),
    ("plan --goodput ttft:500 --max-gpus few", "--max-gpus must be a whole number, not 'few'"),
    ("plan --goodput ttft:500 --max-gpus 0", "max_gpus must be a whole number of at least 1, not 0"),
    ("plan --goodput ttft:500 --gpus a100-80,h100", "unknown GPU 'h100': did you mean 'h100-80'?"),
    ("plan --goodput ttft:500 --tensor-parallel-sizes 1,x", "--tensor-parallel-sizes must be a whole number, not 'x'"),
    ("plan --goodput ttft:500 --max-concurrency 3", "a plan needs clients that do not wait for each other"),
    ("plan --goodput ttft:500 --model llama-3.1-70b", "llama-3.1-70b in bf16 on 1 x h100-80 does not fit"),
    ("plan --goodput ttft:500 --set max_num_sequences=3", "unknown knob of vllm 'max_num_sequences'"),
    ("plan --goodput ttft:500 --policy vlm", "unknown policy 'vlm': did you mean 'vllm'?"),
])
def test_what_it_refuses(line: str, told: str, refused: Callable[..., str]) -> None:
    assert refused(*line.split()).startswith(told)
