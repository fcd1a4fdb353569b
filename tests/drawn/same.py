"""What two runs must have in common to be the same to the last byte."""

from __future__ import annotations

import numpy as np

from simulator.record import Record
from simulator.result import Result

RECORDED = ("ends", "used", "stays", "sent", "refused", "cancelled")


def bytes_of(result: Result) -> dict[str, bytes]:
    """All that a run came to, part by part: its JSON with every request, and the record of each replica step by step.

    The JSON has the scenario, which says by itself whether the run was exact; that is no part of the answer.
    """
    document = result.to_json(detailed=True).replace('"exact": true', '"exact": false')
    parts = {"json": document.encode()}
    for number, served in enumerate(result.served):
        parts |= {f"replica {number}: {name}": part for name, part in _recorded(served.record).items()}
    return parts


def _recorded(record: Record) -> dict[str, bytes]:
    parts = {"out of range": str(record.out_of_range).encode(), "found": str((record.found, record.asked)).encode(),
             "excess": str(record.plan("excess").sum()).encode(),
             "spans": np.unique(record.spans, axis=0).tobytes()}    # in the order of their ends, which ties leave open
    parts |= {name: getattr(record, name).tobytes() for name in RECORDED}
    return parts | {f"steps.{name}": column.tobytes() for name, column in record.steps.items()}


def differing(one: Result, other: Result) -> list[str]:
    """Names of the parts in which two runs differ."""
    mine, theirs = bytes_of(one), bytes_of(other)
    return [part for part in mine if mine[part] != theirs.get(part)] + [*(theirs.keys() - mine.keys())]
