"""What the project's own source must not do with a stranger's file: unpickle it, run it, or let YAML make objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("simulator", "traces", "cost_models", "calibration")
UNPICKLING = {"pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib.load", "numpy.load",
              "pandas.read_pickle", "torch.load"}
RUNNING = {"eval", "exec", "compile", "__import__", "execfile"}
RUNS = ROOT / "simulator" / "policies" / "loading.py"
"""The one module that runs a file that a user names."""
SAFE = {"SafeLoader", "CSafeLoader", "SafeDumper", "safe_load", "safe_dump", "safe_load_all", "dump", "YAMLError",
        "MarkedYAMLError", "Node", "ScalarNode", "MappingNode", "CollectionNode", "CollectionStartEvent",
        "CollectionEndEvent", "ScalarEvent", "compose", "parse", "load", "constructor", "SequenceNode"}
"""What is used of PyYAML; `load`, `compose` and `parse` with a loader that is safe."""
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}


def trees() -> Iterator[tuple[Path, ast.AST]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_nothing_is_unpickled() -> None:
    for path, tree in trees():
        for node in ast.walk(tree):
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                     [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
            assert not UNPICKLING & set(names), path
        for name, call in calls(tree):
            assert not any(name.endswith(f".{each.rpartition('.')[2]}") and name.split(".")[0] in ("np", "numpy", "pd",
                           "pandas", "joblib", "torch") for each in UNPICKLING if "." in each), (path, name)
            assert not any(word.arg == "allow_pickle" for word in call.keywords), path


def test_only_a_policy_file_is_run() -> None:
    for path, tree in trees():
        found = {name for name, _ in calls(tree) if name in RUNNING}
        assert found == ({"exec", "compile"} if path == RUNS else set()), path


def test_yaml_makes_no_objects() -> None:
    """Every use of PyYAML is one of the safe ones, and each loader comes from a safe one."""
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
                assert node.attr in SAFE, (path, node.attr)
        for name, call in calls(tree):
            if name in ("yaml.load", "yaml.compose", "yaml.parse"):
                given = [*call.args[1:], *(word.value for word in call.keywords)]
                assert [ast.unparse(each) for each in given] <= [each for each in map(ast.unparse, given) if each in (
                    "_Loader", "_Fast", "_Safe", "loader", "yaml.CSafeLoader")], (path, ast.unparse(call))
                assert given, path


@pytest.mark.parametrize("name", ["cost_models.strict", "traces.strict", "simulator.scenarios.yaml_text"])
def test_each_loader_is_a_safe_one(name: str) -> None:
    from importlib import import_module

    import yaml
    module = import_module(name)
    loaders = [value for key, value in vars(module).items() if key in ("_Loader", "_Fast", "_Safe")]
    assert loaders
    for loader in loaders:
        assert issubclass(loader, yaml.constructor.SafeConstructor)
        assert not issubclass(loader, yaml.constructor.FullConstructor)


def test_no_shell_is_asked() -> None:
    for path, tree in trees():
        for name, call in calls(tree):
            assert name not in SHELLS, path
            assert not any(word.arg == "shell" for word in call.keywords), path


def test_archives_are_never_unpacked_to_the_disk() -> None:
    for path, tree in trees():
        for name, _ in calls(tree):
            assert name.rpartition(".")[2] not in ("extractall", "extract", "unpack_archive"), path
