"""Whatever is typed behind a flag: a true answer, or one line that tells the next move. See `odd_flags`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from odd_flags import BASES, VALUES, Case, Outcome, attempt, cases, fault, leaves, prepare, sample

SOME = 400
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("odd") / "made")


def faults(of: list[Case], made: Path) -> list[str]:
    found = ((case, fault(case, attempt(case, made, made.parent / "call"))) for case in of)
    return [f"{case}: {wrong}" for case, wrong in found if wrong]


def test_every_command_has_a_line_to_start_from() -> None:
    assert set(BASES) == {words for words, _ in leaves()}


def test_every_flag_of_every_command_is_tried() -> None:
    tried = {(case.command, case.flag) for case in cases()}
    flags = {(words, name) for words, each in leaves() for parameter in each.params for name in parameter.opts
             if name.startswith("--") and name != "--help"}
    assert flags <= tried
    assert {case.kind for case in cases() if case.command == "run"} == {*VALUES, "twice"}


def test_a_fault_is_seen() -> None:
    case = Case("run", "--seed", "NaN", ("run", "--seed=nan"))
    assert fault(case, Outcome(0, "{}", "", 0.1, 1)) == "it is taken, with status 0"
    assert fault(case, Outcome(2, "", "batchsim: one\nand two\n", 0.1, 1)).startswith("not refused in one line")
    assert fault(case, Outcome(2, "", "batchsim: bell \x07\n", 0.1, 1)).startswith("refused in ")
    assert fault(case, Outcome(70, "", "", 0.1, 1)).startswith("status 70")
    assert fault(case, Outcome(1, "", "Traceback (most recent call last):", 0.1, 1)).startswith("it shows its inside")
    assert fault(case, Outcome(1, "", "", 100, 1)).startswith("it takes 100.0 s")
    assert fault(Case("run", "--seed", "one", ()), Outcome(0, "mean nan", "", 0.1, 1)).startswith("no number")
    assert fault(Case("run", "--seed", "one", ()), Outcome(0, "mean 1", "", 0.1, 1)) == ""


def test_some_odd_flags(made: Path) -> None:
    assert faults(sample(cases(), SOME), made) == []


@pytest.mark.slow
@pytest.mark.nightly
def test_all_odd_flags(made: Path) -> None:
    assert faults(cases(), made) == []


def test_of_a_flag_that_is_given_twice_the_last_one_counts(batchsim: Call) -> None:
    once, twice = (batchsim("run", "--num-prompts", "5", "--json", *flags)[1] for flags in (
        ("--seed", "2"), ("--seed", "1", "--seed", "2")))
    assert once == twice


@pytest.mark.parametrize(("flags", "told"), [
    ("--request-rate 3 --rate-scale 2", "give one"),
    ("--request-rate 3 --shape ramp:1-10/60s", "give one"),
    ("--kv-capacity-tokens 9000 --gpu-memory-utilization 0.5", "give one of them"),
    ("--ttft-timeout 1 --load saturated", "waits for ever: give load trace"),
    ("--autoscale queue:3 --max-replicas 3 --load saturated", "give load trace"),
    ("--min-replicas 3 --max-replicas 2 --autoscale queue:3", "must lie between"),
])
def test_flags_that_contradict_each_other_are_refused(flags: str, told: str, batchsim: Call) -> None:
    status, out, err = batchsim("run", "--num-prompts", "5", *flags.split())
    assert (status, out) == (2, "")
    assert told in err
