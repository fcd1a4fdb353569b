"""The vllm policy against the real vLLM 0.33.0, where it is installed: random scenarios, every field of every step.

`drive.py` records what the engine decides, in a process of its own; `conformance` replays it in both modes. See
README.md beside this file for an environment that has the package. These variables choose what is run:

    VLLM_PYTHON       the interpreter that has vLLM; default the one that runs the tests
    VLLM_SCENARIOS    how many scenarios; default 300
    VLLM_SEED         the seed of the first; default 0
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from live.scenarios import draw, first_difference, read, recorded, unpack, write

from simulator.conformance import conformance

PYTHON = os.environ.get("VLLM_PYTHON", sys.executable)
COUNT = int(os.environ.get("VLLM_SCENARIOS", "300"))
SEED = int(os.environ.get("VLLM_SEED", "0"))
DRIVER = Path(__file__).with_name("drive.py")


def has_vllm() -> bool:
    """Whether the interpreter has the package; it is not imported."""
    asked = "import sys, importlib.util; sys.exit(importlib.util.find_spec('vllm') is None)"
    return subprocess.run([PYTHON, "-c", asked], check=False).returncode == 0


pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(not has_vllm(), reason="needs vLLM 0.33.0: see tests/live/README.md")]


def record(folder: Path) -> None:
    """Let the engine decide every scenario in a folder."""
    done = subprocess.run([PYTHON, str(DRIVER), str(folder)], capture_output=True, text=True, check=False,
                          env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_decision_on_random_scenarios_is_the_engines(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + COUNT):
        write(draw(Random(seed)), tmp_path, f"seed-{seed:06}")
    record(tmp_path)
    verdicts = list(conformance("vllm", tmp_path))
    assert [(each.name, each.difference) for each in verdicts if not each.identical] == []
    counts = counted(tmp_path)
    print(f"\n{len(verdicts)} scenarios identical in both modes:", dict(counts))
    assert len(verdicts) == COUNT
    assert counts["steps"] == sum(each.steps for each in verdicts)
    assert min(counts["preemptions"], counts["hits"]) >= COUNT, "the scenarios are too easy"


def counted(folder: Path) -> Counter[str]:
    """What the recordings of a folder come to."""
    counts: Counter[str] = Counter()
    for path in folder.glob("*.trace.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            if "sched" in line:
                counts["steps"] += 1
                counts["tokens"] += line["tokens"]
                counts["preemptions"] += len(line["preempted"])
                counts["hits"] += sum(kind != "running" and before > 0 for _, kind, _, before in line["sched"])
    return counts


def test_the_driver_records_again_what_was_recorded(tmp_path: Path) -> None:
    for name in recorded():
        unpack(name, tmp_path)
    record(tmp_path)
    for name in recorded():
        lines = [json.loads(line) for line in (tmp_path / f"{name}.trace.jsonl").read_text().splitlines()]
        assert first_difference(lines[1:-1], read(name)[1]) is None, name
