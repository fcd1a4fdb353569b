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

    It looks at those replicas only that may need the least: what a replica needs grows until a request leaves it. That
    a preemption makes it smaller, too, is seen when the replica is looked at next.
    """

    def __init__(self, sight: Sight) -> None:
        super().__init__(sight)
        self._heap: list[tuple[int, int, int]] = []    # need when last seen, turn, number; of each number one counts
        self._turn: list[int] = []                     # by number: the turn of the entry that counts
        self._turns = 0

    def choose(self, request: Request) -> int:
        for number in range(len(self._turn), len(self._candidates.outstanding)):
            self._turn.append(0)
            self.freed(number)
        while True:
            seen, turn, number = heappop(self._heap)
            if turn != self._turn[number] or number not in self._candidates:
                continue    # a later entry counts, or it comes back when a request leaves it
            need = self._sight.kv_needed(number)
            if need <= seen:
                self.freed(number)
                return number
            heappush(self._heap, (need, turn, number))

    def freed(self, number: int) -> None:
        """See what the replica needs now."""
        self._turns += 1
        self._turn[number] = self._turns
        heappush(self._heap, (self._sight.kv_needed(number), self._turns, number))


class PowerOfTwo(Rule):
    """Of two drawn replicas the one with fewer requests outstanding; the first one if they are even.

    Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
    """

    def choose(self, request: Request) -> int:
        first, second = self._drawn(), self._drawn()
        outstanding = self._candidates.outstanding
        return second if outstanding[second] < outstanding[first] else first
