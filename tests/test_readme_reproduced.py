"""The README's published figures and its verdict are what `batchsim reproduce` prints today.

``python tests/test_readme_reproduced.py`` writes them anew.
"""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from test_readme import README, columns, part, printed, replace

from simulator.cli.reproduce import print_answer
from simulator.studies.reproduce import NAMES, Answer, reproduce
from simulator.studies.reproduce.answers import VERDICT

SHOWN = ("anyscale", VERDICT)
"""Those whose tables are shown in full."""


def shown(answer: Answer) -> str:
    """What comes out, and the tables."""
    return printed(lambda console: print_answer(console, answer, facts=False))


def line(answer: Answer) -> str:
    """What comes out, as the end of its row in the table of all of them."""
    return f" {answer.told} |"


@pytest.mark.parametrize("name", ["anyscale", pytest.param(VERDICT, marks=pytest.mark.slow)])
def test_the_tables_are_those_of_today(name: str) -> None:
    if int(version("rich").partition(".")[0]) < 14:
        pytest.skip("an older rich gives the columns other widths")
    [found] = reproduce([name])
    assert columns(part(name, README.read_text(encoding="utf-8"))) == columns(shown(found))


def test_every_reproduction_has_a_line() -> None:
    text = README.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("name", ["anyscale", "vllm-memory", "tgi-v3", "sarathi",
                                  *(pytest.param(name, marks=pytest.mark.slow) for name in ("orca", "slots"))])
def test_its_line_says_what_comes_out(name: str) -> None:
    [answer] = reproduce([name])
    [row] = [row for row in README.read_text(encoding="utf-8").splitlines() if row.startswith(f"| `{name}` |")]
    assert row.endswith(line(answer))


def rewrite(answers: tuple[Answer, ...]) -> None:
    """Put today's tables and lines in place."""
    for answer in answers:
        if answer.name in SHOWN:
            replace(answer.name, shown(answer))
        if answer.name != VERDICT:
            text = README.read_text(encoding="utf-8")
            row = re.search(rf"^\| `{answer.name}` \|[^|]*\|(.*)$", text, re.MULTILINE)
            assert row
            README.write_text(text[:row.start(1)] + line(answer) + text[row.end(1):], encoding="utf-8")


if __name__ == "__main__":
    rewrite(reproduce())
