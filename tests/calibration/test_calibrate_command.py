"""`batchsim calibrate` on a CPU, from the command line to a profile that simulates; structure, never speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'calibration'")

from small_grid import MINI

from calibration import run as calibration_run
from calibration import validation
from calibration.fit import FitError
from calibration.shard import TINY
from calibration.validation import ON_CPU
from cost_models import StepShape, read_profile
from cost_models.catalogue import PROFILED
from cost_models.profile import Profile
from simulator.cli.main import main
from simulator.scenario import Scenario
from simulator.simulation import run

FILES = ["manifest.json", "mine.md", "mine.measured_vs_predicted.svg", "mine.samples.jsonl", "mine.yaml"]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """One quick calibration with its validation: where it wrote, and what it said."""
    from contextlib import redirect_stdout
    from io import StringIO
    directory, said = tmp_path_factory.mktemp("calibration"), StringIO()
    with redirect_stdout(said):
        assert main(["calibrate", "--device", "cpu", "--quick", "--validate", "--json", "-o",
                     str(directory / "mine.yaml")]) == 0
    return directory, json.loads(said.getvalue())


@pytest.fixture
def profile(calibrated: tuple[Path, dict[str, object]]) -> Profile:
    return read_profile(calibrated[0] / "mine.yaml")


def test_it_writes_a_profile_a_report_a_picture_and_the_samples(calibrated: tuple[Path, dict[str, object]]) -> None:
    directory, _ = calibrated
    assert sorted(path.name for path in directory.iterdir()) == FILES
    report = (directory / "mine.md").read_text()
    for part in ("held out", "Run for real and simulated", "mine.measured_vs_predicted.svg", "Ceilings: copy", "torch"):
        assert part in report
    assert (directory / "mine.measured_vs_predicted.svg").read_text().startswith("<?xml")


def test_the_profile_says_where_it_comes_from(profile: Profile) -> None:
    assert (profile.model, profile.dtype, profile.origin.kind, profile.host.origin) == (
        "tiny", "fp32", "measured", "measured")
    assert profile.software is not None
    assert profile.software.torch == torch.__version__
    assert profile.model_shape.layers == TINY.layers
    assert profile.fit.errors.decode is not None
    assert profile.fit.errors.decode.held_out


def test_what_was_timed_is_positive_and_grows_with_its_size(profile: Profile) -> None:
    us = {(row.kernel, row.dims): row.median_us for row in profile.raw}
    assert all(np.isfinite(value) and value > 0 for value in us.values())
    for kernel in ("qkv", "o", "gate_up", "down"):
        assert us[kernel, (128,)] > us[kernel, (1,)]
    assert us["decode", (8, 256)] > us["decode", (1, 8)]
    assert us["prefill", (128, 128)] > us["prefill", (8, 0)]
    steps = {dims: value for (kernel, dims), value in us.items() if kernel == "step"}
    assert steps[max(steps)] > steps[min(steps)]


def test_the_profile_simulates(profile: Profile) -> None:
    cost = PROFILED[profile.fit.form](profile)
    assert 0 < cost.time(StepShape(1, 10)) < cost.time(StepShape(8, 800)) < 10**9
    assert cost.time(StepShape(0, 0, ((100, 0),))) > cost.time(StepShape(0, 0, ((8, 0),)))
    result = run(Scenario(trace=ON_CPU.trace(1), model=TINY, cost_model=cost, load="saturated",
                          kv_capacity_tokens=50_000))
    assert result.summary()["completed"] == ON_CPU.requests


def test_the_run_and_its_simulation_take_the_same_steps_and_say_the_same(
        calibrated: tuple[Path, dict[str, object]]) -> None:
    found = calibrated[1]["validation"]
    assert isinstance(found, dict)
    figures = {each["name"]: (each["measured"], each["simulated"]) for each in found["figures"]}
    assert found["same_tokens"] == found["requests"] == 16
    for policy in ("static", "vllm"):
        measured, simulated = figures[f"{policy}: steps"]
        assert measured == simulated > 0
        assert all(value > 0 for value in figures[f"{policy}: makespan, s"])
    assert figures["static: steps"] > figures["vllm: steps"]
    assert all(value > 0 for value in figures["static over vllm, makespan"])


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick calibration takes a second, and a validation as long."""
    monkeypatch.setattr(calibration_run, "CPU_QUICK", MINI)
    monkeypatch.setattr(validation, "ON_CPU", replace(ON_CPU, requests=6, output=(4, 12)))


