"""The table of coverage counts what coverage counted."""

from __future__ import annotations

import json
from pathlib import Path

import covered
import pytest


def report(folder: Path, **missing: int) -> Path:
    """What `coverage json` writes of one file a package, each of 80 statements and 20 branches."""
    files = {f"{name}/a.py": {"summary": {"num_statements": 80, "num_branches": 20, "covered_branches": 20,
                                          "missing_branches": 0, "missing_lines": missing.get(name, 0),
                                          "covered_lines": 80 - missing.get(name, 0)}} for name in covered.PACKAGES}
    path = folder / "coverage.json"
    path.write_text(json.dumps({"files": files}))
    return path


def test_a_row_counts_statements_and_branches_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert covered.main(report(tmp_path, simulator=5)) == 0
    assert capsys.readouterr().out.splitlines()[2] == "| `simulator` | 80 | 20 | 95.0% | 5 | 0 |"


def test_too_little_is_exit_status_1(tmp_path: Path) -> None:
    assert covered.main(report(tmp_path, traces=6)) == 1


def test_a_gap_that_is_told_is_in_a_package() -> None:
    assert all((Path(covered.__file__).parents[2] / file).is_file() for file in covered.WHY)
