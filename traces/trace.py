"""A trace: who asked when, with how many tokens, as immutable columns.

One row is one request. The trace knows its source, its licence and how it was read. It knows nothing of a
simulator: no request state, no declared length (`traces.declared`), no file format (`traces.readers`).
"""

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS, gamma_arrivals, is_number
from traces.describe import describe
from traces.errors import TraceError, shown

Int64 = npt.NDArray[np.int64]


class Reject(NamedTuple):
    """One row that a reader left out: where it stood, what it held, and the rule it broke.

    column is "row" where the fault is not in one column.
    """

    line: int
    column: str
    value: str
    rule: str

    def __str__(self) -> str:
        where = "row" if self.column == "row" else f"column {self.column}"
        return f"line {self.line}, {where}: {self.value} {self.rule}"


@dataclass(frozen=True)
class ReadReport:
    """How a source was read; `rows_in` is the length of the trace read plus `len(rejected)`.

    It stays the same in every trace cut or scaled from that one. `out_of_order` counts the rows stamped
    earlier than some row before them; they were sorted in.
    """

    format: str
    rows_in: int
    rejected: tuple[Reject, ...] = ()
    out_of_order: int = 0


MADE_IN_MEMORY = ReadReport("memory", 0)
"""Stands for "no report given"; the trace then counts its own rows."""


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Requests in order of arrival, in read-only columns of one length.

    arrival: ns, never negative, never decreasing; readers and stand-ins put the first row at 0.
    prompt, output: tokens, at least 1.
    max_tokens: declared limit of the output, at least 1, where the source has it; the output may exceed it.
    tenant: a name for each row.
    priority: whole numbers, lower is more urgent; only policies that know priorities heed them.
    hash_ids: ids of each row's prompt blocks of `hash_block` tokens; equal ids are equal prefixes.
    """

    name: str
    arrival: Int64
    prompt: Int64
    output: Int64
    max_tokens: Int64 | None = None
    tenant: tuple[str, ...] | None = None
    hash_ids: tuple[tuple[int, ...], ...] | None = None
    hash_block: int | None = None
    priority: Int64 | None = None
    source: str = ""
    licence: str = ""
    report: ReadReport = field(default=MADE_IN_MEMORY)

    def __post_init__(self) -> None:
        lowest = {"arrival": 0, "prompt": 1, "output": 1, "max_tokens": 1, "priority": -LONGEST_NS}
        for column, least in lowest.items():
            if (values := getattr(self, column)) is not None:
                object.__setattr__(self, column, _frozen(column, values, least))
        self._check_lengths()
        if np.any(np.diff(self.arrival) < 0):
            raise TraceError(f"trace {self.name!r}: arrivals must be sorted; sort the rows by arrival first")
        if self.report is MADE_IN_MEMORY:
            object.__setattr__(self, "report", ReadReport("memory", len(self)))

    def _check_lengths(self) -> None:
        lengths = {
            column: len(values)
            for column in ("arrival", "prompt", "output", "max_tokens", "tenant", "hash_ids", "priority")
            if (values := getattr(self, column)) is not None
        }
        if len(set(lengths.values())) > 1:
            raise TraceError(f"trace {self.name!r}: columns differ in length: {lengths}")
        if (self.hash_ids is None) != (self.hash_block is None):
            raise TraceError(f"trace {self.name!r}: hash_ids and hash_block go together")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore from a pickle or a copy, which both forget that the arrays are read-only."""
        self.__dict__.update(state)
        for values in state.values():
            if isinstance(values, np.ndarray):
                values.setflags(write=False)

    def __len__(self) -> int:
        return len(self.arrival)

    def __repr__(self) -> str:
        if not len(self):
            return f"<Trace {self.name}: no requests>"
        return (
            f"<Trace {self.name}: {len(self):,} requests over {self.span_s:,.1f} s, median prompt "
            f"{np.median(self.prompt):,.0f} and output {np.median(self.output):,.0f} tokens>"
        )

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the last; 0 for an empty trace."""
        return float(self.arrival[-1] - self.arrival[0]) / 1e9 if len(self) else 0.0

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
        kept = {
            column: values[rows]
            for column in ("prompt", "output", "max_tokens", "tenant", "hash_ids", "priority")
            if (values := getattr(self, column)) is not None
        }
        return replace(self, arrival=_from_zero(self.arrival[rows]), **kept)

    def scale_rate(self, factor: float) -> "Trace":
        """The same requests, `factor` times as fast: intervals from the first stamp divided by it.

        Arrivals are rounded to the nearest ns. Raises TraceError unless 0 < factor < inf.
        """
        if not (is_number(factor) and 0 < factor < math.inf):
            raise TraceError(f"rate scale must be a finite number above 0, not {shown(factor)}")
        with np.errstate(over="ignore"):
            offsets = _from_zero(self.arrival) / float(factor)
        if len(self) and offsets[-1] > LONGEST_NS:
            raise TraceError(f"rate scale {factor} stretches the trace beyond 146 years; take a larger one")
        return replace(self, arrival=np.rint(offsets).astype(np.int64))

    def at_rate(self, rate: float, burstiness: float, rng: np.random.Generator) -> "Trace":
        """The same requests in the same order, with new Gamma arrivals (see `gamma_arrivals`)."""
        return replace(self, arrival=gamma_arrivals(len(self), rate, burstiness, rng))

    def saturated(self) -> "Trace":
        """The same requests in the same order, all there at time 0."""
        return replace(self, arrival=np.zeros(len(self), dtype=np.int64))

    def describe(self) -> dict[str, object]:
        """Facts about the trace by name, ready for a table or JSON; see `traces.describe`."""
        return describe(self)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that change when any column changes; name and source do not count."""
        state = hashlib.sha256()
        for column in ("arrival", "prompt", "output", "max_tokens"):
            _feed(state, column, getattr(self, column))
        if self.priority is not None:
            _feed(state, "priority", self.priority)
        state.update(repr(("tenant", self.tenant, "hash", self.hash_block, self.hash_ids)).encode())
        return state.hexdigest()[:16]


def _feed(state: Any, column: str, values: Int64 | None) -> None:
    state.update(f"{column}:{'none' if values is None else len(values)};".encode())
    if values is not None:
        state.update(values.astype("<i8").tobytes())


def _from_zero(arrival: Int64) -> Int64:
    """The same intervals, the first arrival at 0."""
    return arrival - arrival[0] if len(arrival) else arrival


def _frozen(column: str, values: npt.ArrayLike, least: int) -> Int64:
    """`values` as int64, each of them at least `least`; a copy, unless nobody can write to them anyway."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise TraceError(f"column {column} must be a list of integers, not {given.dtype}{given.shape}")
    if given.size and (given.min() < least or given.max() > LONGEST_NS):
        wrong = int(np.argmax((given < least) | (given > LONGEST_NS)))
        raise TraceError(f"column {column}, row {wrong}: {given[wrong]} is outside {least} to 2^62")
    ours = given.astype(np.int64, copy=given.flags.writeable or not given.flags.owndata)
    ours.setflags(write=False)
    return ours
