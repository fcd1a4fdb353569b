"""The table of coverage counts what coverage counted, and knows a reason for each gap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import covered
import gaps
import pytest

SOURCE = '''def halved(number):
    if number % 2:    # it has no half
        told = "odd"
        raise ValueError(told)
    if number:
        number //= 2
    return number


class Odd:
    def told(self):
        return "odd"
'''


@pytest.fixture(autouse=True)
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of each package, of which there are no others."""
    monkeypatch.setattr(gaps, "ROOT", tmp_path)
    for name in covered.PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(SOURCE)


def report(folder: Path, covered_lines: int = 78) -> Path:
    """What `coverage json` writes of one file a package, each of 80 statements and 20 branches."""
    ran = {"missing_lines": [], "missing_branches": []}
    halved = {"executed_lines": [2, 5, 6, 7], "missing_lines": [3, 4], "missing_branches": [[2, 3], [5, 7]]}
    functions = {"halved": halved,
                 "Odd.told": ran | {"executed_lines": [12]}, "": ran | {"executed_lines": [1, 10, 11]}}
    about = {"functions": functions,
             "summary": {"num_statements": 80, "num_branches": 20, "covered_branches": 18, "percent_covered": 96.0,
                         "covered_lines": covered_lines}}
    path = folder / "coverage.json"
    path.write_text(json.dumps({"files": {f"{name}/a.py": about for name in covered.PACKAGES}}))
    return path


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, *texts: str) -> None:
    """Let these gaps of each file have a reason."""
    monkeypatch.setattr(covered, "known", lambda: {(f"{name}/a.py", text): "guard: it is so" for text in texts
                                                   for name in covered.PACKAGES})


ODD, ZERO = 'halved: told = "odd"', "halved: if number: -> return number"


def test_a_gap_is_told_by_its_first_line_and_a_branch_by_both_of_its_ends(tmp_path: Path) -> None:
    about = json.loads(report(tmp_path).read_text())["files"]["traces/a.py"]
    assert gaps.gaps("traces/a.py", about) == [gaps.Gap("traces/a.py", ODD, 3), gaps.Gap("traces/a.py", ZERO, 1)]


def test_a_line_is_told_without_what_is_said_of_it_and_the_end_of_a_function_as_end(tmp_path: Path) -> None:
    region = {"executed_lines": [2], "missing_lines": [], "missing_branches": [[2, -1]]}
    assert gaps.gaps("traces/a.py", {"functions": {"halved": region}})[0].text == "halved: if number % 2: -> end"


def test_a_row_counts_statements_and_branches_together_and_each_reason_has_its_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path, monkeypatch, ODD, ZERO)
    assert covered.main(report(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| `simulator` | 80 | 20 | 96.00% | 4 | 2 |"
    assert lines[9] == "| `simulator/a.py` | 4 | guard: it is so |"


def test_a_gap_without_a_reason_is_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    told(tmp_path, monkeypatch, ODD)
    assert covered.main(report(tmp_path)) == 1
    assert capsys.readouterr().err.splitlines() == [f"{name}/a.py: {ZERO}" for name in covered.PACKAGES]


def test_a_reason_may_hold_for_a_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path, monkeypatch, covered.ALL)
    assert covered.main(report(tmp_path)) == 0


def test_too_little_is_exit_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path, monkeypatch, covered.ALL)
    assert covered.main(report(tmp_path, 76)) == 1


def places() -> Iterator[tuple[str, str]]:
    """Each gap that is known, and all words of its file."""
    root = Path(covered.__file__).parents[2]
    for file, text in covered.known():
        yield text, (root / file).read_text("utf-8")


def test_whatever_is_told_is_there() -> None:
    for text, source in places():
        if text != covered.ALL:
            function, _, line = text.partition(": ")
            assert function.rpartition(".")[2] in source, text
            assert all(part in source or part == "end" for part in line.split(" -> ")), text


def test_each_reason_says_first_which_of_the_kinds_it_is() -> None:
    assert {why.partition(": ")[0] for why in covered.known().values()} <= {"gpu", "extra", "apart", "guard", "rare"}
