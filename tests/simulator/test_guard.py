"""Who stands in the way of our own `traces` and `cost_models` is named. test_imports runs the command."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from simulator import guard


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with both packages, which Python finds."""
    for name, mark in guard.OURS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(mark)
    monkeypatch.setattr(guard, "HOME", tmp_path)
    monkeypatch.setattr(guard, "find_spec",
                        lambda name: ModuleSpec(name, None, origin=str(tmp_path / name / "__init__.py")))
    return tmp_path


def refusal() -> str:
    with pytest.raises(ImportError) as refused:
        guard.check()
    return str(refused.value)


@pytest.mark.usefixtures("home")
def test_ours_pass() -> None:
    guard.check()


def test_a_package_that_is_missing(home: Path) -> None:
    (home / "traces" / "__init__.py").unlink()
    assert refusal() == (f"the package 'traces' of batchsim is missing at {home / 'traces'}: run "
                         "`pip install --force-reinstall --no-deps batchsim`")


def test_a_package_that_another_distribution_has_overwritten(home: Path) -> None:
    (home / "cost_models" / "__init__.py").write_text("from elsewhere import prices")
    assert refusal().startswith(f"another distribution has overwritten the package 'cost_models' of batchsim at {home}")


@pytest.mark.parametrize("found", [None, ModuleSpec("traces", None), ModuleSpec("traces", None, origin="built-in")],
                         ids=["nowhere", "a folder of data", "built in"])
@pytest.mark.usefixtures("home")
def test_a_package_that_python_takes_from_elsewhere(found: ModuleSpec | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "find_spec", lambda name: found)
    where = found.origin if found and found.origin else "an unknown place"
    assert f"the package 'traces' of batchsim is hidden by another one at {where}: rename" in refusal()


@pytest.mark.usefixtures("home")
def test_a_package_that_cannot_even_be_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "find_spec", lambda name: (_ for _ in ()).throw(ValueError(f"{name}.__spec__ is None")))
    assert "is hidden by another one at an unknown place" in refusal()


def test_the_command_says_it_in_one_line(home: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    (home / "traces" / "__init__.py").unlink()
    monkeypatch.setattr(sys, "argv", ["/bin/batchsim"])
    with pytest.raises(SystemExit) as stopped:
        guard.check()
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("batchsim: the package 'traces' of batchsim is missing at ")
