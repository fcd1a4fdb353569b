"""Planted errors: which there are, that they are noticed, and that what is said of the others is said of the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import PARTS, ROOT, modules, survivors
from mutation import mutants

SOURCE = '''\
"""A module."""
LIMIT: int = 3

def first(line: list[int] | None, least=0):
    """Words for people."""
    assert line is not None, "a type"
    if least < LIMIT and line:
        raise ValueError(f"{least} is no {'word'}")
    line.append(-1)
    return min(line[0] + 1, len(line))
'''

WORDS = """ValueError(f"{least} is no {'word'}")"""


def test_every_small_change_of_a_module_and_no_word_for_people(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    found = mutants(tmp_path, "module.py")
    assert [mutant.name for mutant in found if mutant.early] == [
        "LIMIT: int = 3 -> LIMIT: int = 4",
        "first: 0 -> 1"]
    assert [(mutant.lines[0], mutant.change) for mutant in found if not mutant.early] == [
        (7, "least < LIMIT and line -> least < LIMIT or line"),
        (7, "least < LIMIT and line -> not (least < LIMIT and line)"),
        (7, "least < LIMIT and line -> least <= LIMIT and line"),
        (7, "least < LIMIT and line -> least >= LIMIT and line"),
        (8, f"raise {ast.unparse(ast.parse(WORDS))} -> pass"),    # Pythons quote it differently
        (9, "line.append(-1) -> pass"),
        (9, "line.append(-1) -> line.append(1)"),
        (9, "line.append(-1) -> line.append(-2)"),
        (10, "return min(line[0] + 1, len(line)) -> return None"),
        (10, "return min(line[0] + 1, len(line)) -> return max(line[0] + 1, len(line))"),
        (10, "return min(line[0] + 1, len(line)) -> return min(line[0] - 1, len(line))"),
        (10, "return min(line[0] + 1, len(line)) -> return min(line[1] + 1, len(line))"),
        (10, "return min(line[0] + 1, len(line)) -> return min(line[0] + 2, len(line))"),
    ]


def test_a_change_is_compiled_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    results = []
    for at, mutant in enumerate(mutants(tmp_path, "module.py")):
        if mutant.change.endswith(("return None", "line.append(1)", "line[0] + 2, len(line))", "LIMIT: int = 4")):
            names: dict[str, object] = {}
            exec(mutants(tmp_path, "module.py")[at].compiled(tmp_path), names)
            results.append((names["LIMIT"], names["first"]([0], 9)))
    assert results == [(4, 1), (3, 1), (3, None), (3, 2)]


def test_the_reason_why_nobody_notices_is_that_of_a_change_that_there_is() -> None:
    listed = survivors()
    there = {mutant.key for module in {module for module, _ in listed} for mutant in mutants(ROOT, module)}
    assert listed.keys() - there == set()
    assert {why.partition(":")[0] for why in listed.values()} <= {"equivalent", "speed", "guard"}


def test_every_part_has_modules() -> None:
    assert all(modules(part) for part in PARTS)


@pytest.mark.slow
def test_planted_errors_are_noticed_or_explained() -> None:
    done = subprocess.run([sys.executable, "tests/tables/mutants.py", "ft", "--sample", "8"], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| ft | " in done.stdout
