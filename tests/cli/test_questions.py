"""The table of the README that answers questions of capacity: each command runs, on few requests, and answers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
PART = re.search(r"<!-- questions -->\n(.*?)<!-- end of questions -->", README.read_text(encoding="utf-8"), re.DOTALL)
COMMANDS = re.findall(r"\| `batchsim (.*?)` \|$", PART[1] if PART else "", re.MULTILINE)
FEW = ("--num-prompts", "120", "--quiet", "-o", "there")


def test_every_row_has_a_command() -> None:
    assert PART
    assert len(COMMANDS) == PART[1].count("\n") - 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_question_is_answered(batchsim: Callable[..., tuple[int, str, str]], command: str, tmp_path: Path) -> None:
    name, *flags = shlex.split(command)
    status, out, err = batchsim(name, *flags, *FEW)
    assert status == 0 or (name == "plan" and status == 1), err    # few requests may leave no answer: that is one
    assert len(out.splitlines()) > 5
    assert list((tmp_path / "there").iterdir())
