"""A trace: who asked when, with how many tokens, as immutable columns.

One row is one request. The trace knows its source, its licence and how it was read. It knows nothing of a
simulator: no request state, no declared length (`traces.declared`), no file format (`traces.readers`).
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from traces.arrivals import LONGEST_NS, SECOND, gamma_arrivals, is_number
from traces.columns import COLUMNS, LEAST, Int64, ReadOnly, frozen, picked
from traces.describe import describe
from traces.digest import digest
from traces.display import show, text
from traces.errors import TraceError, shown
from traces.ragged import Ragged
from traces.report import MADE_IN_MEMORY, ReadReport
from traces.unlikely import unlikely_ns


@dataclass(frozen=True, eq=False, repr=False)
class Trace(ReadOnly):
    """Requests in order of arrival, in read-only columns of one length.

    arrival: ns, never negative, never decreasing; readers and stand-ins put the first row at 0.
    prompt, output: tokens, at least 1. A turn of a conversation has all tokens before it in its prompt.
    max_tokens: declared limit of the output, at least 1, where the source has it; the output may exceed it.
    tenant: a name for each row.
    priority: whole numbers, lower is more urgent; only policies that know priorities heed them.
    session: the conversation of each row; empty where it belongs to none.
    parent: the row of the turn before it, always an earlier one; -1 for the first turn of a conversation.
    think: ns from the end of the turn before it until this one is sent; 0 for the first turn. A trace with
        conversations and without it knows the gaps only as its arrivals have them.
    shared: tokens at the start of the prompt that repeat the prompt and the answer of the turn before it.
    original: the row of which each one is a copy, where a trace was repeated; copies tell nothing new of chance. A file
        does not keep it.
    hash_ids: ids of each row's prompt blocks of `hash_block` tokens; equal ids are equal prefixes.

    >>> Trace("two", arrival=[0, 2_000_000_000], prompt=[100, 50], output=[10, 30])
    <Trace two: 2 requests over 2.0 s, median prompt 75 and output 20 tokens>
    """

    name: str
    arrival: Int64
    prompt: Int64
    output: Int64
    max_tokens: Int64 | None = None
    tenant: tuple[str, ...] | None = None
    hash_ids: Ragged | None = None
    hash_block: int | None = None
    priority: Int64 | None = None
    session: tuple[str, ...] | None = None
    parent: Int64 | None = None
    think: Int64 | None = None
    shared: Int64 | None = None
    original: Int64 | None = None
    source: str = ""
    licence: str = ""
    report: ReadReport = field(default=MADE_IN_MEMORY)

    def __post_init__(self) -> None:
        for column, least in LEAST.items():
            if (values := getattr(self, column)) is not None:
                object.__setattr__(self, column, frozen(column, values, least))
        if self.hash_ids is not None and not isinstance(self.hash_ids, Ragged):
            object.__setattr__(self, "hash_ids", Ragged.of(self.hash_ids))
        self._check_lengths()
        if np.any(np.diff(self.arrival) < 0):
            raise TraceError(f"trace {self.name!r}: arrivals must be sorted; sort the rows by arrival first")
        self._check_turns()
        if self.report is MADE_IN_MEMORY:
            note = unlikely_ns(self.arrival)
            object.__setattr__(self, "report", ReadReport("memory", len(self), notes=() if note is None else (note,)))

    def _check_lengths(self) -> None:
        lengths = {column: len(values) for column, values in self.columns().items()}
        if len(set(lengths.values())) > 1:
            raise TraceError(f"trace {self.name!r}: columns differ in length: {lengths}")
        if (self.hash_ids is None) != (self.hash_block is None):
            raise TraceError(f"trace {self.name!r}: hash_ids and hash_block go together")
        if self.hash_block is not None and self.hash_block < 1:
            raise TraceError(f"trace {self.name!r}: hash_block must be 1 token or more, not {self.hash_block}")

    def _check_turns(self) -> None:
        for column in ("think", "shared"):
            if getattr(self, column) is not None and self.parent is None:
                raise TraceError(f"trace {self.name!r}: {column} needs parent, the turn before each row")
        if self.parent is not None and np.any(self.parent >= np.arange(len(self))):
            raise TraceError(f"trace {self.name!r}: column parent must name an earlier row, or -1")
        if self.shared is not None and np.any(self.shared > self.prompt):
            raise TraceError(f"trace {self.name!r}: column shared must not exceed the prompt")

    def __len__(self) -> int:
        return len(self.arrival)

    def __repr__(self) -> str:
        if not len(self):
            return f"<Trace {self.name}: no requests>"
        return (
            f"<Trace {self.name}: {len(self):,} requests over {self.span_s:,.1f} s, median prompt "
            f"{np.median(self.prompt):,.0f} and output {np.median(self.output):,.0f} tokens>"
        )

    def __str__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return show(self)

    def columns(self) -> dict[str, Any]:
        """The columns that this trace has, by name."""
        return {column: values for column in COLUMNS if (values := getattr(self, column)) is not None}

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last; 0 for an empty trace."""
        return float(self.arrival[-1] - self.arrival[0]) / 1e9 if len(self) else 0.0

    @property
    def has_turns(self) -> bool:
        """Whether any row follows another one in a conversation."""
        return self.parent is not None and bool((self.parent >= 0).any())

    @property
    def knows_prefixes(self) -> bool:
        """Whether the source tells what requests have in common; if not, nothing is known to be shared."""
        return self.hash_ids is not None or self.shared is not None

    def require_prefixes(self) -> None:
        """Raise TraceError where nothing is known to be shared, so that no cache hit is made up."""
        if not self.knows_prefixes:
            raise TraceError(
                f"trace {self.name!r} does not tell which prompts begin alike (no hash ids, no turns that repeat the "
                "one before), so what a prefix cache saves on it cannot be known; take a trace with hash ids"
            )

    @property
    def distinct(self) -> int:
        """How many requests there are, copies left out."""
        return len(self) if self.original is None else len(np.unique(self.original))

    def head(self, n: int) -> "Trace":
        """The first `n` requests, or all when there are fewer."""
        if n < 0:
            raise TraceError(f"head takes 0 or more rows, not {n}")
        return self.slice(0, n)

    def slice(self, start: int, stop: int | None) -> "Trace":
        """Rows `start` to `stop` as in a Python slice; the first of them arrives at 0."""
        rows = slice(start, stop)
        if rows.indices(len(self)) == (0, len(self), 1) and not self.arrival[:1].any():
            return self    # and what is known of it, such as the digest
        return self.take(np.arange(len(self), dtype=np.int64)[rows])

    def between(self, start_ns: int, end_ns: int) -> "Trace":
        """The requests that arrive from `start_ns` on and before `end_ns`; the first of them arrives at 0."""
        first, last = np.searchsorted(self.arrival, [start_ns, end_ns])
        return self.slice(int(first), int(last))

    def take(self, rows: Int64) -> "Trace":
        """These rows, given in ascending order; the first of them arrives at 0.

        A turn whose predecessor is not among them starts a conversation, with all of its prompt.
        """
        kept = {column: picked(values, rows) for column, values in self.columns().items()}
        if self.parent is not None:
            places = np.full(len(self) + 1, -1, dtype=np.int64)    # the last one answers for "no predecessor"
            places[rows] = np.arange(len(rows))
            kept["parent"] = places[self.parent[rows]]
            for column in {"think", "shared"} & kept.keys():
                kept[column] = np.where(kept["parent"] < 0, 0, kept[column])
        return replace(self, **(kept | {"arrival": _from_zero(kept["arrival"])}))

    def scale_rate(self, factor: float) -> "Trace":
        """The same requests, `factor` times as fast: intervals from the first stamp divided by it.

        Arrivals are rounded to the nearest ns. Raises TraceError unless 0 < factor < inf.
        """
        if not (is_number(factor) and 0 < factor < math.inf):
            raise TraceError(f"rate scale must be a finite number above 0, not {shown(factor)}")
        if factor == 1:    # a float holds each nanosecond of the first 104 days only
            return replace(self, arrival=_from_zero(self.arrival))
        with np.errstate(over="ignore"):
            offsets = _from_zero(self.arrival) / float(factor)
        if len(self) and offsets[-1] > LONGEST_NS:
            raise TraceError(f"rate scale {factor} stretches the trace beyond 146 years; take a larger one")
        return replace(self, arrival=np.rint(offsets).astype(np.int64))

    def cap_gaps(self, most_s: float) -> "Trace":
        """The same requests, no gap between two arrivals and no think time longer than `most_s` seconds.

        After `scale_rate` the clock of the arrivals is the one of the replay, before it the recorded one.
        """
        if not (is_number(most_s) and 0 <= most_s < LONGEST_NS / SECOND):
            raise TraceError(f"the longest gap must be 0 s or more, not {shown(most_s)}")
        most = round(most_s * SECOND)
        gaps = np.minimum(np.diff(self.arrival, prepend=self.arrival[:1]), most)
        think = None if self.think is None else np.minimum(self.think, most)
        return replace(self, arrival=np.cumsum(gaps), think=think)

    def at_rate(self, rate: float, burstiness: float, rng: np.random.Generator) -> "Trace":
        """The same requests in the same order, with new Gamma arrivals (see `gamma_arrivals`)."""
        return replace(self, arrival=gamma_arrivals(len(self), rate, burstiness, rng))

    def saturated(self) -> "Trace":
        """The same requests in the same order, all there at time 0."""
        return replace(self, arrival=np.zeros(len(self), dtype=np.int64))

    def noted(self, note: str) -> "Trace":
        """The same requests, with one more sentence among the notes of the report."""
        return replace(self, report=replace(self.report, notes=(*self.report.notes, note)))

    def describe(self) -> dict[str, object]:
        """Facts about the trace by name, ready for a table or JSON; see `traces.describe`."""
        return describe(self)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change when any column changes; name and source do not count."""
        return digest(self)


def _from_zero(arrival: Int64) -> Int64:
    """The same intervals, the first arrival at 0."""
    return arrival - arrival[0] if len(arrival) else arrival
