"""Ranked: a line in the order of a rank, to be used like the deque that it stands in for. It knows no request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sortedcontainers import SortedKeyList

T = TypeVar("T")


class Ranked(SortedKeyList, Generic[T]):    # type: ignore[misc]
    """A line whose head has the lowest rank; of the same rank, who came first.

    Args:
        rank: Of an entry; it must not change while the entry stands in the line.

    Example:
        >>> line = Ranked(len)
        >>> line.extend(["ccc", "a", "bb"])
        >>> list(line), line.popleft(), line[0]
        (['a', 'bb', 'ccc'], 'a', 'bb')
    """

    def __new__(cls, rank: Callable[[T], Any]) -> Ranked[T]:
        return super().__new__(cls, key=rank)

    def __init__(self, rank: Callable[[T], Any]) -> None:
        super().__init__(key=rank)

    def append(self, entry: T) -> None:
        """Take in an entry, behind all of its rank."""
        self.add(entry)

    def appendleft(self, entry: T) -> None:
        """The same: whichever end it comes to, its rank says where it stands."""
        self.add(entry)

    def extend(self, entries: Iterable[T]) -> None:
        """Take in several."""
        self.update(entries)

    def popleft(self) -> T:
        """Let the head go; there must be one."""
        return self.pop(0)
