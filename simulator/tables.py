"""Table: a titled grid of finished cells, shown as text, in a notebook or as a frame. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the first column names each row.

    Attributes:
        title: One line above.
        header: Names of the columns, the first one included.
        rows: As many cells as the header has.
        note: One line below, or nothing.
        words: Names of the columns beside the first that hold words, and so begin at the left.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The table for JSON."""
        return {"title": self.title, "header": list(self.header), "rows": [list(row) for row in self.rows],
                "note": self.note, "words": list(self.words)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Table:
        """The table that `plain` tells of. Raises InputError if it tells of none."""
        try:
            table = cls(str(plain["title"]), tuple(map(str, plain["header"])),
                        tuple(tuple(map(str, row)) for row in plain["rows"]), str(plain["note"]),
                        tuple(map(str, plain["words"])))
        except (KeyError, TypeError, IndexError) as error:
            raise InputError(f"a table is not as batchsim writes it ({type(error).__name__}: {error})") from None
        if not table.header or any(len(row) != len(table.header) for row in table.rows):
            raise InputError(f"the rows of the table {table.title!r} do not fit its header")
        return table

    def to_frame(self) -> pd.DataFrame:
        """The same as a DataFrame indexed by the first column."""
        import pandas as pd
        return pd.DataFrame(self.rows, columns=list(self.header)).set_index(self.header[0])

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.header))]
        left = [at == 0 or name in self.words for at, name in enumerate(self.header)]
        body = ["  ".join(cell.ljust(width) if words else cell.rjust(width) for cell, width, words in zip(
            line, widths, left, strict=True)).rstrip() for line in lines]
        return "\n".join([self.title, *body, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        rows = [_row("th", self.header), *(_row("td", row) for row in self.rows)]
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table><caption>{escape(self.title)}</caption>{''.join(rows)}</table>{note}"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
