"""The command in odd surroundings: a line at most, the right status, and nothing half-written. See `surroundings`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from surroundings import (
    MOMENTS,
    RUN,
    SIGNALS,
    STOPPED,
    Ending,
    Surrounding,
    end_of,
    endings,
    stopped,
    surroundings,
    wrong,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, /dev/full and signals as Linux has them")
SLOW = ("compare", "why", "explain", "sweep", "plan")
SOME = [each for each in surroundings() if not any(word in each.line for word in SLOW)][5::9]
AT_ONCE = [("INT", "simulator.guard"), ("INT", "simulator.result"), ("TERM", "numpy"), ("HUP", "simulator.scenario")]


def test_what_is_wrong_is_seen() -> None:
    assert wrong(Ending(1, "", ()), (0,)).startswith("status 1")
    assert wrong(Ending(0, "UserWarning: x", ()), (0,)).startswith("it shows its inside")
    assert wrong(Ending(2, "batchsim: a\nb\n", ()), (2,)).startswith("not refused in one line")
    assert wrong(Ending(0, "", (".x.1",)), (0,)) == "left half-written: .x.1"
    assert wrong(Ending(0, "", ()), (0,)) == ""


@pytest.mark.parametrize("each", SOME, ids=str)
def test_some_surroundings(each: Surrounding, tmp_path: Path) -> None:
    assert wrong(end_of(each.line, tmp_path / "here"), each.statuses) == ""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("each", [*surroundings()], ids=str)
def test_all_surroundings(each: Surrounding, tmp_path: Path) -> None:
    assert wrong(end_of(each.line, tmp_path / "here"), each.statuses) == ""


@pytest.mark.parametrize(("name", "moment"), AT_ONCE)
def test_a_signal_at_once(name: str, moment: str, tmp_path: Path) -> None:
    ending = stopped(RUN, name, moment, tmp_path / "here")
    assert ending.sent
    assert wrong(ending, endings(name, ending)) == ""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("command", STOPPED)
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_at_any_moment(command: str, name: str, moment: str, tmp_path: Path) -> None:
    ending = stopped(command, name, moment, tmp_path / "here")
    assert wrong(ending, endings(name, ending)) == ""

