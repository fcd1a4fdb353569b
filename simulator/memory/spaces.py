"""Address spaces: where in a row of tokens a reservation lies. They know lengths and addresses only.

First fit and buddy can refuse although enough is free in all: that is external fragmentation. A table of slots cannot.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Space(Protocol):
    """A row of addresses from which intervals are taken and given back."""

    def take(self, size: int) -> tuple[int, int] | None:
        """Address and true length of an interval of at least `size`, or None."""

    def give(self, address: int, length: int) -> None:
        """Put back an interval that `take` returned."""

    def largest(self) -> int:
        """Length of the longest interval that could be taken now."""

    def lengths(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Lengths of the intervals that `take` would return for these sizes."""


def powers_of_two(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest power of two that is not below each size."""
    bits = np.frexp(sizes.astype(float) - 1)[1]    # the bit length of size - 1
    return np.left_shift(np.int64(1), bits, dtype=np.int64)


class FirstFit:
    """The first hole that is long enough, lowest address first; neighbouring holes merge."""

    def __init__(self, capacity: int) -> None:
        self._holes: list[tuple[int, int]] = [(0, capacity)] if capacity else []    # (address, length), sorted

    def take(self, size: int) -> tuple[int, int] | None:
        for at, (address, length) in enumerate(self._holes):
            if length >= size:
                self._holes[at:at + 1] = [(address + size, length - size)] if length > size else []
                return address, size
        return None

    def give(self, address: int, length: int) -> None:
        at = bisect_left(self._holes, (address, 0))
        first, last = at, at
        if at and sum(self._holes[at - 1]) == address:
            first -= 1
            address, length = self._holes[first][0], self._holes[first][1] + length
        if at < len(self._holes) and address + length == self._holes[at][0]:
            length += self._holes[at][1]
            last += 1
        self._holes[first:last] = [(address, length)]

    def largest(self) -> int:
        return max((length for _, length in self._holes), default=0)

    def lengths(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return sizes


class Buddy:
    """Intervals of a power of two, split in halves on demand and merged with their twin when both are free.

    A capacity that is no power of two starts as its binary parts, longest first.
    """

    def __init__(self, capacity: int) -> None:
        self._free: dict[int, set[int]] = {}
        address = 0
        while capacity:
            length = 1 << (capacity.bit_length() - 1)
            self._free[length] = {address}
            address += length
            capacity -= length

    def take(self, size: int) -> tuple[int, int] | None:
        wanted = 1 << (size - 1).bit_length()
        length = min((free for free, at in self._free.items() if at and free >= wanted), default=None)
        if length is None:
            return None
        address = min(self._free[length])
        self._free[length].remove(address)
        while length > wanted:
            length //= 2
            self._free.setdefault(length, set()).add(address + length)
        return address, wanted

    def give(self, address: int, length: int) -> None:
        while (twin := address ^ length) in self._free.get(length, ()):
            self._free[length].remove(twin)
            address, length = min(address, twin), length * 2
        self._free.setdefault(length, set()).add(address)

    def largest(self) -> int:
        return max((length for length, at in self._free.items() if at), default=0)

    def lengths(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return powers_of_two(sizes)


class Counted:
    """Slots of one token that need not lie together: they are only counted, and have no address."""

    def __init__(self, capacity: int) -> None:
        self._free = capacity

    def take(self, size: int) -> tuple[int, int] | None:
        if size > self._free:
            return None
        self._free -= size
        return 0, size

    def give(self, address: int, length: int) -> None:
        self._free += length

    def largest(self) -> int:
        return self._free

    def lengths(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return sizes


SPACES: dict[str, type[FirstFit] | type[Buddy] | type[Counted]] = {
    "first-fit": FirstFit, "buddy": Buddy, "counted": Counted}
"""Ways to place a reservation, by name."""
