"""How the notebooks are stored: without outputs, prose before code, a check at the end, and named in the README."""

from __future__ import annotations

import ast

import pytest
from stored import FOLDER, PATHS, Page, page

CLEAR = "jupyter nbconvert --clear-output --inplace notebooks/*.ipynb"


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Page:
    return page(request.param)


def test_there_are_seven_and_their_numbers_say_in_which_order_to_read_them() -> None:
    assert [path.name[:2] for path in PATHS] == [f"0{number}" for number in range(1, 8)]
    assert [page(path).title.split(".")[0] for path in PATHS] == [f"# {number}" for number in range(1, 8)]


def test_no_output_is_stored(notebook: Page) -> None:
    for cell in notebook.cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), f"clear it: {CLEAR}"
        assert cell["metadata"] == {}
    assert "widgets" not in notebook.document["metadata"]


def test_it_is_a_notebook_as_jupyter_defines_it(notebook: Page) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra 'notebooks'")
    nbformat.validate(nbformat.from_dict(notebook.document))
    assert len({cell["id"] for cell in notebook.cells}) == len(notebook.cells)
    assert notebook.document["metadata"]["kernelspec"]["name"] == "python3"


def test_prose_stands_before_code(notebook: Page) -> None:
    kinds = "".join(cell["cell_type"][0] for cell in notebook.cells)
    assert kinds.startswith("m")
    assert "ccc" not in kinds
    assert kinds.count("m") >= 5


def test_cells_are_short_enough_to_be_read(notebook: Page) -> None:
    assert max(map(len, notebook.lines())) <= 120
    assert max(len(line) for code in notebook.code for line in code.splitlines()) <= 100
    assert max(len(code.splitlines()) for code in notebook.code) <= 32


def test_it_ends_in_checked_numbers(notebook: Page) -> None:
    headings = [line for line in notebook.lines() if line.startswith("## ")]
    assert headings[-1] == "## Checked"
    checks = [node for node in ast.walk(ast.parse(notebook.code[-1])) if isinstance(node, ast.Assert)]
    assert len(checks) >= 4


def test_the_readme_names_every_notebook() -> None:
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for path in PATHS:
        assert f"(notebooks/{path.name})" in readme
