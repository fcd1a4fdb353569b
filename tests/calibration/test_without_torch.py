"""Without torch one line says how to get it."""

from __future__ import annotations

import pytest

from simulator.cli import calibrate
from simulator.cli.main import main


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(calibrate, "find_spec", lambda name: None)
    assert main(["calibrate", "--device", "cpu"]) == 2
    assert capsys.readouterr().err == (
        "batchsim: calibrate needs torch, which is not installed: pip install 'batchsim[calibration]', or "
        "'.[calibration]' in a checkout\n")
