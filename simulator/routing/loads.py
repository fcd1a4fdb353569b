"""Rules that look at the load of the replicas."""

from __future__ import annotations

from simulator.request import Request
from simulator.routing.base import Rule
from simulator.routing.candidates import following, members


class LeastOutstanding(Rule):
    """The replica with the fewest requests outstanding, waiting and running; ties in turn, as nginx least_conn."""

    def choose(self, request: Request) -> int:
        return self._least_outstanding()


class LeastKv(Rule):
    """The replica that uses the least KV cache in the step that it runs; ties in turn."""

    def choose(self, request: Request) -> int:
        use = {number: self._sight.kv_used(number) for number in members(self._candidates.taking)}
        least = min(use.values())
        self._last = following(sum(1 << number for number, used in use.items() if used == least), self._last)
        return self._last


class PowerOfTwo(Rule):
    """Of two drawn replicas the one with fewer requests outstanding; the first one if they are even.

    Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
    """

    def choose(self, request: Request) -> int:
        first, second = self._drawn(), self._drawn()
        outstanding = self._candidates.outstanding
        return second if outstanding[second] < outstanding[first] else first
