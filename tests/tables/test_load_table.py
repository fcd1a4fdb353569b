"""The table of loads: a case that takes longer than it may says so in its row, and the others follow."""

from __future__ import annotations

import pytest
from load import alone, label, main


def test_a_row_of_a_case() -> None:
    name, cpu, _, peak, came = alone("100,000 at one instant", 0.001)
    assert name == "100 at one instant"
    assert str(came).startswith("100 answered in ")
    assert str(cpu).endswith(" s")
    assert str(peak).endswith(" MiB")


def test_a_case_that_passes_its_limit_says_so() -> None:
    assert alone("1,000,000 requests", 1.0, cpu=2)[4] == "**stopped: not done in 2 s of CPU time**"
    assert alone("1,000,000 requests", 1.0, wall=1)[4] == "**stopped: not done in 1 s of wall time**"


@pytest.mark.parametrize(("name", "quick"), [
    ("1,000,000 requests", "100,000 requests"), ("1 replica to 500 and back", "1 replica to 50 and back"),
    ("1,000 requests in 10 years", "100 requests in 10 years")])
def test_a_row_tells_its_size(name: str, quick: str) -> None:
    assert label(name, 1.0) == name
    assert label(name, 0.1) == quick


def test_a_row_is_printed_when_it_is_there(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []

    def row(name: str, scale: float) -> tuple[object, ...]:
        shown.append(capsys.readouterr().out.count("\n"))
        return name, scale

    monkeypatch.setattr("load.alone", row)
    main(["a", "b"], quick=True)
    assert [*shown, capsys.readouterr().out] == [2, 1, "| b | 0.1 |\n"]
