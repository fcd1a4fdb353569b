"""The notebooks as files: where they are, and what stands in them. It runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
NEEDS_TORCH = "06_calibrate_and_validate"


@dataclass(frozen=True)
class Page:
    """A notebook.

    Attributes:
        path: Its file.
        document: The JSON in it.
    """

    path: Path
    document: dict[str, Any]

    @property
    def cells(self) -> list[dict[str, Any]]:
        return self.document["cells"]

    @property
    def code(self) -> list[str]:
        return ["".join(cell["source"]) for cell in self.cells if cell["cell_type"] == "code"]

    @property
    def title(self) -> str:
        return self.cells[0]["source"][0].strip()

    def lines(self) -> Iterator[str]:
        for cell in self.cells:
            yield from "".join(cell["source"]).splitlines()


def page(path: Path) -> Page:
    return Page(path, json.loads(path.read_text(encoding="utf-8")))
