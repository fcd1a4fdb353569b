"""Account: what a study has to say to a reader - question, answer, tables - in words. It measures and draws nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.errors import InputError
from simulator.tables import Table


@dataclass(frozen=True)
class Account:
    """What was asked, and what came of it.

    Attributes:
        question: One sentence.
        answer: Sentences, the one that answers first.
        tables: What was measured, in the order in which a reader asks.
        facts: The inputs, one a line, such as "trace: azure-conv-2023, 500 requests".
        warnings: What a reader must know before trusting a number.
    """

    question: str
    answer: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The account for JSON."""
        return {"question": self.question, "answer": list(self.answer), "facts": list(self.facts),
                "warnings": list(self.warnings), "tables": [table.plain() for table in self.tables]}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Account:
        """The account that `plain` tells of. Raises InputError if it tells of none."""
        try:
            lines = {name: tuple(map(str, plain[name])) for name in ("answer", "facts", "warnings")}
            return cls(str(plain["question"]), tables=tuple(map(Table.of, plain["tables"])), **lines)
        except (KeyError, TypeError) as error:
            raise InputError(f"it is not as batchsim writes it ({type(error).__name__}: {error})") from None

    def __str__(self) -> str:
        lines = [self.question, "", *self.answer, *(f"Warning: {warning}" for warning in self.warnings)]
        return "\n".join([*lines, *(f"\n{table}" for table in self.tables)])
