"""How a source was read: what was kept, what was left out and why, and how to understand it. It knows no files."""

from dataclasses import dataclass
from typing import NamedTuple


class Reject(NamedTuple):
    """One row that a reader left out: where it stood, what it held, and the rule it broke.

    place is such as "line 7"; column is "row" where the fault is not in one column.
    """

    place: str
    column: str
    value: str
    rule: str

    def __str__(self) -> str:
        where = "row" if self.column == "row" else f"column {self.column}"
        return f"{self.place}, {where}: {self.value} {self.rule}"


@dataclass(frozen=True)
class ReadReport:
    """How a source was read; it stays the same in every trace cut or scaled from that one.

    rows_in: rows looked at: those of the trace, the rejected, the failed and those outside of the window.
    rejected: rows that broke a rule, where the reader was lenient.
    out_of_order: rows stamped earlier than some row before them; they were sorted in.
    failed: rows that the source records as failed requests, such as those without output tokens; left out.
    outside: rows outside of the window asked for; left out.
    columns: which column was taken for which role, spelled as `--columns` takes it.
    prompts: "cumulative" or "increments", as the source has the prompts of a conversation's later turns; None
        where it has no conversations. The trace itself always has them cumulative.
    clock: first and last arrival as a window counts them, in ns from the midnight before the first row; None without
        times.
    notes: what else a user of the trace must know, a sentence each.
    """

    format: str
    rows_in: int
    rejected: tuple[Reject, ...] = ()
    out_of_order: int = 0
    failed: int = 0
    outside: int = 0
    columns: tuple[str, ...] = ()
    prompts: str | None = None
    clock: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


MADE_IN_MEMORY = ReadReport("memory", 0)
"""Stands for "no report given"; the trace then counts its own rows."""
