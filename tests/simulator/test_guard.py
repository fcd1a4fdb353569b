"""The guard before the packages of ours: who shadows, overwrites or takes one away is named, with the way out."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from simulator import guard


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that is taken for the one beside the simulator, with packages that look like ours."""
    for name, mark in guard.OURS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"from {mark} import it\n")
    monkeypatch.setattr(guard, "HOME", tmp_path)
    return tmp_path


def test_our_own_packages_pass() -> None:
    guard.check()


def test_a_package_that_is_missing(home: Path) -> None:
    (home / "traces" / "__init__.py").unlink()
    with pytest.raises(ImportError) as error:
        guard.check()
    assert str(error.value) == (f"the package 'traces' of batchsim is missing at {home / 'traces'}: run "
                                "`pip install --force-reinstall --no-deps batchsim`")


def test_a_package_that_another_distribution_has_overwritten(home: Path) -> None:
    (home / "traces" / "__init__.py").write_text("from somebody import else_\n")
    with pytest.raises(ImportError) as error:
        guard.check()
    assert str(error.value) == (
        f"another distribution has overwritten the package 'traces' of batchsim at {home / 'traces'}: uninstall it, "
        "then run `pip install --force-reinstall --no-deps batchsim`")


def imports_as(monkeypatch: pytest.MonkeyPatch, spec: ModuleSpec | None) -> None:
    """Have Python take `traces` from where this says."""
    module = ModuleType("traces")
    module.__spec__ = spec
    monkeypatch.setitem(sys.modules, "traces", module)


@pytest.mark.parametrize(("spec", "where"), [
    (ModuleSpec("traces", None, origin="/nowhere/a.zip/traces/__init__.py"), "/nowhere/a.zip/traces/__init__.py"),
    (ModuleSpec("traces", None, origin=guard.__file__), guard.__file__),
    (ModuleSpec("traces", None), "an unknown place"), (None, "an unknown place")])
def test_a_package_that_hides_ours(spec: ModuleSpec | None, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    imports_as(monkeypatch, spec)
    with pytest.raises(ImportError) as error:
        guard.check()
    assert str(error.value) == (f"the package 'traces' of batchsim is hidden by another one at {where}: rename that "
                                f"one or take it off sys.path (ours is at {guard.HOME / 'traces'})")


def test_the_command_says_it_in_a_line_and_stops(home: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    (home / "cost_models" / "__init__.py").unlink()
    imports_as(monkeypatch, ModuleSpec("traces", None, origin=str(home / "traces" / "__init__.py")))
    monkeypatch.setattr(sys, "argv", ["/usr/bin/batchsim", "run"])
    with pytest.raises(SystemExit) as ending:
        guard.check()
    told = capsys.readouterr().err
    assert ending.value.code == 2
    assert told.startswith(f"batchsim: the package 'cost_models' of batchsim is missing at {home / 'cost_models'}: ")
    assert told.count("\n") == 1
