"""Router: one door before several replicas. It knows which take requests, and no policy and no cost.

To a client it is what a replica is: it takes requests, cancels them, and tells how each ends. While no replica takes
one, a request waits in a line, if there is one, or is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from simpy import Environment

from simulator.autoscaler import Autoscaler
from simulator.fleet import Fleet
from simulator.overflow import Line
from simulator.request import Request
from simulator.routing import Rule

Ear = Callable[[Request], None]
"""Hears of a request."""


class Routed:
    """What a router did, as columns of integers: (row of the trace, ns), and for `to` (row, number of the replica)."""

    def __init__(self) -> None:
        self.sent = array("q")         # taken, when the client sent it
        self.to = array("q")           # handed to a replica
        self.refused = array("q")      # refused, because no replica takes one
        self.cancelled = array("q")    # gone, because its client has hung up


class Router:
    """Hands requests to the replicas of a fleet by a rule.

    Args:
        env: The SimPy environment.
        fleet: The replicas.
        rule: Chooses one of those that take requests.
        line: Where requests wait while none does; None: they are refused.
        on_finish, on_refuse, on_cancel: As those of a replica.

    Attributes:
        record: What it did.
        autoscaler: Who is to know that requests come, if anybody.
    """

    def __init__(self, env: Environment, fleet: Fleet, rule: Rule, line: Line | None, on_finish: Ear, on_refuse: Ear,
                 on_cancel: Ear | None) -> None:
        self._env, self._fleet, self._candidates, self._rule, self._line = env, fleet, fleet.candidates, rule, line
        self._on_finish, self._on_refuse, self._on_cancel = on_finish, on_refuse, on_cancel
        self._at: dict[int, int] = {}    # row of the trace -> number of the replica that has it
        self._closed = False
        self.record = Routed()
        self.autoscaler: Autoscaler | None = None

    @property
    def outstanding(self) -> int:
        """Requests in its line and at all replicas."""
        return self._candidates.total + self.waiting

    @property
    def waiting(self) -> int:
        """Requests in its line."""
        return 0 if self._line is None else len(self._line)

    def submit(self, request: Request) -> None:
        """Hand a request to a replica, have it wait, or refuse it."""
        if self.autoscaler is not None:
            self.autoscaler.wake()
        if not self._candidates and self._line is None:
            self._note(self.record.refused, request)
            self._on_refuse(request)
            return
        self._note(self.record.sent, request)
        if self._candidates:
            self._hand_on(request)
        else:
            assert self._line is not None
            self._line.push(request)

    def cancel(self, request: Request) -> None:
        """Let a request go unfinished: at once if it waits here. One that has left is ignored."""
        if (number := self._at.get(request.index)) is not None:
            self._fleet.replicas[number].cancel(request)
        elif self._line is not None and self._line.remove(request):
            self._gone(request)
            self._close_fleet()

    def close(self) -> None:
        """Say that no request will follow."""
        self._closed = True
        self._close_fleet()

    def serve_line(self) -> None:
        """Hand on those who wait, as far as replicas take them."""
        while self.waiting and self._candidates:
            assert self._line is not None
            self._hand_on(self._line.pop())
        self._close_fleet()

    def ears(self, number: int) -> dict[str, Ear | None]:
        """Who hears of the requests of a replica."""
        return {"on_finish": partial(self._finished, number),
                "on_cancel": partial(self._cancelled, number) if self._on_cancel else None}

    def _hand_on(self, request: Request) -> None:
        number = self._rule.choose(request)
        self._candidates.sent(number)
        self._at[request.index] = number
        self.record.to.extend((request.index, number))
        request.arrival = self._env.now    # type: ignore[assignment]
        self._fleet.replicas[number].submit(request)

    def _finished(self, number: int, request: Request) -> None:
        self._leave(number, request)
        self._on_finish(request)

    def _cancelled(self, number: int, request: Request) -> None:
        self._leave(number, request)
        self._gone(request)

    def _leave(self, number: int, request: Request) -> None:
        """A request has left its replica: who waits comes before who is sent because of that."""
        del self._at[request.index]
        self._candidates.gone(number)
        self._rule.freed(number)
        self._fleet.left(number)
        if self._line is not None:
            self.serve_line()

    def _gone(self, request: Request) -> None:
        """A request whose client has hung up is nowhere any more."""
        assert self._on_cancel, "somebody cancels who said that nobody would"
        self._note(self.record.cancelled, request)
        self._on_cancel(request)

    def _close_fleet(self) -> None:
        if self._closed and not self.waiting:
            self._fleet.close()

    def _note(self, column: array[int], request: Request) -> None:
        column.extend((request.index, self._env.now))    # type: ignore[arg-type]
