"""Answer: what a small study of its own found, in words and numbers, for tables, figures and JSON alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from simulator.tables import Table

if TYPE_CHECKING:
    import pandas as pd

Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Answer:
    """One question, answered by simulation.

    Attributes:
        key: A short name.
        question: As a reader asks it.
        told: Sentences with numbers.
        table: The numbers behind them.
        data: Tables of plain values by name, which the figure draws.
    """

    key: str
    question: str
    told: tuple[str, ...]
    table: Table
    data: Mapping[str, Rows]

    def frame(self, name: str) -> pd.DataFrame:
        """One of the tables of plain values; what was not measured is NaN."""
        import pandas as pd
        return pd.DataFrame([{key: nan if value is None else value for key, value in row.items()}
                             for row in self.data[name]])

    def records(self) -> dict[str, Any]:
        """All of it but the table, which says nothing more."""
        return {"question": self.question, "answer": list(self.told), **self.data}


def times_as(one: float | None, other: float | None) -> str:
    """How many times as large `one` is as `other`."""
    return f"{one / other:.1f}x" if one is not None and other else "-"


def ms(value: float | None) -> str:
    """A time given in milliseconds, in the unit in which it is short."""
    if value is None:
        return "-"
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.2f} s"


def number(value: float | None) -> str:
    """As many digits as say something."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}"
