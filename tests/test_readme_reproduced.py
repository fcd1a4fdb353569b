"""The README's published figures and its verdict are what `batchsim reproduce` prints today.

``python tests/test_readme_reproduced.py`` writes them anew.
"""

from __future__ import annotations

import pytest
from rich.console import Console
from test_readme import README, part, printed, replace

from simulator.cli.tables import print_table
from simulator.studies.reproduce import NAMES, Answer, reproduce


def shown(answer: Answer) -> str:
    """The tables of an answer."""
    def show(console: Console) -> None:
        for table in answer.tables():
            print_table(console, table)

    return printed(show)


@pytest.mark.parametrize("name", ["anyscale", pytest.param("verdict", marks=pytest.mark.slow)])
def test_the_tables_are_those_of_today(name: str) -> None:
    [found] = reproduce([name])
    assert part(name, README.read_text(encoding="utf-8")) == shown(found)


def test_every_reproduction_has_a_line() -> None:
    text = README.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in text] == []


if __name__ == "__main__":
    for answer in reproduce(["anyscale", "verdict"]):
        replace(answer.name, shown(answer))
