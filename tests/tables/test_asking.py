"""Every script that makes a table says what it is for, and refuses in one line what it does not know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from asking import lacking

HERE = Path(__file__).parent
SCRIPTS = [path for path in sorted(HERE.glob("[!t]*.py")) if "__main__" in path.read_text("utf-8")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_says_what_it_is_for_and_what_it_takes(script: Path, tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"tests/tables/{script.name}" in told.stdout
    wrong = subprocess.run([sys.executable, script, "--no-such-flag"], cwd=tmp_path, capture_output=True, text=True,
                           check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1].endswith("unrecognized arguments: --no-such-flag")


def test_what_is_not_installed_is_named() -> None:
    assert lacking(("sys", "no_such_package")) == (
        "needs no_such_package: pip install '.[dev]', from the project's root")
    assert lacking() == ""
