"""Router: one door before several replicas. It knows which take requests, and no policy and no cost.

To a client it is what a replica is: it takes requests, cancels them, and tells how each ends.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from simpy import Environment

from simulator.fleet import Fleet
from simulator.request import Request
from simulator.routing import Rule

Ear = Callable[[Request], None]
"""Hears of a request."""


class Routed:
    """What a router did, as columns of integers: (row of the trace, ns), and for `to` (row, number of the replica)."""

    def __init__(self) -> None:
        self.sent = array("q")         # taken, when the client sent it
        self.to = array("q")           # handed to a replica
        self.refused = array("q")      # refused because every replica has its hands full
        self.cancelled = array("q")    # gone because its client has hung up


class Router:
    """Hands requests to the replicas of a fleet by a rule.

    Args:
        env: The SimPy environment.
        fleet: The replicas.
        rule: Chooses one of those that take requests.
        on_finish, on_refuse, on_cancel: As those of a replica.
    """

    def __init__(self, env: Environment, fleet: Fleet, rule: Rule, on_finish: Ear, on_refuse: Ear,
                 on_cancel: Ear | None) -> None:
        self._env, self._fleet, self._candidates, self._rule = env, fleet, fleet.candidates, rule
        self._on_finish, self._on_refuse, self._on_cancel = on_finish, on_refuse, on_cancel
        self._at: dict[int, int] = {}    # row of the trace -> number of the replica that has it
        self.record = Routed()

    def submit(self, request: Request) -> None:
        """Hand a request to a replica, or refuse it."""
        event = (request.index, self._env.now)
        if self._candidates:
            self.record.sent.extend(event)    # type: ignore[arg-type]
            self._hand_on(request)
        else:
            self.record.refused.extend(event)    # type: ignore[arg-type]
            self._on_refuse(request)

    def cancel(self, request: Request) -> None:
        """Let a request go unfinished. One that has left is ignored."""
        if (number := self._at.get(request.index)) is not None:
            self._fleet.replicas[number].cancel(request)

    def close(self) -> None:
        """Say that no request will follow."""
        self._fleet.close()

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
        self.record.cancelled.extend((request.index, self._env.now))    # type: ignore[arg-type]
        self._leave(number, request)
        assert self._on_cancel
        self._on_cancel(request)

    def _leave(self, number: int, request: Request) -> None:
        del self._at[request.index]
        self._candidates.gone(number)
