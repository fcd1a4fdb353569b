"""Weighed: a line that always knows what all who stand in it weigh together. It knows no request.

To add them up whenever it is asked for takes as long as the line is: of a hundred thousand that wait at a few replicas,
each that is sent there would look at all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Waiting(Protocol[T]):
    """What a queue asks of a line, whatever its order: part of what a deque can."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...
    def __getitem__(self, place: int, /) -> T: ...
    def __contains__(self, entry: object, /) -> bool: ...
    def append(self, entry: T, /) -> None: ...
    def appendleft(self, entry: T, /) -> None: ...
    def extend(self, entries: Iterable[T], /) -> None: ...
    def popleft(self) -> T: ...
    def remove(self, entry: T, /) -> None: ...
    def clear(self) -> None: ...


class Weighed(Generic[T]):
    """Another line, with the weight of all its entries.

    Args:
        line: It must be empty.
        weigh: The weight of an entry; it must not change while the entry stands in the line.

    Attributes:
        weight: That of all of them.
    """

    def __init__(self, line: Waiting[T], weigh: Callable[[T], int]) -> None:
        self._line, self._weigh = line, weigh
        self.weight = 0

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[T]:
        return iter(self._line)

    def __getitem__(self, place: int, /) -> T:
        return self._line[place]

    def __contains__(self, entry: object, /) -> bool:
        return entry in self._line

    def append(self, entry: T, /) -> None:
        self.weight += self._weigh(entry)
        self._line.append(entry)

    def appendleft(self, entry: T, /) -> None:
        self.weight += self._weigh(entry)
        self._line.appendleft(entry)

    def extend(self, entries: Iterable[T], /) -> None:
        for entry in entries:
            self.append(entry)

    def popleft(self) -> T:
        entry = self._line.popleft()
        self.weight -= self._weigh(entry)
        return entry

    def remove(self, entry: T, /) -> None:
        self._line.remove(entry)
        self.weight -= self._weigh(entry)

    def clear(self) -> None:
        self._line.clear()
        self.weight = 0
