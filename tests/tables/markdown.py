"""A table for the README's "How it is tested", as Markdown.

Each script beside this one makes one of its tables: ``python tests/tables/NAME.py`` prints it, ready to be put between
the marks of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The columns as a head, then a line for each row; a bar inside a cell is escaped."""
    return "\n".join(map(line, [columns, ["---"] * len(columns), *rows]))


def line(cells: Sequence[object]) -> str:
    """One line of a table."""
    return "| " + " | ".join(str(cell).replace("|", r"\|") for cell in cells) + " |"
