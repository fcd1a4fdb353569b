"""Columns: rows of integers that only grow, in as few bytes as their values need. They know no meaning of a column."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Packed = NDArray[np.signedinteger[Any]]
"""Integers of the narrowest kind that holds them. Arithmetic would stay as narrow: widen them first."""

LOOSE = 1 << 12
"""Rows that lie about in 64 bits before they are packed."""


class PackedRows:
    """Append-only rows with named columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._pack_row = Struct(f"{len(names)}q").pack
        self._loose = bytearray()
        self._most = LOOSE * len(names) * 8
        self._packed: list[NDArray[np.void]] = []

    def append(self, row: tuple[int, ...]) -> None:
        """Append one row."""
        self._loose += self._pack_row(*row)
        if len(self._loose) >= self._most:
            self._pack()

    def __len__(self) -> int:
        return sum(map(len, self._packed)) + len(self._loose) // (8 * len(self._names))

    def table(self) -> NDArray[np.void]:
        """All rows as a read-only structured array with a field a column."""
        self._pack()
        whole = np.concatenate(self._packed)
        whole.flags.writeable = False
        return whole

    def _pack(self) -> None:
        columns = np.frombuffer(self._loose, np.int64).reshape(-1, len(self._names)).T
        kinds = [narrowest(column) for column in columns]
        block = np.empty(columns.shape[1], list(zip(self._names, kinds, strict=True)))
        for name, column in zip(self._names, columns, strict=True):
            block[name] = column
        self._packed.append(block)
        self._loose = bytearray()


def narrowest(values: Ints) -> np.dtype[Any]:
    """The kind of signed integer with the fewest bytes that holds all of the values."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return np.min_scalar_type(min(low, -1 - high))


def packed(values: Ints) -> Packed:
    """The same values in as few bytes as they need, read-only."""
    narrow = values.astype(narrowest(values))
    narrow.flags.writeable = False
    return narrow
