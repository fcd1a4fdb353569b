"""Every notebook runs from beginning to end in a fresh kernel, with all that it checks; all in less than four minutes.

The default run takes the quickest one; `pytest -m slow tests/notebooks` takes the others.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest
from stored import NEEDS_TORCH, PATHS

nbformat = pytest.importorskip("nbformat", reason="needs the extra 'notebooks'")
nbclient = pytest.importorskip("nbclient", reason="needs the extra 'notebooks'")
pytest.importorskip("ipykernel", reason="needs the extra 'notebooks'")

QUICKEST = "01_first_run"
LONGEST = 240
"""Seconds of one cell: all notebooks together take less."""
FIGURES = {"01_first_run": 1, "02_static_against_continuous": 2, "03_capacity_plan": 2, "05_your_own_policy": 1,
           NEEDS_TORCH: 1, "07_trace_forensics": 1}
"""That a reader sees at least; those of 04 are behind its sliders."""
SLOW = [path for path in PATHS if path.stem != QUICKEST]


def run(notebook: Any, folder: Path) -> Any:
    """The notebook with its outputs, run in this folder. Raises CellExecutionError at the first cell that fails."""
    client = nbclient.NotebookClient(notebook, timeout=LONGEST, kernel_name="python3",
                                     resources={"metadata": {"path": str(folder)}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")    # what Jupyter's own packages deprecate is not ours
        return client.execute(stderr=DEVNULL)


@pytest.fixture(autouse=True)
def _nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))


@pytest.mark.parametrize("path", [QUICKEST, *(pytest.param(path.stem, marks=pytest.mark.slow) for path in SLOW)])
def test_it_runs_whole(path: str, tmp_path: Path) -> None:
    if path == NEEDS_TORCH and find_spec("torch") is None:
        pytest.skip("needs the extra 'calibration'")
    source = next(each for each in PATHS if each.stem == path)
    ran = run(nbformat.read(source, 4), tmp_path)
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    shown = [output for cell in code for output in cell.outputs]
    assert [output.text for output in shown if output.get("name") == "stderr"] == []
    assert sum("image/svg+xml" in output.get("data", {}) for output in shown) >= FIGURES.get(path, 0)


def test_a_claim_that_does_not_hold_stops_it(tmp_path: Path) -> None:
    cells = [nbformat.v4.new_code_cell("assert 1 == 2, 'the claim'"), nbformat.v4.new_code_cell("never = True")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="the claim"):
        run(notebook, tmp_path)
    assert notebook.cells[1].execution_count is None
