"""Rows to columns of checked values: the part that every format shares.

Rows go through in batches, column by column, because that is several times as fast as row by row. When a
batch holds a bad row, its rows go through the same functions one at a time, so both ways agree and the
error names its place.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from traces.arrivals import MOST_REQUESTS
from traces.errors import TraceError, plain, shown
from traces.readers.values import Refused, Rule, count, plain_tokens, tokens
from traces.report import Reject

BATCH = 16_384
"""Rows at a time: enough to make the loop cheap, few enough to stay in a cache."""

Batch = dict[str, Any]
"""A list of values for each role, all of one length."""
Parse = Callable[[Sequence[Any]], Batch]
"""Rows as they stand in the file to checked values by role; raises BadRow."""
Split = Callable[[Sequence[Any]], Sequence[Sequence[object]]]
"""Rows as they stand in the file to columns, in the order of the names it was made for; raises BadRow."""
Check = Callable[[Batch], None]
"""A rule across the columns of a row; raises BadRow."""

TEXT_ROLES = ("tenant", "session", "branch", "scope", "id", "parent")
"""Roles whose values are no integers."""


class BadRow(Exception):
    """A row breaks a rule: the column ("row" for all of it), what it holds, and the rule."""

    def __init__(self, column: str, value: object, rule: str) -> None:
        super().__init__(column, value, rule)
        self.column, self.value, self.rule = column, value, rule

    def at(self, place: str) -> Reject:
        """The same fault with its place."""
        return Reject(place, plain(self.column), shown(self.value), self.rule)


class Rows(Protocol):
    """Rows of a file as they stand there, in order."""

    label: str

    def take(self, n: int) -> list[Any]:
        """The next `n` rows, fewer at the end."""

    def place(self, before: int) -> str:
        """Where the row stands that was taken `before` rows ago."""


@dataclass
class Gathered:
    """Rows read so far: values by role in file order, and how many were left out for what.

    Of `hash_ids` the lengths stand in its column and the ids of all rows in `ids`. `reach` is the first and the last
    time among all rows, where a window was asked for.
    """

    columns: dict[str, Any]
    rejected: list[Reject] = field(default_factory=list)
    failed: int = 0
    outside: int = 0
    reach: tuple[int, int] | None = None
    ids: "array[int]" = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.columns["prompt"])

    def come(self, times: Sequence[int]) -> None:
        """Remember how far these times reach."""
        if times:
            self.reach = min(*(self.reach or times[:1]), *times), max(*(self.reach or times[:1]), *times)

    def add(self, batch: Batch) -> None:
        """Append the rows of a batch."""
        for role, values in batch.items():
            if role == "hash_ids":
                self.columns[role].extend(map(len, values))
                for ids in values:
                    self.ids.extend(ids)
            else:
                self.columns[role].extend(values)


@dataclass(frozen=True)
class Keep:
    """Which good rows are kept: those served, in a window of time, up to a number of rows.

    fails: rows with an output of 0 record failed requests.
    window: from and until when, in ns, as the file stamps its rows.
    limit: how many rows at most, after all else.
    """

    fails: bool = False
    window: tuple[int, int] | None = None
    limit: int | None = None

    def of(self, batch: Batch, rows: Gathered) -> Batch:
        """The rows of `batch` to keep; the others are counted in `rows`."""
        if self.fails and 0 in batch["output"]:
            served = [tokens > 0 for tokens in batch["output"]]
            rows.failed += served.count(False)
            batch = _where(batch, served)
        if self.window is not None:
            start, end = self.window
            rows.come(batch["arrival"])
            inside = [start <= time < end for time in batch["arrival"]]
            rows.outside += inside.count(False)
            batch = _where(batch, inside)
        return batch


def _where(batch: Batch, chosen: Sequence[bool]) -> Batch:
    return {role: [value for value, kept in zip(values, chosen, strict=True) if kept]
            for role, values in batch.items()}


def gather(source: Rows, parse: Parse, roles: Sequence[str], lenient: bool, keep: Keep) -> Gathered:
    """Read rows to the end of `source`, or to the limit of `keep`; bad ones stop it unless `lenient`."""
    rows = Gathered({role: [] if role in TEXT_ROLES else array("q") for role in roles})
    while items := source.take(BATCH if keep.limit is None else min(BATCH, keep.limit - len(rows))):
        try:
            batch = keep.of(parse(items), rows)
        except BadRow:
            _one_by_one(source, items, parse, rows, lenient, keep)
        else:
            rows.add(batch)
        if len(rows) > MOST_REQUESTS:
            raise TraceError(f"{source.label}: holds more than {MOST_REQUESTS:,} rows; take fewer with --limit")
    return rows


def _one_by_one(source: Rows, items: Sequence[Any], parse: Parse, rows: Gathered, lenient: bool, keep: Keep) -> None:
    """Add the good ones of `items`. The first bad one raises, or is left out where that is allowed."""
    for before, item in zip(range(len(items), 0, -1), items, strict=True):
        try:
            rows.add(keep.of(parse([item]), rows))
        except BadRow as bad:
            reject = bad.at(source.place(before))
            if not lenient:
                raise TraceError(f"{source.label}, {reject}") from None
            rows.rejected.append(reject)


def parser(split: Split, names: Mapping[str, str], rules: Mapping[str, Rule], checks: Sequence[Check]) -> Parse:
    """The function from rows to checked values by role, for the given columns and their rules."""

    def parse(items: Sequence[Any]) -> Batch:
        raw = split(items)
        batch = {
            role: _converted(name, rules[role], values) for (role, name), values in zip(names.items(), raw, strict=True)
        }
        for check in checks:
            check(batch)
        return batch

    return parse


def _converted(name: str, rule: Rule, values: Sequence[object]) -> list[Any]:
    if rule in (tokens, count) and (counts := plain_tokens(values)) is not None:
        return counts
    try:
        return list(map(rule, values))
    except Refused as broken:
        # Of many values it is not known which: the caller then tries them one by one.
        raise BadRow(name, values[0], str(broken)) from None
