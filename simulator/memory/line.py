"""The free line: the order in which free blocks are taken, without a list of blocks. It knows no request.

Free blocks stand in a line. Blocks are taken from its left end; blocks with nothing in them are put back on the left,
blocks that still hold KV on the right, so that the least recently used go first. Only those that somebody may find
again, the strips, are remembered by name, with their place on the line; everything else is counted.
Source: the free queue of vLLM 0.33.0.
"""

from __future__ import annotations

from collections import deque
from typing import Any


class Strip:
    """Blocks that hold the KV of consecutive positions of one prefix, in one physical copy.

    Attributes:
        node: What the content belongs to: a shared prefix id, or the request that it is private to.
        low, high: Positions in blocks from the start of the sequence, `high` excluded.
        holders: Running requests that use it; empty while it is free.
        place: Where it stands on the free line, while it is free.
    """

    __slots__ = ("high", "holders", "low", "node", "place")

    def __init__(self, node: Any, low: int, high: int, holders: dict[Any, None]) -> None:
        self.node, self.low, self.high, self.holders = node, low, high, holders
        self.place: Place | None = None

    def __len__(self) -> int:
        return self.high - self.low


class Place:
    """An interval of the line that is not just counted: a free strip, or a hole that one has left."""

    __slots__ = ("length", "start", "strip")

    def __init__(self, start: int, length: int, strip: Strip | None) -> None:
        self.start, self.length, self.strip = start, length, strip


class FreeLine:
    """All free blocks, in the order in which they are taken.

    Attributes:
        free: How many there are.
        empty: How many of them, at the left end, hold nothing that could be found again.
    """

    def __init__(self, blocks: int) -> None:
        self.free = self.empty = blocks
        self._left, self._right = 0, blocks
        self._places: deque[Place] = deque()    # by start; a strip's highest position stands leftmost

    def take(self, blocks: int) -> list[Strip]:
        """Take blocks from the left end. Returns the strips that lost some of theirs, the highest positions first."""
        self.free -= blocks
        self.empty = self.empty - blocks if self.empty > blocks else 0
        self._left += blocks
        places = self._places
        if not places or places[0].start >= self._left:
            return []
        hit = []
        while places and places[0].start < self._left:
            place = places[0]
            if place.strip is None:
                self._left += place.length
                places.popleft()
                continue
            lost = min(place.length, self._left - place.start)
            place.strip.high -= lost
            hit.append(place.strip)
            place.start += lost
            place.length -= lost
            if place.length:
                break
            places.popleft()
        return hit

    def put_back(self, empty: int, full: int) -> None:
        """Put empty blocks on the left end, to be taken next, and on the right end full ones that nobody can find."""
        self._left -= empty
        self._right += full
        self.empty += empty
        self.free += empty + full

    def put_strip(self, strip: Strip) -> None:
        """Put a strip on the right end, its highest position to the left."""
        strip.place = Place(self._right, len(strip), strip)
        self._places.append(strip.place)
        self.put_back(0, len(strip))

    def lift(self, strip: Strip) -> None:
        """Take a free strip off the line, wherever it stands."""
        assert strip.place is not None
        strip.place.strip = None    # a hole stays behind
        strip.place = None
        self.free -= len(strip)

    def split(self, lower: Strip, upper: Strip) -> None:
        """Note that a free strip has become two: `upper` stands to the left of `lower`."""
        place = lower.place
        assert place is not None
        lower.place = Place(place.start + len(upper), len(lower), lower)
        place.strip, place.length, upper.place = upper, len(upper), place
        self._places.insert(self._places.index(place) + 1, lower.place)
