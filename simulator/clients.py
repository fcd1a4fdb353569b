"""Clients: who sends the requests, and when. They know arrivals and limits, and neither policy nor cost.

Open loop: each request at its own time. Saturated: all at time 0. Closed loop: never more than ``max_concurrency``
outstanding; a request that must wait for its turn counts as sent when it is sent, as `vllm bench serve` counts it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol

from simpy import Environment, Event

from simulator.memory.base import UNLIMITED
from simulator.request import Request


class Server(Protocol):
    """Where a client sends its requests."""

    def submit(self, request: Request) -> None:
        """Take a request."""

    def close(self) -> None:
        """Learn that no request will follow."""


class Client:
    """Sends requests in the order of their arrivals, all of one instant at once.

    Args:
        env: The SimPy environment.
        requests: The requests in the order of arrival; made as they are needed.
        max_concurrency: Most requests outstanding.
    """

    def __init__(self, env: Environment, requests: Iterator[Request], max_concurrency: int = UNLIMITED) -> None:
        self._env, self._requests, self._limit = env, requests, max_concurrency
        self._next = next(requests, None)
        self._outstanding = 0
        self._server: Server | None = None
        self._held_back: Event | None = None    # set while the limit keeps back a request whose time has come

    def send_to(self, server: Server) -> None:
        """Start to send."""
        self._server = server
        self._env.process(self._run())

    def finished(self, request: Request) -> None:
        """Hear that a request is answered: another one may take its turn."""
        self._outstanding -= 1
        if self._held_back is not None:
            self._send_due()
            if not self._is_due():
                self._held_back.succeed()
                self._held_back = None

    def refused(self, request: Request) -> None:
        """Hear that the server did not take a request: it is lost, and the next one may be sent."""
        self._outstanding -= 1

    def _run(self) -> Generator[Event, Any, None]:
        env = self._env
        while self._next is not None:
            if self._next.arrival > env.now:
                yield env.timeout(self._next.arrival - env.now)
            self._send_due()
            if self._is_due():
                self._held_back = env.event()
                yield self._held_back

    def _is_due(self) -> bool:
        return self._next is not None and self._next.arrival <= self._env.now

    def _send_due(self) -> None:
        assert self._server is not None
        now: int = self._env.now    # type: ignore[assignment]
        while self._next is not None and self._next.arrival <= now and self._outstanding < self._limit:
            request, self._next = self._next, next(self._requests, None)
            request.arrival = now
            self._outstanding += 1
            self._server.submit(request)
        if self._next is None:
            self._server.close()
