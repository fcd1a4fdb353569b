"""`batchsim sweep` and `batchsim plot`: files that survive whatever happens, and words for what went wrong."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from filelock import FileLock
from rich.console import Console

from simulator import sweep as sweep_in_python
from simulator.cli import progress as progress_module
from simulator.cli.progress import Bar, Log
from simulator.cli.varied import listed, spaces, spelled, varied
from simulator.errors import InputError
from simulator.studies.campaign.store import KEPT

Call = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
FEW = ("--num-prompts", "30", "--workers", "1")
GRID = ("--vary", "max_num_seqs=2,8", "--vary", "request-rate=2,inf")
FILES = {".lock", "failures.json", "heatmap.svg", "manifest.json", "pareto.svg", "points", "summary.csv",
         "summary.json", "sweep.json"}


def contents(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_what_a_sweep_writes_and_says(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim("sweep", *FEW, *GRID, "--goodput", "ttft:500,tpot:50", "-o", "out")
    assert (status, err) == (
        0, "written to out/: summary.json, summary.csv, sweep.json, failures.json and the figures\n")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    records = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [(each["max_num_seqs"], each["request_rate"]) for each in records] == [
        (2, 2), (2, "inf"), (8, 2), (8, "inf")]
    assert {each["completed"] for each in records} == {30}
    assert [line.split()[:2] for line in out.splitlines()[4:8]] == [["2", "2"], ["2", "inf"], ["8", "2"], ["8", "inf"]]
    assert "\ncost model: llama-3.1-8b-h100-80-bf16 (fitted to " in out
    assert "\nhow far chance moves these differences was not measured;" in out
    rows = list(csv.DictReader((tmp_path / "out" / "summary.csv").read_text().splitlines()))
    assert [row["max_num_seqs"] for row in rows] == ["2", "2", "8", "8"]
    assert float(rows[0]["mean_ttft_ms"]) == records[0]["mean_ttft_ms"]
    assert json.loads((tmp_path / "out" / "failures.json").read_text()) == []
    assert len(list((tmp_path / "out" / "points").iterdir())) == 4


def test_json_is_one_document_and_what_python_finds(batchsim: Call) -> None:
    status, out, _ = batchsim("sweep", *FEW, *GRID, "--json", "--quiet", "-o", "out")
    found = sweep_in_python(num_prompts=30, vary={"max_num_seqs": [2, 8], "request_rate": [2, float("inf")]})
    assert status == 0
    assert json.loads(out) == {"runs": found.records, "failures": {}}


def test_any_number_of_workers_writes_the_same_bytes(batchsim: Call, tmp_path: Path) -> None:
    for workers in ("1", "2"):
        batchsim("sweep", "--num-prompts", "30", "--workers", workers, *GRID, "-o", workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_resuming_a_finished_sweep_changes_nothing_and_a_larger_one_runs_what_is_new(batchsim: Call,
                                                                                      tmp_path: Path) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    before = contents(tmp_path / "out")
    assert batchsim("sweep", *FEW, *GRID, "-o", "out", "--resume")[0] == 0
    assert contents(tmp_path / "out") == before
    batchsim("sweep", *FEW, *GRID, "--vary", "seed=0,1", "-o", "out", "--resume")
    after = contents(tmp_path / "out")
    assert len([name for name in after if name.startswith("points")]) == 8
    assert {name: text for name, text in before.items() if name.startswith("points")}.items() <= after.items()


def test_other_percentiles_are_measured_anew_if_forced(batchsim: Call, tmp_path: Path) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    batchsim("sweep", *FEW, *GRID, "-o", "out", "--resume", "--metric-percentiles", "90")
    assert "p90_ttft_ms" not in json.loads((tmp_path / "out" / "summary.json").read_text())[0]
    batchsim("sweep", *FEW, *GRID, "-o", "out", "--resume", "--metric-percentiles", "90", "--force")
    assert "p90_ttft_ms" in json.loads((tmp_path / "out" / "summary.json").read_text())[0]


def test_other_settings_do_not_replace_the_summary_unasked(refused: Refused, batchsim: Call, tmp_path: Path) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    before = contents(tmp_path / "out")
    other = ("sweep", "--num-prompts", "20", "--workers", "1", *GRID, "-o", "out", "--resume")
    assert refused(*other) == ("out has 4 points of other settings, and none that is asked for now: give another "
                               "directory, or --force to leave them out of its summaries")
    assert contents(tmp_path / "out") == before
    left = "out also has 4 points that this sweep does not ask for: its summaries and figures leave them out\n"
    assert batchsim(*other, "--force")[2].endswith(left)
    fewer = batchsim("sweep", *FEW, "--vary", "max_num_seqs=2", "--vary", "request-rate=2", "-o", "out", "--resume")
    assert fewer[0] == 0
    assert fewer[2].endswith("out also has 7 points that this sweep does not ask for: its summaries and figures leave "
                             "them out\n")


def test_what_goes_with_an_earlier_sweep_is_taken_away(batchsim: Call, tmp_path: Path) -> None:
    out = tmp_path / "out"
    batchsim("sweep", *FEW, *GRID, "-o", "out", "--replications", "2")
    assert {path.name for path in out.iterdir()} == FILES | {"differences.json"}
    batchsim("sweep", *FEW, *GRID, "-o", "out", "--resume", "--force")
    assert {path.name for path in out.iterdir()} == FILES
    batchsim("sweep", *FEW, "--vary", "tensor_parallel_size=3,5", "-o", "out", "--resume", "--force")
    assert {path.name for path in out.iterdir()} == FILES - {"heatmap.svg", "pareto.svg"}
    listed_there = json.loads((out / "manifest.json").read_text())["sha256"]
    assert listed_there.keys() == {"failures.json", "summary.csv", "summary.json", "sweep.json"}


def test_no_name_and_no_value_is_cut(batchsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = ("sweep", *FEW, "--policy", "tensorrt_llm", "--vary", "max_tokens=exact,1024", "--quiet",
            "--vary", "capacity_scheduler_policy=GUARANTEED_NO_EVICT,MAX_UTILIZATION", "-o")
    for columns in (40, 70, 100, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        out = batchsim(*wide, str(columns))[1]
        assert "\N{HORIZONTAL ELLIPSIS}" not in out
        assert max(map(len, out.splitlines())) <= columns
        for word in ("capacity_scheduler_policy", "GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "max_tokens", "tok/s/GPU"):
            assert word in out


def test_a_point_that_fails_is_reported_with_its_scenario(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim("sweep", *FEW, "--vary", "tensor_parallel_size=1,3", "--json", "-o", "out")
    assert status == 1
    assert [each["tensor_parallel_size"] for each in json.loads(out)["runs"]] == [1]
    assert err.startswith("batchsim: tensor_parallel_size=3 failed, tried once: tensor_parallel_size 3 does not deal ")
    [failure] = json.loads((tmp_path / "out" / "failures.json").read_text())
    assert failure["scenario"]["tensor_parallel_size"] == 3


def test_a_sweep_in_which_nothing_comes_out_is_told(batchsim: Call, refused: Refused, tmp_path: Path) -> None:
    status, out, _ = batchsim("sweep", *FEW, "--vary", "tensor_parallel_size=3,5", "-o", "out")
    assert status == 1
    assert "nothing was measured" in out
    assert "heatmap.svg" not in {path.name for path in (tmp_path / "out").iterdir()}
    assert refused("plot", "out") == "out: nothing to draw: no point served anything"


def test_a_disk_that_takes_no_summary_loses_no_point(refused: Refused, batchsim: Call, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    line = ("sweep", *FEW, "--vary", "max_num_seqs=2,8", "--quiet", "-o", "out")
    with monkeypatch.context() as disk:
        disk.setattr("simulator.cli.sweep.ResultDirectory.write", full)
        assert refused(*line) == f"out: No space left on device: {KEPT}"
    points = contents(tmp_path / "out")
    assert len([name for name in points if name.startswith("points")]) == 2
    assert batchsim(*line, "--resume")[0] == 0
    assert points.items() <= contents(tmp_path / "out").items()


def test_a_sweep_that_serves_nobody_says_why(batchsim: Call, tmp_path: Path) -> None:
    """As `run` does, in the same words; a point that serves somebody is enough."""
    pool = ("--num-prompts", "3", "--kv-capacity-tokens", "64", "--quiet")
    status, out, err = batchsim("sweep", *pool, "--vary", "max_num_seqs=1,2", "-o", "none")
    assert (status, err) == (1, batchsim("run", *pool)[2])
    assert "3 of 3 requests were rejected with max_num_seqs=2" in out
    assert (tmp_path / "none" / "summary.json").exists()
    assert batchsim("sweep", *pool, "--vary", "max_num_seqs=1,2", "-o", "more", "--json")[::2] == (1, err)
    assert batchsim("sweep", *pool, "--vary", "kv_capacity_tokens=64,9000", "-o", "one")[::2] == (0, "")


def test_two_sweeps_are_kept_apart(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"):
        assert refused("sweep", *FEW, *GRID, "-o", "out") == (
            "out is being written by another run: wait for it, or give another directory")


def test_an_earlier_sweep_is_not_overwritten_unasked(batchsim: Call, refused: Refused) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    assert refused("sweep", *FEW, *GRID, "-o", "out") == (
        "out has the points of an earlier run: give --resume to go on with it, or another directory")


def test_a_list_of_points(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "points.yaml").write_text("- {max-num-seqs: 2, request_rate: inf}\n"
                                          "- {goodput: {ttft: 100}, noise: 0.1}\n")
    status, out, _ = batchsim("sweep", *FEW, "--list", "points.yaml", "--json", "--quiet", "-o", "out")
    assert status == 0
    first, second = json.loads(out)["runs"]
    assert (first["max_num_seqs"], first["request_rate"]) == (2, "inf")
    assert (second["goodput"], second["noise"]) == ("ttft:100", 0.1)


def test_tuning(batchsim: Call) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'batchsim[tune]'")
    command = ("sweep", *FEW, "--load", "saturated", "--tune", "--trials", "4", "--vary", "max_num_seqs=2..64",
               "--set", "max_num_seqs=1", "--quiet")
    status, out, _ = batchsim(*command, "-o", "one")
    assert status == 0
    assert "Best output tokens/s: " in out
    again = batchsim(*command, "-o", "two", "--json")[1]
    assert f" with {json.loads(again)['best']}" in out


@pytest.mark.parametrize(("line", "told"), [
    ("sweep", "nothing is varied: give --vary max_num_seqs=32,64,128, for example, or --list FILE"),
    ("sweep --tune --list x.yaml", "--tune proposes points itself: give --vary, without --list"),
    ("sweep --vary max_num_seqs", "--vary takes NAME=VALUE, not 'max_num_seqs'"),
    ("sweep --vary max_num_seqs=1,,2", "--vary max_num_seqs takes words between commas, not '1,,2'"),
    ("sweep --vary seed=1 --vary seed=2", "--vary says 'seed' twice"),
    ("sweep --tune --vary max_num_seqs=9..1",
     "--vary max_num_seqs takes LOW..HIGH, two numbers with the lower one first, not '9..1'"),
    ("sweep --vary seed=1 --backend dusk", "unknown backend 'dusk': did you mean 'dask'? (known: local, dask, ray)"),
    ("sweep --vary seed=1 --backend dask", "backend dask needs the address of its scheduler: give --scheduler "
     "tcp://HOST:8786"),
    ("sweep --vary seed=1 --workers 0", "workers must be a whole number of at least 1, not 0"),
    ("sweep --vary seed=1 --retries=-1", "retries must be a whole number of at least 0, not -1"),
    ("sweep --vary seed=1 --list nowhere.yaml", "--list nowhere.yaml: No such file or directory"),
    ("plot .", ". has no summary.json: give a directory that `batchsim sweep` wrote")])
def test_what_they_refuse(line: str, told: str, refused: Refused) -> None:
    assert refused(*line.split()) == told


@pytest.mark.parametrize(("text", "told"), [
    ("- 3\n", "must be a list of mappings"), ("{", "line 1: not YAML"), ("3", "must be a list of mappings"),
    ("- {seed: 1, seed: 2}", "line 1: key 'seed' appears twice"), ("- &a {seed: 1}\n- *a", "anchors and aliases"),
    ("!!python/object/apply:os.system [ls]", "line 1: tags (.*) are not read")])
def test_a_list_that_cannot_be_read_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        listed(str(tmp_path / "bad.yaml"))
    assert "\n" not in str(caught.value)


def test_a_name_given_twice_with_dashes_and_without_is_refused(tmp_path: Path) -> None:
    for read in (varied, spaces):
        with pytest.raises(InputError, match=r"^--vary says 'rate_scale' twice, with dashes and without"):
            read(["rate-scale=1,2", "rate_scale=5"])
    (tmp_path / "twice.yaml").write_text("- {rate_scale: 1}\n- {rate_scale: 1, rate-scale: 3}")
    with pytest.raises(InputError, match=r"twice\.yaml: a point says 'rate_scale' twice"):
        listed(str(tmp_path / "twice.yaml"))


def test_names_and_values_as_they_are_typed(tmp_path: Path) -> None:
    assert varied(["max-num-seqs=1,inf", "vllm-0.block-size=16", "exact=yes,no", "mix.azure-code-2023=2"]) == {
        "max_num_seqs": [1, float("inf")], "vllm-0.block_size": [16], "exact": [True, False],
        "mix.azure-code-2023": [2]}
    assert spaces(["a=1..9", "b=0.5..2", "c=x,y"]) == {"a": (1, 9), "b": (0.5, 2), "c": ["x", "y"]}
    assert spelled("goodput.ttft") == "goodput.ttft"
    (tmp_path / "plain.yaml").write_text("- {router: no, noise: 1e-1, seed: inf}")    # no is a word
    assert listed(str(tmp_path / "plain.yaml")) == [{"router": "no", "noise": 0.1, "seed": float("inf")}]
    (tmp_path / "named.json").write_text('{"first": {"seed": 1}, "second": {"seed": 2}}')
    assert listed(str(tmp_path / "named.json")) == [{"seed": 1}, {"seed": 2}]


def test_plot_draws_again(batchsim: Call, tmp_path: Path) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    before = contents(tmp_path / "out")
    assert batchsim("plot", "out") == (0, "", "written to out/: heatmap.svg and pareto.svg\n")
    assert contents(tmp_path / "out") == before
    status, out, err = batchsim("plot", "out", "--json")
    assert (status, json.loads(out), err) == (0, {"directory": "out", "figures": ["heatmap.svg", "pareto.svg"]}, "")


@pytest.mark.parametrize(("flags", "name"), [
    (("--metric", "p99_ttft_ms"), "heatmap-p99_ttft_ms.svg"), (("--y", "max_num_seqs"), "heatmap-y-max_num_seqs.svg"),
    (("--x", "request-rate", "--metric", "output_throughput"), "heatmap-output_throughput-x-request_rate.svg")])
def test_plot_of_another_metric_or_over_other_axes_leaves_the_map_of_the_sweep(
        flags: tuple[str, ...], name: str, batchsim: Call, tmp_path: Path) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    before = contents(tmp_path / "out")
    assert batchsim("plot", "out", *flags) == (0, "", f"written to out/: {name} and pareto.svg\n")
    after = contents(tmp_path / "out")
    assert {each for each in after if after[each] != before.get(each)} == {name, "manifest.json"}
    assert batchsim("plot", "out", "--quiet") == (0, "", "")
    assert (tmp_path / "out" / name).exists()
    batchsim("sweep", *FEW, *GRID, "--vary", "seed=0,1", "-o", "out", "--resume")
    assert not (tmp_path / "out" / name).exists()    # it shows the answer before


def test_plot_reads_what_vllm_wrote(batchsim: Call, tmp_path: Path) -> None:
    for rate in (1, 2):
        folder = tmp_path / "theirs" / f"BENCH--request-rate={rate}"
        folder.mkdir(parents=True)
        (folder / "summary.json").write_text(json.dumps([{
            "output_throughput": 100.0 * rate, "median_tpot_ms": 10.0 * rate, "run_number": 0, "request-rate": rate}]))
    assert batchsim("plot", "theirs", "--quiet") == (0, "", "")
    assert batchsim("plot", "theirs", "--x", "request-rate", "--quiet") == (0, "", "")
    assert {"heatmap.svg", "pareto.svg"} <= {path.name for path in (tmp_path / "theirs").iterdir()}


@pytest.mark.parametrize(("text", "told"), [("[{", "is not JSON ("), ("{}", "is no summary of a sweep")])
def test_plot_of_a_broken_file_is_one_line(text: str, told: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text(text)
    assert refused("plot", "out").startswith(f"out/summary.json: {told}")


@pytest.mark.parametrize("name", ["x", "y", "metric"])
def test_plot_names_the_nearest(name: str, batchsim: Call, refused: Refused) -> None:
    batchsim("sweep", *FEW, *GRID, "-o", "out")
    assert "did you mean 'max_num_seqs'?" in refused("plot", "out", f"--{name}", "max_num_seq")


def test_progress_in_a_log_has_a_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 1.0, 11.0, 51.0])
    monkeypatch.setattr(progress_module, "monotonic", lambda: next(clock))
    log = Log("sweep", "points")
    for done in (100, 105, 125):    # 100 were there at the start
        log.hear(done, 200)
    assert capsys.readouterr().err == "sweep: 125 of 200 points, 0.5 points/s, 150 s left\n"


def test_progress_of_what_has_no_known_end_tells_no_time_left(monkeypatch: pytest.MonkeyPatch,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    """A plan asks for its next runs when it has seen the last ones."""
    clock = iter([0.0, 1.0, 51.0])
    monkeypatch.setattr(progress_module, "monotonic", lambda: next(clock))
    log = Log("plan", "runs", open_ended=True)
    for done in (0, 25):
        log.hear(done, 25)
    assert capsys.readouterr().err == "plan: 25 of 25 runs asked for so far, 0.5 runs/s\n"
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: True, raising=False)
    columns = [type(each).__name__ for each in Bar("plan", unit="runs", open_ended=True)._bar.columns]
    assert "TimeRemainingColumn" not in columns


def test_a_bar_is_there_while_somebody_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    screen = Console(file=StringIO(), force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(progress_module, "Console", lambda **_: screen)
    monkeypatch.setattr(progress_module.sys.stderr, "isatty", lambda: True, raising=False)
    with Bar("sweep", unit="points") as bar:
        bar._bar.get_time = lambda: float(next(clock))
        [task], rate = bar._bar.tasks, bar._bar.columns[4]
        assert str(rate(task)) == ""
        for done in (0, 30, 60):
            bar.one(done, 90)
        assert str(rate(bar._bar.tasks[0])) == "30 points/s"
        assert bar._bar.live.is_started
    assert not bar._bar.live.is_started
    assert "sweep" in screen.file.getvalue()    # type: ignore[attr-defined]


def command(*arguments: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "simulator.cli", "sweep", "--num-prompts", "40", "--workers", "2", *arguments]
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))    # a job's ignores it


def finished(*arguments: str) -> bool:
    run = command(*arguments)
    run.communicate()
    return run.returncode == 0


def wait_for(points: int, folder: Path, run: subprocess.Popen[str]) -> None:
    while len(list((folder / "points").glob("*.json"))) < points:
        assert run.poll() is None, "it was done before it could be disturbed"
        time.sleep(0.01)


@pytest.mark.slow
def test_a_sweep_of_200_points_killed_three_times_ends_with_the_bytes_of_an_undisturbed_one(tmp_path: Path) -> None:
    grid = ("--vary", f"max_num_seqs={','.join(map(str, range(1, 21)))}",
            "--vary", f"request_rate={','.join(map(str, range(1, 11)))}")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    assert finished(*grid, "-o", str(whole))
    for points in (20, 80, 150):
        run = command(*grid, "-o", str(torn), "--resume")
        wait_for(points, torn, run)
        run.send_signal(signal.SIGKILL)
        run.communicate()
    assert finished(*grid, "-o", str(torn), "--resume")
    assert contents(whole) == contents(torn)
    assert len(list((torn / "points").iterdir())) == 200


def test_an_interrupt_says_what_is_kept(tmp_path: Path) -> None:
    run = command("--vary", f"max_num_seqs={','.join(map(str, range(1, 900)))}", "-o", str(tmp_path / "out"))
    wait_for(3, tmp_path / "out", run)
    os.killpg(run.pid, signal.SIGINT)
    err = run.communicate()[1]
    assert run.returncode == 130
    kept = len(list((tmp_path / "out" / "points").glob("*.json")))
    assert err == (f"{kept} points kept in {tmp_path / 'out'}/: the same command with --resume goes on\n"
                   "batchsim: interrupted\n")
