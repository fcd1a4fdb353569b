"""The examples in docstrings are run, module by module, and print what stands there.

Those of the README are run by `test_readme` and, where a test of one's own is shown, by `test_cli_regress`.
"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import cost_models
import simulator
import traces

ROOT = Path(__file__).resolve().parents[1]
GIVEN = {"recordings": "tests/golden/vllm/01_light.*", "bench.json": "tests/traces/samples/vllm_bench.json"}
"""What an example reads: a file, or a folder of those that fit a pattern."""
DOORS = ("simulator.simulate", "simulator.compare", "simulator.attribute", "simulator.explain", "simulator.plan",
         "simulator.sweep", "simulator.what_if", "simulator.run", "simulator.Scenario", "traces.Trace", "traces.load",
         "traces.declare", "traces.fit", "traces.shape_of", "traces.convert", "cost_models.cost_model",
         "cost_models.model_spec", "cost_models.kv_pool", "cost_models.Constant", "cost_models.Roofline",
         "cost_models.Noise")
"""Where most people come in."""


def modules() -> list[str]:
    """Names of all modules with an example."""
    paths = [path for package in ("simulator", "traces", "cost_models", "calibration")
             for path in sorted((ROOT / package).rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def lay(folder: Path) -> None:
    """Put what the examples read into a folder."""
    for name, pattern in GIVEN.items():
        if "*" in pattern:
            (folder / name).mkdir()
        for path in ROOT.glob(pattern):
            (folder / name / path.name if "*" in pattern else folder / name).symlink_to(path)


@pytest.mark.parametrize("name", modules())
def test_it_prints_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0


def test_none_is_skipped() -> None:
    assert not [path for package in (simulator, traces, cost_models)
                for path in Path(package.__path__[0]).rglob("*.py") if "+SKIP" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", DOORS)
def test_who_comes_in_finds_an_example(name: str) -> None:
    package, _, what = name.partition(".")
    assert ">>> " in getattr(importlib.import_module(package), what).__doc__
