"""Rules that look at the load of the replicas."""

from __future__ import annotations

from simulator.request import Request
from simulator.routing.base import Rule


class LeastOutstanding(Rule):
    """The replica with the fewest requests outstanding, waiting and running; ties in turn, as nginx least_conn."""

    def choose(self, request: Request) -> int:
        return self._least_outstanding()


class PowerOfTwo(Rule):
    """Of two drawn replicas the one with fewer requests outstanding; the first one if they are even.

    Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12(10), 2001.
    """

    def choose(self, request: Request) -> int:
        first, second = self._drawn(), self._drawn()
        outstanding = self._candidates.outstanding
        return second if outstanding[second] < outstanding[first] else first
