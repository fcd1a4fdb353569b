"""How the notebooks are stored: without outputs, prose before code, a check at the end, and named in the README."""

from __future__ import annotations

import ast

import pytest
from pages import FOLDER, PATHS, Page, page

CLEAR = "jupyter nbconvert --clear-output --inplace notebooks/*.ipynb"


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest) -> Page:
    return page(request.param)


def test_there_are_seven_and_their_numbers_say_in_which_order_to_read_them() -> None:
    assert [path.name[:2] for path in PATHS] == [f"0{number}" for number in range(1, 8)]
    assert [page(path).title.split(".")[0] for path in PATHS] == [f"# {number}" for number in range(1, 8)]


def test_no_output_is_stored(stored: Page) -> None:
    for cell in stored.cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), f"clear it: {CLEAR}"
        assert cell["metadata"] == {}
    assert "widgets" not in stored.document["metadata"]


def test_it_is_a_notebook_as_jupyter_defines_it(stored: Page) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra 'notebooks'")
    nbformat.validate(nbformat.from_dict(stored.document))
    assert len({cell["id"] for cell in stored.cells}) == len(stored.cells)
    assert stored.document["metadata"]["kernelspec"]["name"] == "python3"


def test_prose_stands_before_code(stored: Page) -> None:
    kinds = "".join(cell["cell_type"][0] for cell in stored.cells)
    assert kinds.startswith("m")
    assert "ccc" not in kinds
    assert kinds.count("m") >= 5


def test_cells_are_short_enough_to_be_read(stored: Page) -> None:
    assert max(map(len, stored.lines())) <= 120
    assert max(len(line) for code in stored.code for line in code.splitlines()) <= 100
    assert max(len(code.splitlines()) for code in stored.code) <= 32


def test_it_ends_in_checked_numbers(stored: Page) -> None:
    headings = [line for line in stored.lines() if line.startswith("## ")]
    assert headings[-1] == "## Checked"
    checks = [node for node in ast.walk(ast.parse(stored.code[-1])) if isinstance(node, ast.Assert)]
    assert len(checks) >= 4


def test_the_readme_names_every_notebook() -> None:
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for path in PATHS:
        assert f"(notebooks/{path.name})" in readme
