"""Rules that look at no load: in turn, or at random."""

from __future__ import annotations

from simulator.request import Request
from simulator.routing.base import Rule
from simulator.routing.candidates import following


class RoundRobin(Rule):
    """One after the other; whoever takes no request is passed over."""

    def choose(self, request: Request) -> int:
        self._last = following(self._candidates.taking, self._last)
        return self._last


class Random(Rule):
    """Any of them, each as likely as another."""

    def choose(self, request: Request) -> int:
        return self._drawn()
