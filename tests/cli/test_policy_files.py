"""A policy of one's own, from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simulator.errors import InputError
from simulator.policies import Vllm
from simulator.policies.loading import PREFIX, fault_in_policy_file, load_policy

Call = Callable[..., tuple[int, str, str]]
GOOD = """
from __future__ import annotations
from dataclasses import dataclass
from simulator.policies import Policy, Vllm

@dataclass
class Patient(Vllm):
    patience: int = 3

class Named(Vllm):
    name = "mine"

class NoPlan(Policy):
    pass

class Undecorated(Vllm):
    patience: int = 3

class Other:
    pass

class Broken(Vllm):
    def plan(self, queue, memory, now):
        return 1 / 0

class Asleep(Vllm):
    def plan(self, queue, memory, now):
        return None
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    yield path
    for name in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[name]


def test_a_class_is_loaded_once_while_its_file_is_unchanged(file: Path) -> None:
    kind = load_policy(f"{file}:Patient")
    assert issubclass(kind, Vllm)
    assert kind.knobs()["patience"] == 3
    assert load_policy(f"{file}:Patient") is kind
    file.write_text(GOOD.replace("patience: int = 3", "patience: int = 4"))
    assert load_policy(f"{file}:Patient").knobs()["patience"] == 4
    assert list(file.parent.iterdir()) == [file]


def test_a_class_without_a_name_is_called_by_its_own(file: Path) -> None:
    assert [load_policy(f"{file}:{name}").name for name in ("Patient", "Named")] == ["Patient", "mine"]


@pytest.mark.parametrize(("reference", "told"), [
    ("mine.py:Patent", "unknown class of mine.py 'Patent': did you mean 'Patient'? (known: Patient, Named, NoPlan, "
                       "Undecorated, Other, Broken, Asleep)"),
    ("mine.py:Other", "mine.py: Other is not a policy: make it a subclass of simulator.policies.Policy"),
    ("mine.py:NoPlan", "mine.py: NoPlan does not say what to run: write its plan(self, queue, memory, now)"),
    ("mine.py:Undecorated", "mine.py: Undecorated has knobs (patience) and is no dataclass: put @dataclass above it"),
    ("mine.py:", "policy 'mine.py:' names no class: write FILE.py:CLASS, such as my_file.py:MyPolicy"),
    ("other.py:X", "policy file other.py: No such file or directory"),
])
def test_a_wrong_reference(reference: str, told: str, file: Path) -> None:
    with pytest.raises(InputError) as error:
        load_policy(reference)
    assert str(error.value) == told


@pytest.mark.parametrize(("text", "told"), [
    ("x = 1\nimport not_there", "policy file mine.py, line 2: ModuleNotFoundError: No module named 'not_there'"),
    ("x = = 1", "policy file mine.py, line 1: SyntaxError: invalid syntax"),
    ("raise SystemExit", "policy file mine.py, line 1: SystemExit"),
    ("x = 1", "mine.py has no class 'X', nor any other: write a subclass of simulator.policies.Policy"),
])
def test_a_file_that_does_not_run(text: str, told: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(InputError) as error:
        load_policy("mine.py:X")
    assert str(error.value) == told
    assert [name for name in sys.modules if name.startswith(PREFIX) and text == "raise SystemExit"] == []


def test_an_error_of_ours_is_not_blamed_on_a_file() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    assert fault_in_policy_file(caught.value) is None


def test_a_policy_that_adds_nothing_decides_as_its_base(batchsim: Call, file: Path) -> None:
    own = json.loads(batchsim("run", "--json", "--num-prompts", "30", "--policy", "mine.py:Patient", "--set",
                              "patience=5")[1])
    base = json.loads(batchsim("run", "--json", "--num-prompts", "30")[1])
    assert own["policy_args"] == f"{base['policy_args']},patience=5"
    assert (own["policy"], own["duration"], own["steps"]) == ("Patient", base["duration"], base["steps"])


def test_its_faults_are_the_users(refused: Callable[..., str], file: Path) -> None:
    told = refused("run", "--num-prompts", "5", "--policy", "mine.py:Broken")
    assert told == ("Broken: its plan raised an error (ZeroDivisionError: division by zero in mine.py, "
                    "line 24), in step 0 at 0 ns (0 running, 1 waiting, 28605 of 28605 blocks free; "
                    "request 0 is first in line: 4,076 tokens, 255 blocks) (run again with --debug for the traceback)")
    assert refused("run", "--num-prompts", "5", "--policy", "mine.py:Asleep").startswith("Asleep: stalled at ")


TOLD = "mine.py is run as Python code: a file that was given names it as the policy\n"
ASKED = ("--num-prompts", "5", "--quiet")


def test_a_file_that_names_a_policy_file_runs_no_code_unsaid(batchsim: Call, file: Path) -> None:
    Path("s.yaml").write_text("policy: mine.py:Patient\n")
    Path("points.yaml").write_text("- policy: mine.py:Patient\n")
    batchsim("baseline", "save", "--policy", "mine.py:Patient", *ASKED, "-o", "b.json")
    for number, line in enumerate([
            ("run", "--scenario", "s.yaml"), ("compare", "--scenario", "s.yaml"), ("sweep", "--list", "points.yaml"),
            ("sweep", "--scenario", "s.yaml", "--vary", "seed=1"), ("regress", "--baseline", "b.json"),
            ("explain", "--scenario", "s.yaml")]):
        file.write_text(f"{GOOD}# {number}")    # what was run already is not run again
        status, _, err = batchsim(*line, *(ASKED if line[0] != "regress" else ASKED[2:]), *(
            ("-o", f"out-{number}") if line[0] not in ("run", "explain") else ()))
        assert (status, err) == (0, TOLD), line


@pytest.mark.parametrize("line", [
    ("run", "--policy", "mine.py:Patient"), ("run", "--policy=./mine.py:Patient"),
    ("compare", "--policies", "static,mine.py:Patient", "-o", "out"),
    ("sweep", "--vary", "policy=vllm,mine.py:Patient", "-o", "out")])
def test_what_was_typed_is_not_told(line: tuple[str, ...], batchsim: Call, file: Path) -> None:
    status, _, err = batchsim(*line, *ASKED)
    assert (status, err) == (0, "")


@pytest.mark.parametrize("more", [("--label", "mine.py:Patient"), ("--label=mine.py:Patient",),
                                  ("--result-filename", "mine.py:P.json"), ("--label", "--policy=mine.py:Patient"),
                                  ("--metadata", "--policy=mine.py:Patient")])
def test_what_another_flag_says_is_no_policy_typed(more: tuple[str, ...], batchsim: Call, file: Path) -> None:
    Path("s.yaml").write_text("policy: mine.py:Patient\n")
    status, _, err = batchsim("run", "--scenario", "s.yaml", *more, *ASKED)
    assert (status, err) == (0, TOLD)


def test_what_is_not_run_is_not_told(batchsim: Call, file: Path) -> None:
    Path("s.yaml").write_text("policy: mine.py:Patient\n")
    assert batchsim("run", "--scenario", "s.yaml", "--policy", "vllm", *ASKED)[::2] == (0, "")
