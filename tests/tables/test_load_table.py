"""The table of loads: a case that takes longer than it may says so in its row, and the others follow."""

from __future__ import annotations

import re

import pytest
from load import alone, main
from loads import CASES, sized


def test_a_row_of_a_case() -> None:
    name, cpu, _, peak, came = alone("100,000 at one instant", 0.001)
    assert name == "100,000 at one instant"
    assert str(came).startswith("100 answered in ")
    assert str(cpu).endswith(" s")
    assert str(peak).endswith(" MiB")


def test_a_case_that_passes_its_limit_says_so() -> None:
    assert alone("1,000,000 requests", 1.0, cpu=2)[4] == "**stopped: not done in 2 s of CPU time**"
    assert alone("1,000,000 requests", 1.0, wall=1)[4] == "**stopped: not done in 1 s of wall time**"


def test_a_row_is_printed_when_it_is_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []

    def row(name: str, scale: float) -> tuple[object, ...]:
        shown.append(capsys.readouterr().out.count("\n"))
        return name, scale

    monkeypatch.setattr("load.alone", row)
    main(["--quick", "100,000 at one instant", "1 replica to 500 and back"])
    assert [*shown, capsys.readouterr().out] == [2, 1, "| 1 replica to 50 and back | 0.1 |\n"]


def test_a_case_is_called_by_the_size_that_it_has() -> None:
    assert {name for name in CASES if sized(name, 1.0) != name} == set()
    assert sized("a sweep of 10,000 points", 0.1) == "a sweep of 961 points"
    assert sized("100,000 at one instant, 2 replicas by KV", 0.1) == "10,000 at one instant, 2 replicas by KV"
    assert sized("1,000 requests in 10 years", 0.1) == "100 requests in 10 years"
    assert sized("500 replicas, 7 routers", 0.1) == "50 replicas, 7 routers"
    assert [name for name in CASES if not re.search(r"\d{3}", name)] == [
        "... with too little memory", "... and by priority", "page, pictures, trace events"]
