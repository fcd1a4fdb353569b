"""Curves over time: how many rows work, who runs, who waits, how full memory is - as exact means over equal bins.

What it averages are step functions of time: they change when a step starts or ends, a request is sent, or a slot
changes hands. A bin's mean is the area under the function, in integers, divided by the bin's width. It knows no colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simulator.areas import area_of_counts, area_of_intervals
from simulator.columns import Ints
from simulator.ledger import useful_rows
from simulator.memory.base import UNLIMITED

if TYPE_CHECKING:
    from pandas import DataFrame

    from simulator.record import Record
    from simulator.result import Result

BINS = 400


def batch_frame(result: Result, bins: int = BINS) -> DataFrame:
    """One row a bin of time, from 0 to the end of the run; each value is the exact mean over the bin.

    Columns: start_s, end_s; useful (rows a step that compute a new token, 0 while nothing runs); running (requests in
    a slot); waiting (requests sent and in no slot); kv_share (share of the KV pool that requests hold or reserve; NaN
    where the pool has no bound).
    """
    import pandas as pd

    record = result.only.record
    edges = _edges(record, bins)
    areas = {"useful": _useful(record, edges), "running": _running(record, edges), "waiting": _waiting(record, edges)}
    means = {name: np.diff(area) / np.diff(edges) for name, area in areas.items()}
    capacity = _capacity(result)
    means["kv_share"] = (np.diff(_held(record, edges)) / np.diff(edges) / capacity if capacity
                         else np.full(len(edges) - 1, np.nan))
    return pd.DataFrame({"start_s": edges[:-1] / 1e9, "end_s": edges[1:] / 1e9, **means})


def mean(frame: DataFrame, column: str) -> float:
    """Time-weighted mean of a column over all bins of a frame that has some."""
    width = frame["end_s"] - frame["start_s"]
    return float((frame[column] * width).sum() / width.sum())


def _edges(record: Record, bins: int) -> Ints:
    """Edges of the bins, whole ns; fewer bins where the run is shorter than they are many."""
    end = max(int(record.ends.max(initial=0)), int(record.stays[:, 2].max(initial=0)))
    return np.unique(np.arange(bins + 1) * end // bins)


def _useful(record: Record, edges: Ints) -> Ints:
    return area_of_intervals(record.plan("start"), record.plan_ends, useful_rows(record), edges)


def _running(record: Record, edges: Ints) -> Ints:
    return area_of_counts(record.stays[:, 1], edges) - area_of_counts(record.stays[:, 2], edges)


def _waiting(record: Record, edges: Ints) -> Ints:
    """Everyone sent, less those who have left for good and those in a slot."""
    stays = record.stays
    left = np.full(int(stays[:, 0].max(initial=-1)) + 1, -1)
    left[stays[:, 0]] = stays[:, 2]    # a request's last stay comes last in the list, and stands
    there = area_of_counts(record.sent[:, 1], edges) - area_of_counts(left[left >= 0], edges)
    return there - _running(record, edges)


def _held(record: Record, edges: Ints) -> Ints:
    return area_of_intervals(record.starts, record.ends, record.step("used"), edges)


def _capacity(result: Result) -> int | None:
    """Blocks of the KV pool; None without a bound."""
    return None if result.setup.deployment.kv_capacity_tokens >= UNLIMITED else result.memory.capacity
