"""Ranked: a line in the order of a rank, in which inserting and removing stay cheap however long it is.

It knows no request. A sorted list alone would move half of itself for each that comes: a hundred thousand that wait by
priority would take minutes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
LONGEST = 1024
"""Entries of a part of the line, from which on it is cut in two."""


class Ranked(Generic[T]):
    """A line whose head has the lowest rank; of the same rank, who came first.

    Args:
        rank: Of an entry; it must not change while the entry stands in the line.

    Example:
        >>> line = Ranked(len)
        >>> line.extend(["ccc", "a", "bb"])
        >>> list(line), line.popleft(), line[0]
        (['a', 'bb', 'ccc'], 'a', 'bb')
    """

    def __init__(self, rank: Callable[[T], Any]) -> None:
        self._rank = rank
        self._parts: list[list[T]] = []      # none is empty
        self._ranks: list[list[Any]] = []    # of their entries
        self._lasts: list[Any] = []          # the last rank of each part
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for part in self._parts:
            yield from part

    def __getitem__(self, place: int) -> T:
        """The entry at a place from the head, 0 or more."""
        for part in self._parts:
            if place < len(part):
                return part[place]
            place -= len(part)
        raise IndexError("the line is not that long")

    def __contains__(self, entry: object) -> bool:
        return self._find(entry) is not None

    def append(self, entry: T) -> None:
        """Take in an entry, behind all of its rank."""
        rank = self._rank(entry)
        self._length += 1
        if not self._lasts:
            self._parts, self._ranks, self._lasts = [[entry]], [[rank]], [rank]
            return
        at = min(bisect_right(self._lasts, rank), len(self._lasts) - 1)
        place = bisect_right(self._ranks[at], rank)
        self._parts[at].insert(place, entry)
        self._ranks[at].insert(place, rank)
        self._lasts[at] = self._ranks[at][-1]
        if len(self._parts[at]) > LONGEST:
            self._cut(at)

    def appendleft(self, entry: T) -> None:
        """The same: whichever end it comes to, its rank says where it stands."""
        self.append(entry)

    def extend(self, entries: Iterable[T]) -> None:
        """Take in several, one after the other."""
        for entry in entries:
            self.append(entry)

    def popleft(self) -> T:
        """Let the head go; there must be one."""
        return self._pop(0, 0)

    def remove(self, entry: T) -> None:
        """Let this one go. Raises ValueError if it is not here."""
        if (found := self._find(entry)) is None:
            raise ValueError("it is not in the line")
        self._pop(*found)

    def clear(self) -> None:
        """Let all of them go."""
        self._parts, self._ranks, self._lasts, self._length = [], [], [], 0

    def _find(self, entry: Any) -> tuple[int, int] | None:
        """Part and place of an entry."""
        rank = self._rank(entry)
        for at in range(bisect_left(self._lasts, rank), len(self._lasts)):
            ranks, part = self._ranks[at], self._parts[at]
            for place in range(bisect_left(ranks, rank), bisect_right(ranks, rank)):
                if part[place] is entry:
                    return at, place
            if self._lasts[at] > rank:
                break
        return None

    def _pop(self, at: int, place: int) -> T:
        self._length -= 1
        ranks, entry = self._ranks[at], self._parts[at].pop(place)
        del ranks[place]
        if ranks:
            self._lasts[at] = ranks[-1]
        else:
            del self._parts[at], self._ranks[at], self._lasts[at]
        return entry

    def _cut(self, at: int) -> None:
        """Make two parts of one."""
        half = len(self._parts[at]) // 2
        for parts in (self._parts, self._ranks):
            parts[at:at + 1] = [parts[at][:half], parts[at][half:]]
        self._lasts[at:at + 1] = [self._ranks[at][-1], self._ranks[at + 1][-1]]
