"""Bars of the timeline: the occupancy of the slots as a frame, and figures of its window. Knows no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.occupancy import occupancy

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.record import Record
    from simulator.result import Result


def timeline_frame(result: Result, until: float | None = None) -> DataFrame:
    """One row a bar, up to `until` seconds (None: the whole run); bars that reach beyond are cut there.

    Columns: slot (counted from 1), start_s, end_s, kind (one of KINDS), request (row of the trace).
    Ordered by admission, and by time within a stay. A long run costs little more than what the window shows of it.
    """
    import pandas as pd

    record = result.only.record
    limit = _nanoseconds(until, record)
    rows = [(slot, start / 1e9, min(end, limit) / 1e9, kind, request)
            for slot, request, _, _, pieces in occupancy(record, limit)
            for start, end, kind in pieces if start < min(end, limit)]
    columns = zip(*rows, strict=True) if rows else [()] * 5
    types = ("int64", "float64", "float64", "object", "int64")
    names = ("slot", "start_s", "end_s", "kind", "request")
    return pd.DataFrame({name: pd.Series(column, dtype=kind)
                         for name, column, kind in zip(names, columns, types, strict=True)})


def window_of(record: Record, turns: int) -> float:
    """Seconds until the slots have served `turns` requests each on average: `turns` batches where batches are full."""
    ends = record.stays[:, 2]
    if not len(ends):
        return 0.0
    answers = min(turns * int(record.plan("running").max()), len(ends))
    return int(np.partition(ends, answers - 1)[answers - 1]) / 1e9


def tokens_until(record: Record, until: float) -> int:
    """Output tokens of all requests that had been emitted by `until` seconds."""
    steps = int(np.searchsorted(record.ends, round(until * 1e9), side="right"))
    begun = record.spans[record.spans[:, 1] < steps]
    return int(record.tokens_of(np.minimum(begun, [1 << 62, 1 << 62, steps - 1])).sum())


def _nanoseconds(until: float | None, record: Record) -> int:
    if until is not None:
        return round(until * 1e9)
    return int(record.stays[:, 2].max(initial=0))
