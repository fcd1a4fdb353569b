"""What a reader knows of one kind of file: the names of its columns and what they mean.

A column has a role here, such as arrival or prompt. A dialect is data; how rows are split, checked and made into a
trace is the same for all of them (`rows`, `build`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traces.errors import TraceError, plain, shown
from traces.readers.asked import ROLES, Asked
from traces.readers.build import read
from traces.readers.content import Content, CsvLines, Members, Tabular
from traces.readers.documents import Expand
from traces.readers.rows import TEXT_ROLES, Check
from traces.readers.values import Rule
from traces.trace import Trace


@dataclass(frozen=True)
class Dialect:
    """One kind of trace file.

    name, about: what it is called, and what it is in a line.
    columns: the name of each role that the dialect fixes.
    optional: the same, for columns that a file may lack.
    aliases: spellings that mark a role when neither of them does; compared in lower case without punctuation.
    marks: columns or keys that tell a file of this kind; those of `columns` if not given.
    expand: a document to rows with the names of `columns`, where a document is no row.
    unit: of times that are plain numbers; None means the caller must say.
    rules: what the values of a role must be, where that is not the usual.
    hash_block: tokens in a prefix block, for a dialect with hash_ids.
    checks: rules across the columns of a row.
    fails: an output of 0 tokens records a failed request.
    timeless: the file has no arrivals.
    prompts: what later turns have in their prompts, "cumulative" or "increments".
    notes: what a user of such a trace must know.
    """

    name: str
    about: str
    columns: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    marks: Sequence[str] = ()
    expand: Expand | None = None
    unit: str | None = None
    rules: Mapping[str, Rule] = field(default_factory=dict)
    hash_block: int | None = None
    checks: Sequence[Check] = ()
    fails: bool = False
    timeless: bool = False
    prompts: str = "cumulative"
    notes: tuple[str, ...] = ()

    def recognises(self, content: Content) -> bool:
        """Whether this is surely a file of this kind."""
        marks = set(self.marks or self.columns.values())
        return bool(marks) and marks <= set(content.keys)

    def read(self, content: Content, asked: Asked, path: Path) -> Trace:
        """The trace in `content`; raises TraceError."""
        if isinstance(content, Members):
            found = f"an archive or folder of {content.keys[0]}"
            raise TraceError(f"{content.label}: {found} is in no format known here; name a file")
        if self.expand is not None and isinstance(content, CsvLines):
            raise TraceError(f"{content.label}: a table, but the format {self.name} is made of JSON documents")
        return read(self, content, asked, path)

    def names(self, content: Tabular, asked: Asked) -> dict[str, str]:
        """The column of each role in this file.

        Raises TraceError when a column is missing and when it cannot be told which it is.
        """
        keys, label = content.keys, content.label
        if self.expand is not None:    # rows have our names, and others that only a caller can know
            own = {role: name for role, name in {**self.columns, **self.optional}.items() if role not in asked.columns}
            return {role: name for role, name in (own | dict(asked.columns)).items() if name}
        found = {role: self._own(role, keys, label) for role in self._roles() if role not in asked.columns}
        chosen = {role: name for role, name in (found | dict(asked.columns)).items() if name}
        for role, name in chosen.items():
            if name not in keys:
                raise TraceError(f"{label}: no column {shown(name)} for {role} ({_listed(keys)})")
            if keys.count(name) > 1:
                raise TraceError(f"{label}: column {shown(name)} for {role} appears twice in the header")
        self._check_complete(chosen, asked, keys, label)
        return chosen

    def free(self, names: Mapping[str, str]) -> list[str]:
        """Those of `names` that a JSON row may lack."""
        return [name for role, name in names.items() if role in self.optional and role in (*TEXT_ROLES, "think")]

    def _roles(self) -> list[str]:
        return list(dict.fromkeys((*ROLES, *self.columns, *self.optional)))

    def _own(self, role: str, keys: Sequence[str], label: str) -> str:
        """The column that this dialect takes for `role` by itself; empty when there is none."""
        if role in self.columns:
            return self.columns[role]
        if role in self.optional:
            return self.optional[role] if self.optional[role] in keys else ""
        matching = [key for key in dict.fromkeys(keys) if letters(key) in self.aliases.get(role, ())]
        if len(matching) > 1:
            listed = ", ".join(map(plain, matching))
            raise TraceError(f"{label}: {listed} may all be the {role}; say --columns {role}=NAME")
        return matching[0] if matching else ""

    def _check_complete(self, chosen: Mapping[str, str], asked: Asked, keys: Sequence[str], label: str) -> None:
        """Raise TraceError unless all needed roles have a column; arrivals may be renounced by an empty name."""
        for role in ("prompt", "output"):
            if role not in chosen:
                raise TraceError(f"{label}: which column is the {role}? say --columns {role}=NAME ({_listed(keys)})")
        if "arrival" not in chosen and "arrival" not in asked.columns and not self.timeless:
            raise TraceError(
                f"{label}: which column is the arrival? say --columns arrival=NAME, or arrival= for a file without "
                f"times ({_listed(keys)})"
            )


def letters(name: str) -> str:
    """A column's name as aliases are spelled."""
    return "".join(filter(str.isalnum, name.lower()))


def _listed(keys: Sequence[str], most: int = 20) -> str:
    """The columns of the file in words, not all of them where there are very many."""
    listed = ", ".join(plain(key[:40]) for key in keys[:most])
    return f"columns: {listed}{', ...' if len(keys) > most else ''}"
