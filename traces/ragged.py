"""Rows of integers, each of its own length, in two arrays: 8 bytes an integer instead of some 40.

It looks like a sequence of tuples and equals one that holds the same integers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from traces.columns import ReadOnly

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged(ReadOnly):
    """Row i is `values[starts[i]:starts[i + 1]]`; both arrays are read-only."""

    values: Int64
    starts: Int64

    @classmethod
    def of(cls, rows: Iterable[Iterable[int]]) -> "Ragged":
        """The same rows, copied; raises OverflowError and TypeError for what is no 64-bit integer."""
        lists = [list(row) for row in rows]
        values = np.array(list(chain.from_iterable(lists)), dtype=np.int64)
        return cls.parts(values, np.array([len(row) for row in lists], dtype=np.int64))

    @classmethod
    def parts(cls, values: Int64, lengths: Int64) -> "Ragged":
        """Rows of these lengths, one after the other."""
        return cls(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]))

    @property
    def lengths(self) -> Int64:
        """Integers in each row."""
        return np.diff(self.starts)

    def take(self, rows: Int64) -> "Ragged":
        """These rows in this order."""
        lengths = self.lengths[rows]
        before = np.repeat(self.starts[rows] - (np.cumsum(lengths) - lengths), lengths)
        return Ragged.parts(self.values[before + np.arange(len(before))], lengths)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> tuple[int, ...]:
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        return tuple(self.values[self.starts[row]:self.starts[row + 1]].tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged | Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == tuple(theirs) for mine, theirs in zip(self, other, strict=True))

    __hash__ = None    # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Ragged: {len(self.values):,} integers in {len(self):,} rows>"