def test_to_a_reader_it_tells_the_errors_the_validation_and_the_files(
        capsys: pytest.CaptureFixture[str], tmp_path: Path, mini: None) -> None:
    path = tmp_path / "mine.yaml"
    command = ["calibrate", "--device", "cpu", "--quick", "-o", str(path)]
    assert main([*command, "--validate"]) == 0
    out, err = capsys.readouterr()
    for part in (read_profile(path).origin.source, "attention: ", "Error on whole steps, held out",
                 "Run for real and simulated"):
        assert part in out
    assert err.endswith(f"written to {tmp_path}/: {', '.join([FILES[4], FILES[1], FILES[2], FILES[3]])}\n")
    assert main([*command, "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert "Error on whole steps, held out" in out
    assert "Run for real" not in out + (tmp_path / "mine.md").read_text()
    assert err == ""


def test_json_tells_of_a_validation_only_where_one_was_run(
        calibrated: tuple[Path, dict[str, object]], capsys: pytest.CaptureFixture[str], tmp_path: Path,
        mini: None) -> None:
    assert main(["calibrate", "--device", "cpu", "--quick", "--json", "-o", str(tmp_path / "mine.yaml")]) == 0
    assert json.loads(capsys.readouterr().out).keys() == calibrated[1].keys() - {"validation"}


@pytest.mark.parametrize(("arguments", "said"), [
    (["--device", "tpu"], "unknown device 'tpu': did you mean 'cpu'? (known: cuda, cpu)"),
    (["--device", "cpu", "--model", "llama-3.1-8b"], "llama-3.1-8b is too large to be timed on a CPU"),
    (["--device", "cpu", "-o", "mine.json"], "--output must name a .yaml file, not 'mine.json'"),
    (["--device", "cpu", "--resume"], "there is nothing to resume, no "),
])
def test_wrong_input_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["calibrate", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not list(tmp_path.rglob("*.yaml"))


def test_a_machine_without_cuda_is_told_what_to_do(capsys: pytest.CaptureFixture[str],
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["calibrate"]) == 2
    assert "sees no CUDA device: give --device cpu, or install a torch with CUDA" in capsys.readouterr().err


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration that is interrupted when it has begun to time."""

    def calibrate(job: object, samples: Path, **_: object) -> None:
        samples.parent.mkdir(parents=True, exist_ok=True)
        samples.write_text("{}\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration_run, "calibrate", calibrate)


def test_what_an_interrupted_run_has_timed_is_not_overwritten(
        capsys: pytest.CaptureFixture[str], tmp_path: Path, interrupted: Callable[[], None]) -> None:
    command = ["calibrate", "--device", "cpu", "-o", str(tmp_path / "mine.yaml")]
    assert main(command) == 130
    assert "go on with --resume" in capsys.readouterr().err
    assert main(command) == 2
    assert "give --resume to go on with it, or --force to start anew" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["mine.samples.jsonl.part"]


def test_a_file_of_somebody_else_is_not_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("somebody's work")
    assert main(["calibrate", "--device", "cpu", "-o", str(tmp_path / "mine.yaml")]) == 2
    assert "was not written by an earlier run" in capsys.readouterr().err
    assert (tmp_path / "mine.yaml").read_text() == "somebody's work"


def test_what_was_timed_but_cannot_be_fitted_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    def few(*_: object) -> None:
        raise FitError("3 rows determine nothing")

    monkeypatch.setattr(calibration_run, "measure", lambda *_: None)
    monkeypatch.setattr(calibration_run, "raw_rows", lambda *_: ())
    monkeypatch.setattr(calibration_run, "fit_rows", few)
    assert main(["calibrate", "--device", "cpu", "--quick", "-o", str(tmp_path / "mine.yaml")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "batchsim: 3 rows determine nothing (the device has too little memory for larger ones)")
