"""Every script of this folder tells what it does, and answers what is wrong with one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = sorted(path.name for path in HERE.glob("*.py")
                 if not path.name.startswith("test_") and "__main__" in path.read_text(encoding="utf-8"))


def called(*words: str, hidden: str = "") -> subprocess.CompletedProcess[str]:
    """What a script answers; of the modules between the commas it finds none."""
    code = ("import importlib.util as u, runpy, sys; find = u.find_spec\n"
            "hidden, sys.argv = sys.argv[1].split(','), sys.argv[2:]\n"
            "u.find_spec = lambda name, *more: None if name in hidden else find(name, *more)\n"
            "runpy.run_path(sys.argv[0], run_name='__main__')")
    path = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    return subprocess.run([sys.executable, "-c", code, hidden, str(HERE / words[0]), *words[1:]], capture_output=True,
                          text=True, check=False, env={**os.environ, "PYTHONPATH": path})


def test_each_imports_what_checks_first() -> None:
    assert len(SCRIPTS) == 10
    for name in SCRIPTS:
        assert "\nimport scripts\n" in (HERE / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_missing_is_said_in_a_line(name: str) -> None:
    found = called(name, "--help", hidden="pytest,hypothesis")
    assert (found.returncode, found.stdout, found.stderr) == (
        2, "", f"{name}: pytest and hypothesis missing: pip install -e '.[dev]'\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_each_has_help_and_refuses_in_a_line(name: str) -> None:
    found = called(name, "--help")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith(f"usage: {name} [-h]")
    found = called(name, "--no-such-thing")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == f"{name}: unrecognized arguments: --no-such-thing: see --help\n"


@pytest.mark.parametrize(("words", "told"), [
    (("files.py", "some"), "files.py: argument mutants: must be a whole number of at least 1, not 'some': see --help"),
    (("worlds.py", "0"), "worlds.py: argument worlds: must be a whole number of at least 1, not '0': see --help\n"),
    (("covered.py", "none.json"), "covered.py: no such file: none.json: see --help\n"),
    (("versions.py",), "versions.py: name the folder of an environment, or say --oldest: see --help\n"),
    (("load.py", "a sweep of 1,000 points"), "load.py: argument CASE: unknown case 'a sweep of 1,000 points': did you "
                                             "mean 'a sweep of 10,000 points'? "),
    (("mutants.py", "vlm"), "mutants.py: argument PART: invalid choice: 'vlm'"),
])
def test_what_is_wrong_is_answered_in_a_line(words: tuple[str, ...], told: str) -> None:
    found = called(*words)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert found.stderr.startswith(told)


@pytest.mark.parametrize("text", ["", "[]", '{"files": {"simulator/step.py": {}}}'])
def test_a_report_of_something_else_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    found = called("covered.py", str(tmp_path / "c.json"))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (f"covered.py: {tmp_path / 'c.json'} is not what `coverage json` wrote of these files: see "
                            "--help\n")
