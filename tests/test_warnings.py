"""No warning is given on the way in, whatever Python, numpy and pandas are there.

What asks for an extra that is not installed is left out.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

ALL = """
import importlib, pkgutil, sys
for package in sys.argv[1:]:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if error.name.partition(".")[0] in sys.argv[1:]:
                    raise
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, check=False,
                          cwd="/")


@pytest.mark.parametrize("packages", [("traces", "cost_models", "simulator"), ("calibration",)])
def test_no_module_warns_when_it_is_imported(packages: tuple[str, ...]) -> None:
    if packages == ("calibration",):
        pytest.importorskip("torch")
        pytest.importorskip("triton")
    run = python("-c", ALL, *packages)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_command_line_does_not_either() -> None:
    run = python("-m", "simulator.cli", "run", "--num-prompts", "20", "--json", "--quiet")
    assert (run.returncode, run.stderr) == (0, "")
