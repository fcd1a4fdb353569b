"""What a reader knows of one kind of file: its shape and the names of its columns.

A column has a role here: arrival, prompt, output, max_tokens, tenant, priority or hash_ids. A dialect is data; how rows
are split and checked is the same for all of them (`rows`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from traces.errors import TraceError, plain, shown, unknown
from traces.readers.values import UNITS

ROLES = ("arrival", "prompt", "output", "max_tokens", "tenant", "priority")
"""Roles that a caller may map to a column."""

Batch = dict[str, Any]
"""A list of values for each role, all of one length."""


@dataclass(frozen=True)
class Dialect:
    """One kind of trace file.

    shape: "csv" (a header line) or "jsonl" (an object a line).
    columns: the name of each role that the dialect fixes.
    aliases: spellings that mark a role when `columns` does not; compared in lower case without punctuation.
    unit: of arrivals that are plain numbers; None means the caller must say.
    hash_block: tokens in a prefix block, for a dialect with hash_ids.
    check: a rule across the columns of a row.
    """

    name: str
    shape: str
    columns: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unit: str | None = None
    hash_block: int | None = None
    check: Callable[[Batch], None] | None = None

    def recognises(self, shape: str, keys: Sequence[str]) -> bool:
        """Whether a file of this shape with these column names is surely of this kind."""
        return bool(self.columns) and shape == self.shape and set(self.columns.values()) <= set(keys)

    def names(self, keys: Sequence[str], asked: Mapping[str, str] | None, label: str) -> dict[str, str]:
        """The column of each role in a file with the columns `keys`.

        asked: the caller's own choices by role; an empty name says that the file has no such column.
        Raises TraceError when a role is unknown, and when a column is missing or cannot be told.
        """
        asked = asked or {}
        for role in asked:
            if role not in ROLES:
                raise unknown("role in columns", role, ROLES)
        found = {role: self._own(role, keys, asked, label) for role in (*ROLES, "hash_ids")}
        chosen = {role: name for role, name in (found | dict(asked)).items() if name}
        for role, name in chosen.items():
            if name not in keys:
                raise TraceError(f"{label}: no column {shown(name)} for {role} ({_listed(keys)})")
            if keys.count(name) > 1:
                raise TraceError(f"{label}: column {shown(name)} for {role} appears twice in the header")
        _check_complete(chosen, asked, keys, label)
        return chosen

    def _own(self, role: str, keys: Sequence[str], asked: Mapping[str, str], label: str) -> str:
        """The column that this dialect takes for `role` by itself; empty when there is none."""
        if role in asked:
            return ""
        if role in self.columns:
            optional = role == "hash_ids" and self.columns[role] not in keys
            return "" if optional else self.columns[role]
        matching = [key for key in dict.fromkeys(keys) if _letters(key) in self.aliases.get(role, ())]
        if len(matching) > 1:
            listed = ", ".join(map(plain, matching))
            raise TraceError(f"{label}: {listed} may all be the {role}; say --columns {role}=NAME")
        return matching[0] if matching else ""

    def unit_of(self, asked: str | None) -> str | None:
        """The unit of plain numbers: the caller's, else the dialect's own, else None."""
        if asked is not None and asked not in UNITS:
            raise unknown("unit", asked, UNITS)
        return asked or self.unit


def _check_complete(chosen: Mapping[str, str], asked: Mapping[str, str], keys: Sequence[str], label: str) -> None:
    """Raise TraceError unless all needed roles have a column; arrivals may be renounced by an empty name."""
    for role in ("prompt", "output"):
        if role not in chosen:
            raise TraceError(f"{label}: which column is the {role}? say --columns {role}=NAME ({_listed(keys)})")
    if "arrival" not in chosen and "arrival" not in asked:
        raise TraceError(
            f"{label}: which column is the arrival? say --columns arrival=NAME, or arrival= for a file without "
            f"times ({_listed(keys)})"
        )


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _listed(keys: Sequence[str], most: int = 20) -> str:
    """The columns of the file in words, not all of them where there are very many."""
    listed = ", ".join(plain(key[:40]) for key in keys[:most])
    return f"columns: {listed}{', ...' if len(keys) > most else ''}"
