"""Whoever follows the README from top to bottom in one directory gets an answer from every command, on few requests.

Left out is what takes more than this machine has: another one, a cluster, or minutes. `test_questions` runs the table
of capacity.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ELSEWHERE = ("--backend", "--device cuda", "my-gpu.yaml", "bench", "--device cpu", "requests.jsonl")
"""What marks a command that is left out: clusters, GPUs, minutes, and files of others."""
FEW = dict.fromkeys(("compare", "why", "explain", "run", "plan"), ("--num-prompts", "120"))
FEW["sweep"] = ("--num-prompts", "20", "--workers", "1")
NO = {("plan", 1), ("regress", 1)}
"""Statuses that are answers: few requests leave a plan none, and another policy is another one."""


def commands() -> list[str]:
    """What is typed, without the answers."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    typed = (line for block in blocks for line in block.replace("\\\n", "").splitlines())
    return [line.removeprefix("$ batchsim ") for line in typed if re.match(r"\$ (batchsim|mkdir) ", line)]


def few(command: str) -> Iterator[str]:
    """The words of a command, on few requests where it simulates its own."""
    name, *flags = shlex.split(command)
    yield from (name, *flags)
    if not {"--result", "--baseline", "--backend"} & set(flags):
        yield from FEW.get(name, ())
    yield "--quiet"


def lay(folder: Path) -> None:
    """What is the reader's own: a log, the policy shown in the README, measured results, and the recordings."""
    rows = [f"{second},{100 + 37 * second % 900},{20 + 13 * second % 300}" for second in range(40)]
    (folder / "requests.csv").write_text("\n".join(["ts,in_tokens,out_tokens", *rows, ""]))
    code = next(block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "ShortestFirst" in block)
    (folder / "my_policy.py").write_text(code)
    for name in ("base", "head"):
        for number in "123":
            (folder / f"{name}-{number}.json").symlink_to(ROOT / "tests" / "traces" / "samples" / "vllm_bench.json")
    (folder / "tests").symlink_to(ROOT / "tests")


def test_what_is_left_out_is_little() -> None:
    left = [command for command in commands() if any(mark in command for mark in ELSEWHERE)]
    assert len(left) < 10 < 30 < len(commands())


@pytest.mark.slow
def test_each_command_answers_after_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands():
        if command.startswith("$ mkdir -p "):
            Path(command.split()[-1]).mkdir()
        elif not any(mark in command for mark in ELSEWHERE):
            status = main(tuple(few(command)))
            told = capsys.readouterr().err
            assert status == 0 or (command.split()[0], status) in NO, f"{command}: {told}"
