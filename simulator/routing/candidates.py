"""Candidates: which replicas take a request now, and how many requests each has outstanding. They choose none.

A set of replicas is the bits of one integer: with hundreds of replicas, to find the next member takes no loop.
"""

from __future__ import annotations

from collections.abc import Iterator

Members = int
"""A set of replica numbers, one bit each."""


class Candidates:
    """Replicas by number, from 0 on.

    Args:
        limit: Most requests outstanding at one replica; whoever has so many takes no more.

    Attributes:
        outstanding: Requests that each replica has, by its number.
        total: Those of all replicas.
        serving: The replicas that take requests whenever they have room.
        taking: Those that take one now.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.outstanding: list[int] = []
        self.total = 0
        self.serving: Members = 0
        self.taking: Members = 0
        self._by_load: list[Members] = [0]        # of those taking, by how many requests they have
        self._least = 0                           # no load below it has a member
        self._listed: list[int] = []              # those taking, in any order
        self._place: dict[int, int] = {}          # where each stands in that list

    def __len__(self) -> int:
        """How many take a request now."""
        return len(self._listed)

    def __getitem__(self, place: int) -> int:
        """One of those that take a request now, by its place in a list without meaning."""
        return self._listed[place]

    def __contains__(self, number: int) -> bool:
        return number in self._place

    def join(self, number: int) -> None:
        """A replica is ready: it takes requests from now on."""
        self.outstanding += [0] * (number + 1 - len(self.outstanding))
        self.serving |= 1 << number
        self._enter(number)

    def leave(self, number: int) -> None:
        """A replica takes no more requests; those that it has, it answers."""
        self.serving &= ~(1 << number)
        if number in self._place:
            self._exit(number)

    def sent(self, number: int) -> None:
        """A replica that takes requests got one."""
        self._exit(number)
        self.outstanding[number] += 1
        self.total += 1
        if self.outstanding[number] < self._limit:
            self._enter(number)

    def gone(self, number: int) -> None:
        """A request has left its replica."""
        if number in self._place:
            self._exit(number)
        self.outstanding[number] -= 1
        self.total -= 1
        if self.serving >> number & 1:
            self._enter(number)

    def fewest(self) -> int:
        """The fewest requests that a replica taking requests has."""
        while not self._by_load[self._least]:
            self._least += 1
        return self._least

    def least(self) -> Members:
        """Those of the replicas taking requests that have so few."""
        return self._by_load[self.fewest()]

    def _enter(self, number: int) -> None:
        load = self.outstanding[number]
        if load >= len(self._by_load):
            self._by_load += [0] * (load + 1 - len(self._by_load))
        self._by_load[load] |= 1 << number
        self._least = min(self._least, load)
        self.taking |= 1 << number
        self._place[number] = len(self._listed)
        self._listed.append(number)

    def _exit(self, number: int) -> None:
        self._by_load[self.outstanding[number]] &= ~(1 << number)
        self.taking &= ~(1 << number)
        place, last = self._place.pop(number), self._listed.pop()
        if last != number:
            self._listed[place], self._place[last] = last, place


def members(of: Members) -> Iterator[int]:
    """All numbers in a set, in order."""
    while of:
        yield (of & -of).bit_length() - 1
        of &= of - 1


def following(of: Members, number: int) -> int:
    """The first member after this number; from 0 on again if there is none."""
    later = of >> (number + 1)
    if later:
        return number + (later & -later).bit_length()
    return (of & -of).bit_length() - 1
