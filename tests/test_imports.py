"""Who may import whom: between the packages, and between the layers of the simulator. And what an import costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import simulator

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {"traces": set(), "cost_models": set(), "simulator": {"traces", "cost_models"},
              "calibration": {"cost_models", "simulator", "traces"}}
MEASURES = ("band timeline outcomes slots gaps levels ledger binned waste occupancy trace_events throughput metrics "
            "doors lagging limits tail filling fullness frames saved summary cluster served tenancy balance details "
            "measured display facts remarks run_tables plausible")
LAYERS = ["errors version starting guard documents frozen distribution tables account columns counting areas "
          "statistics ranked weighed",
          "request record", "batch", "memory checks",
          "step deployment recorder patience conversations", "clients standing", "policies",
          "measure events stretch contract", "progress holders", "step_rules", "inspection", "pricing", "passes",
          "replica pipeline", "routing overflow", "fleet", "autoscaler", "router", "replication",
          "mistaken", "scenario_checks", "scenario gate prefixes idle kinds haste", "scenarios", "traffic", "setup",
          "sending", MEASURES, "result", "serving", "simulation", "plots", "engine_runs",
          "conformance studies bench validation launching", "report", "cli"]
"""Lowest first. A module imports from its own layer and below; one that is not named measures something."""
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer.split()}
CALIBRATE = ROOT / "simulator" / "cli" / "calibrate.py"
"""The one module that asks for calibration, inside its command."""
HEAVY = ("torch", "matplotlib", "pandas", "typer", "rich", "pydantic")


def imported(source: str) -> Iterator[str]:
    """Full names of the modules that a source imports when it runs; what only a type checker sees is left out."""
    stack: list[ast.AST] = [ast.parse(source)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def rank(name: str) -> int:
    return RANK.get(name, RANK["metrics"])


def test_the_reader_of_imports_sees_them_all() -> None:
    source = ("import a.b\nfrom c import d\ndef f():\n    from e.f import g\n"
              "if TYPE_CHECKING:\n    import h\nelse:\n    import i\n")
    assert set(imported(source)) == {"a.b", "c.d", "e.f.g"}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_only_whom_they_may(package: str) -> None:
    for path in sources(package):
        of_ours = {name.split(".")[0] for name in imported(path.read_text())} & set(MAY_IMPORT)
        asked_for = {"calibration"} if path == CALIBRATE else set()
        assert of_ours <= MAY_IMPORT[package] | {package} | asked_for, path


def test_the_command_line_runs_without_what_calibrates() -> None:
    run = python("import sys\n"
                 "from simulator.cli.app import command\n"
                 "def whole(group):\n"
                 "    for each in group.commands.values():\n"
                 "        whole(each) if hasattr(each, 'commands') else each.whole\n"
                 "whole(command())\n"
                 "print([name for name in ('torch', 'calibration') if name in sys.modules])")
    assert run.stdout == "[]\n", run.stderr


def test_inside_the_simulator_nobody_imports_from_above() -> None:
    for path in sources("simulator"):
        if path.parent == ROOT / "simulator" and path.name == "__init__.py":
            continue    # the front door
        own = path.relative_to(ROOT / "simulator").parts[0].removesuffix(".py")
        for name in imported(path.read_text()):
            package, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if package == "simulator" and other in {each.stem for each in (ROOT / "simulator").iterdir()}:
                assert rank(own) >= rank(other), f"{path} imports {name}"


def python(code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    paths = ":".join(map(str, [*path, ROOT]))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": paths}, cwd="/")


def test_importing_the_simulator_loads_nothing_heavy() -> None:
    run = python(f"import sys, simulator; print([name for name in {HEAVY} if name in sys.modules])")
    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_what_simulates_nothing_waits_for_nothing(flag: str) -> None:
    run = python("import sys\n"
                 "from simulator.cli.main import main\n"
                 f"main(['{flag}'])\n"
                 "print([name for name in ('numpy', 'simpy', 'yaml', 'traces', 'cost_models') if name in sys.modules])")
    assert (run.stdout.splitlines()[-1], run.stderr) == ("[]", "")


def test_every_name_at_the_front_door_is_there() -> None:
    run = python("import simulator\n"
                 "print(all(getattr(simulator, name) is not None for name in simulator.__all__))")
    assert (run.stdout, run.stderr) == ("True\n", "")


def test_the_front_door_answers() -> None:
    run = python("import simulator as sim\n"
                 "from simulator.simulation import run\n"
                 "print(sim.policies.StaticBatching(max_batch_size=16).max_batch_size, callable(sim.simulate),\n"
                 "      callable(sim.compare), sim.run is run, sim.plots.__name__, sim.__version__[:2])\n"
                 "try:\n    sim.nothing\nexcept AttributeError as error:\n    print(error)")
    assert run.stdout == ("16 True True True simulator.plots 0.\n"
                          "module 'simulator' has no attribute 'nothing'\n"), run.stderr


@pytest.mark.parametrize("name", ["traces", "cost_models"])
def test_a_package_of_the_same_name_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('never run')")
    run = python("import simulator", tmp_path)
    assert run.stderr.splitlines()[-1] == (
        f"ImportError: the package '{name}' of batchsim is hidden by another one at {tmp_path / name / '__init__.py'}: "
        f"rename that one or take it off sys.path (ours is at {ROOT / name})")


def test_at_the_command_line_it_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "__init__.py").touch()
    run = python("import sys; sys.argv = ['/bin/batchsim']; import simulator", tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("batchsim: the package 'traces' of batchsim is hidden by another one at ")
    assert run.stderr.count("\n") == 1


def test_a_folder_of_data_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    assert python("import simulator", tmp_path).stderr == ""


def test_an_overwritten_package_is_named(tmp_path: Path) -> None:
    for package in ("simulator", "traces", "cost_models"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text((ROOT / package / "__init__.py").read_text())
    for name in ("guard.py", "starting.py"):
        (tmp_path / "simulator" / name).write_text((ROOT / "simulator" / name).read_text())
    (tmp_path / "traces" / "__init__.py").write_text("from traces.timeseries import TimeSeries\n")
    run = python("import simulator", tmp_path)
    assert run.stderr.splitlines()[-1].startswith(
        "ImportError: another distribution has overwritten the package 'traces' of batchsim at ")


def test_a_room_is_loaded_when_it_is_asked_for_and_all_names_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("memory", "plots", "policies", "statistics", "studies"):
        monkeypatch.delattr(simulator, room, raising=False)
        assert getattr(simulator, room) is import_module(f"simulator.{room}")
    assert dir(simulator) == sorted({*simulator.__all__, "statistics", "studies"})
