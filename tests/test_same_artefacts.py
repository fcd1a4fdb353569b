"""Every file that the tool writes has the same bytes wherever, whenever and however often it is written.

Two processes do the same work in worlds that differ in all that must not matter: hash seed, locale, time zone,
directory, screen, a matplotlib backend and settings of the user's own, and the number of workers.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FEW = ("--num-prompts", "24")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("run", *FEW, "--save-detailed", "--trace-events", "events.json", "-o", "run"),
    "compare": ("compare", *FEW, "-o", "compare"),
    "sweep": ("sweep", *FEW, "--vary", "max_num_seqs=1,8", "-o", "sweep"),
    "plan": ("plan", *FEW, "--goodput", "ttft:5000", "--attainment", "0.5", "--replications", "1", "--cost-model",
             "constant:5", "-o", "plan"),
    "why": ("why", *FEW, "-o", "why"),
    "explain": ("explain", *FEW, "-o", "explain"),
    "cost": ("cost", "show", "llama-3.1-8b-h100-80-bf16", "-o", "cost.svg"),
    "describe": ("trace", "describe", "azure-conv-2023", "-o", "trace.svg"),
    "generate": ("trace", "generate", "azure-code-2023", "-o", "made.jsonl"),
    "init": ("init", "-o", "scenario.yaml"),
    "baseline": ("baseline", "save", *FEW, "-o", "base.json"),
    "regress": ("regress", "--baseline", "base.json", *FEW, "-o", "regress"),
    **{f"report {name}": ("report", name) for name in ("run", "compare", "sweep", "plan")},
}
WORKERS = ("sweep", "plan")
"""Commands that can share their work out."""
SCRIPT = """
import json, sys
import matplotlib
def settings():    # to ask rcParams itself for its backend is to choose one
    return {name: dict.__getitem__(matplotlib.rcParams, name) for name in matplotlib.rcParams}
before = settings()
from simulator.cli.main import main
for command in json.loads(sys.argv[1]):
    status = main(command)
    assert status == 0, (command, status)
assert settings() == before, "settings were changed"
assert "matplotlib.pyplot" not in sys.modules, "pyplot was loaded"
"""
WORLDS: dict[str, dict[str, str]] = {
    "plain": {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
    "odd": {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Pacific/Apia",
            "MPLBACKEND": "svg", "COLUMNS": "61", "NO_COLOR": "1"},
}
SETTINGS = "axes.grid: True\nfont.size: 23\nsvg.fonttype: none\nsvg.hashsalt: mine\nfigure.dpi: 33\nsavefig.dpi: 44\n"


def written(directory: Path, world: str, workers: int) -> dict[str, bytes]:
    """All files that the commands write in a directory of this world."""
    directory.mkdir(parents=True)
    (directory.parent / "matplotlibrc").write_text(SETTINGS)
    more = {"MATPLOTLIBRC": str(directory.parent / "matplotlibrc")} if world == "odd" else {}
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    commands = [[*command, "--quiet", *(("--workers", str(workers)) if name in WORKERS else ())]
                for name, command in COMMANDS.items()]
    run = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(commands)], cwd=directory, capture_output=True,
                         text=True, env={**kept, **WORLDS[world], **more, "PYTHONPATH": str(ROOT),
                              "SOURCE_DATE_EPOCH": "1700000000"}, check=False)
    assert run.returncode == 0, run.stderr
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*"))
            if path.is_file() and "points" not in path.parts and path.name != ".lock"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return written(tmp_path_factory.mktemp("plain") / "here", "plain", 1)


def test_another_world_writes_the_same_bytes(plain: dict[str, bytes], tmp_path: Path) -> None:
    odd = written(tmp_path / "somewhere" / "else entirely", "odd", 2)
    assert list(odd) == list(plain)
    assert [name for name in plain if odd[name] != plain[name]] == []


def test_all_kinds_of_files_were_compared(plain: dict[str, bytes]) -> None:
    assert {Path(name).suffix for name in plain} == {
        ".html", ".json", ".csv", ".svg", ".jsonl", ".yaml", ".md", ".xml"}
    assert len(plain) > 40


def test_no_file_says_when_or_where_it_was_made(plain: dict[str, bytes]) -> None:
    year = b"20231114-"    # of SOURCE_DATE_EPOCH
    assert [name for name, content in plain.items() if b"/here" in content or str(ROOT).encode() in content] == []
    assert year in plain["run/vllm-trace.json"]
    assert [name for name, content in plain.items() if b"<dc:date>" in content] == []


def test_a_manifest_knows_every_file_of_its_directory(plain: dict[str, bytes]) -> None:
    for manifest in (name for name in plain if name.endswith("manifest.json")):
        folder = Path(manifest).parent
        listed = json.loads(plain[manifest])["sha256"]
        there = {Path(name).name: hashlib.sha256(content).hexdigest() for name, content in plain.items()
                 if Path(name).parent == folder and name != manifest}
        assert listed == there


def test_figures_need_no_closing() -> None:
    from matplotlib import pyplot

    from simulator.plots import queue_figure
    before = pyplot.get_fignums()
    figures = [weakref.ref(queue_figure({"a": {"no_queue_share": 0.5}})) for _ in range(25)]    # pyplot warns at 21
    gc.collect()
    assert pyplot.get_fignums() == before
    assert [figure for figure in figures if figure() is not None] == []


@pytest.mark.parametrize("package", ["simulator", "traces", "cost_models", "calibration"])
def test_nothing_asks_for_a_screen_or_chooses_a_backend(package: str) -> None:
    wanted = re.compile(r"^\s*(import|from) matplotlib.*pyplot|matplotlib\.use\(|switch_backend", re.MULTILINE)
    assert [str(path) for path in (ROOT / package).rglob("*.py") if wanted.search(path.read_text())] == []
