"""The columns of a trace: their names, what they may hold, and how rows are picked from them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS
from traces.errors import TraceError

Int64 = npt.NDArray[np.int64]

LEAST = {"arrival": 0, "prompt": 1, "output": 1, "max_tokens": 1, "priority": -LONGEST_NS, "parent": -1, "think": 0,
         "shared": 0, "original": 0}
"""Columns of integers, and the smallest value of each."""
TIMES = ("arrival", "think")
"""Columns of nanoseconds."""
NAMES = ("tenant", "session")
"""Columns of text."""
COLUMNS = (*LEAST, *NAMES, "hash_ids")


class ReadOnly:
    """Base of dataclasses into whose arrays nobody writes, nor into those of a copy or a pickle, which forget that."""

    def __post_init__(self) -> None:
        self.__setstate__(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for values in state.values():
            if isinstance(values, np.ndarray):
                values.setflags(write=False)


def picked(values: Any, rows: Int64) -> Any:
    """These rows of a column, in this order."""
    if isinstance(values, tuple):
        return tuple(values[row] for row in rows.tolist())
    return values.take(rows)


def frozen(column: str, values: npt.ArrayLike, least: int) -> Int64:
    """`values` as int64, each of them at least `least`; a copy, unless nobody can write to them anyway."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        unit = "; of seconds (seconds * 1e9).astype('int64') makes nanoseconds" if column in TIMES else ""
        raise TraceError(f"column {column} must be a list of integers, not {given.dtype}{given.shape}{unit}")
    if given.size and (given.min() < least or given.max() > LONGEST_NS):
        wrong = int(np.argmax((given < least) | (given > LONGEST_NS)))
        raise TraceError(f"column {column}, row {wrong}: {given[wrong]} is outside {least} to 2^62")
    ours = given.astype(np.int64, copy=given.flags.writeable or not given.flags.owndata)
    ours.setflags(write=False)
    return ours
