"""The command line in this process: a call gives its status, its answer and its complaint."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from simulator.cli import progress
from simulator.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def batchsim(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call `batchsim` with these arguments from an empty directory, however wide somebody thinks the terminal is.

    However slow the machine is, no line of a log comes between.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "EVERY_S", inf)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def refused(batchsim: Call) -> Callable[..., str]:
    """Call it with what it must refuse: status 2, nothing on stdout, one line on stderr, which is returned."""

    def call(*arguments: str) -> str:
        status, out, err = batchsim(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("batchsim: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1
        return err.removeprefix("batchsim: ").rstrip("\n")

    return call
