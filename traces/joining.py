"""Several traces, or parts of one, made into one in the order of their arrivals. It knows no rates."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from traces.columns import LEAST, Int64, picked
from traces.ragged import Ragged
from traces.trace import Trace

FILLERS = {"priority": 0, "parent": -1, "shared": 0, "think": 0}
"""What a row has in a column that its own trace lacks."""


def joined(name: str, parts: Sequence[Trace], arrivals: Sequence[Int64], *, akin: bool) -> Trace:
    """One trace of all rows of the parts, at these arrivals; equal times stand in the order of the parts.

    akin: the parts come from one trace: equal hash ids and conversations are the same. If not, no two parts have a
    prefix in common, and names of conversations are told apart by a number.

    `max_tokens` is kept where all parts have it, hash ids where those who have any have blocks of one size. Source,
    licence and report are those of the first part.
    """
    times = np.concatenate(arrivals)
    order = np.argsort(times, kind="stable")
    columns: dict[str, Any] = {column: _numbers(column, parts) if _has(column, parts) else None
                               for column in LEAST if column not in ("arrival", "parent", "original")}
    columns |= {"arrival": times, "tenant": _tenants(parts), "session": _sessions(parts, akin=akin),
                "original": _originals(parts, akin=akin)}
    columns["hash_ids"], block = _hash_ids(parts, akin=akin)
    found: dict[str, Any] = {column: None if values is None else picked(values, order)
                             for column, values in columns.items()}
    parent = _parents(parts, order) if _has("parent", parts) else None
    return replace(parts[0], name=name, parent=parent, hash_block=block, **found)


def _has(column: str, parts: Sequence[Trace]) -> bool:
    """Whether the whole has a column: where there is a value for the rows of every part."""
    there = [getattr(part, column) is not None for part in parts]
    if column == "think":    # where a conversation has none, its gaps are known from the arrivals only
        return any(there) and all(part.think is not None or part.parent is None for part in parts)
    return any(there) if column in FILLERS else all(there)


def _numbers(column: str, parts: Sequence[Trace]) -> Int64:
    values = (getattr(part, column) for part in parts)
    return np.concatenate([np.full(len(part), FILLERS.get(column, 0), np.int64) if given is None else given
                           for part, given in zip(parts, values, strict=True)])


def _parents(parts: Sequence[Trace], order: Int64) -> Int64:
    """The turn before each row, as a row of the whole."""
    places = np.empty(len(order) + 1, np.int64)
    places[order], places[-1] = np.arange(len(order)), -1
    firsts = np.cumsum([0, *map(len, parts)])
    found = [np.full(len(part), -1, np.int64) if part.parent is None else
             np.where(part.parent < 0, -1, part.parent + first) for part, first in zip(parts, firsts, strict=False)]
    return places[np.concatenate(found)[order]]


def _originals(parts: Sequence[Trace], *, akin: bool) -> Int64 | None:
    """The row of which each one is a copy; no two parts have one in common, unless they come from one trace."""
    if all(part.original is None for part in parts):
        return None
    found, known = list[Int64](), 0
    for part in parts:
        own = np.arange(len(part)) if part.original is None else part.original
        found.append(own if akin else own + known)
        known = int(found[-1].max(initial=known - 1)) + 1
    return np.concatenate(found)


def _tenants(parts: Sequence[Trace]) -> tuple[str, ...] | None:
    if all(part.tenant is None for part in parts):
        return None
    return tuple(name for part in parts for name in (part.tenant or (part.name,) * len(part)))


def _sessions(parts: Sequence[Trace], *, akin: bool) -> tuple[str, ...] | None:
    if all(part.session is None for part in parts):
        return None
    return tuple(f"{name} ({number})" if name and number > 1 and not akin else name
                 for number, part in enumerate(parts, 1) for name in (part.session or ("",) * len(part)))


def _hash_ids(parts: Sequence[Trace], *, akin: bool) -> tuple[Ragged | None, int | None]:
    """The ids of all parts one after the other; those of strangers get new numbers that no other part has."""
    blocks = {part.hash_block for part in parts if part.hash_block is not None}
    if len(blocks) != 1:
        return None, None
    values, lengths, known = list[Int64](), list[Int64](), 0
    for part in parts:
        ids = part.hash_ids or Ragged.of([()] * len(part))
        numbers = ids.values if akin else np.unique(ids.values, return_inverse=True)[1].astype(np.int64) + known
        known = int(numbers.max(initial=known - 1)) + 1
        values.append(numbers)
        lengths.append(ids.lengths)
    return Ragged.parts(np.concatenate(values), np.concatenate(lengths)), blocks.pop()
