"""Rules that look at the load of the replicas."""

from __future__ import annotations

from heapq import heappop, heappush

from simulator.request import Request
from simulator.routing.base import Rule, Sight


class LeastOutstanding(Rule):
    """The replica with the fewest requests outstanding, waiting and running; ties in turn, as nginx least_conn."""

    def choose(self, request: Request) -> int:
        return self._least_outstanding()


class LeastKv(Rule):
    """The replica that needs the least KV cache, for what it holds and for the prompts that wait; ties in turn.

    It looks at those replicas only that may need the least: what a replica needs grows until a request leaves it, or
    until one that waited gets its slot and takes room for the first chunk alone, or finds blocks in a cache. That a
    preemption makes it smaller, too, is seen when the replica is looked at next.
    """

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight)
        self._heap: list[tuple[int, int, int]] = []    # need when last seen, turn, number
        self._counts: list[tuple[int, int, int]] = []  # by number: the entry of the heap that counts
        self._waiting: dict[int, int] = {}             # of those with requests waiting when last seen: how many
        self._turns = 0

    def choose(self, request: Request) -> int:
        for number in range(len(self._counts), len(self._candidates.outstanding)):
            self._counts.append((0, 0, number))
            self.freed(number)
        self._see_admissions()
        while True:
            entry = heappop(self._heap)
            seen, turn, number = entry
            if entry != self._counts[number] or number not in self._candidates:
                continue    # a later entry counts, or it comes back when a request leaves it
            if self._see(number, turn) <= seen:
                self.freed(number)
                self._waiting[number] = self._sight.waiting(number) + 1    # with the one that is on its way
                return number

    def freed(self, number: int) -> None:
        """See what the replica needs now; of those that need as much, it comes last."""
        self._turns += 1
        self._see(number, self._turns)

    def _see_admissions(self) -> None:
        """See anew what those replicas need where fewer requests wait than before."""
        for number, count in list(self._waiting.items()):
            if number in self._candidates and self._sight.waiting(number) < count:
                self._see(number, self._counts[number][1])

    def _see(self, number: int, turn: int) -> int:
        """Note what the replica needs now."""
        need = self._sight.kv_needed(number)
        self._counts[number] = entry = (need, turn, number)
        heappush(self._heap, entry)
        if waiting := self._sight.waiting(number):
            self._waiting[number] = waiting
        else:
            self._waiting.pop(number, None)
        return need


class PowerOfTwo(Rule):
    """Of two drawn replicas the one with fewer requests outstanding; the first one if they are even.

    Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
    """

    def choose(self, request: Request) -> int:
        first, second = self._drawn(), self._drawn()
        outstanding = self._candidates.outstanding
        return second if outstanding[second] < outstanding[first] else first
