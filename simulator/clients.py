"""Clients: who sends the requests, and when. They know arrivals, limits and patience, and neither policy nor cost.

Open loop: each request at its own time. Saturated: all at time 0. Closed loop: never more than ``max_concurrency``
outstanding; a request that must wait for its turn counts as sent when it is sent, as `vllm bench serve` counts it.
A request that is refused or takes too long is sent again as often as the client's patience says; it keeps its turn
meanwhile. Later turns of conversations come when `conversations` says, whatever the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, Protocol

from simpy import Environment, Event

from simulator.conversations import Conversations
from simulator.memory.base import UNLIMITED
from simulator.patience import Patience
from simulator.request import Request


class Server(Protocol):
    """Where a client sends its requests."""

    def submit(self, request: Request) -> None:
        """Take a request."""

    def cancel(self, request: Request) -> None:
        """Let a request go unfinished, and say when it is gone."""

    def close(self) -> None:
        """Learn that no request will follow."""


class Client:
    """Sends requests in the order of their arrivals, all of one instant at once.

    Args:
        env: The SimPy environment.
        requests: The requests in the order of arrival; made as they are needed.
        max_concurrency: Most requests outstanding.
        patience: How long it waits for an answer, and how often it tries again.
        on_end: Called whenever a request has ended, answered or not, or is skipped.
        conversations: The later turns, which are not among `requests` then.

    Attributes:
        answered, refused_for_good, aborted: How many requests have ended in each way.
    """

    def __init__(self, env: Environment, requests: Iterator[Request], max_concurrency: int = UNLIMITED,
                 patience: Patience | None = None, on_end: Callable[[], None] | None = None,
                 conversations: Conversations | None = None) -> None:
        self._env, self._requests, self._limit = env, requests, max_concurrency
        self._patience, self._on_end, self._conversations = patience or Patience(), on_end, conversations
        self._hangs_up = self._patience.ends
        self._next = next(requests, None)
        self._outstanding = self.answered = self.refused_for_good = self.aborted = 0
        self._tries: dict[int, int] = {}        # of those sent again: how often
        self._open: set[Request] = set()        # those that time out, if nothing comes
        self._turns: deque[Request] = deque()   # later ones whose time has come, longest due first
        self._server: Server | None = None
        self._sending = False
        self._held_back: Event | None = None    # set while the limit keeps back a request whose time has come

    def send_to(self, server: Server) -> None:
        """Start to send."""
        self._server = server
        self._env.process(self._run())

    def finished(self, request: Request) -> None:
        """Hear that a request is answered: another one may take its turn."""
        if self._hangs_up:
            self._open.discard(request)
        self.answered += 1
        if self._conversations is not None:
            self._follow(request, self._conversations)
        self._end()

    def refused(self, request: Request) -> None:
        """Hear that the server did not take a request: it is sent again, or it is lost."""
        self._open.discard(request)
        if not self._try_again(request):
            self.refused_for_good += 1
            self._lose(request)

    def cancelled(self, request: Request) -> None:
        """Hear that a request that took too long is gone: it is sent again, or it is given up."""
        self._open.discard(request)
        if not self._try_again(request):
            self.aborted += 1
            self._lose(request)

    def _end(self) -> None:
        """A request has ended: its turn is free."""
        self._outstanding -= 1
        if self._on_end:
            self._on_end()
        if (self._held_back is not None or self._turns) and not self._sending:
            self._send_due()
            if self._held_back is not None and not self._is_due():
                self._held_back.succeed()
                self._held_back = None
        elif self._next is None and (self._patience.retries or self._conversations is not None):
            self._close()

    def _lose(self, request: Request) -> None:
        """A request has ended without an answer, and its conversation with it."""
        skipped = 0 if self._conversations is None else self._conversations.lose(request.index)
        for _ in range(skipped if self._on_end else 0):
            self._on_end()    # type: ignore[misc]
        self._end()

    def _follow(self, request: Request, conversations: Conversations) -> None:
        """Send the turns that follow an answer when they are due."""
        now: int = self._env.now    # type: ignore[assignment]
        for turn in conversations.after(request.index, now):
            if turn.arrival > now:
                self._alarm(turn.arrival - now, partial(self._come, turn))
            else:
                self._turns.append(turn)

    def _come(self, turn: Request) -> None:
        """A later turn is due."""
        self._turns.append(turn)
        self._send_due()

    def _run(self) -> Generator[Event, Any, None]:
        env = self._env
        while self._next is not None:
            if self._next.arrival > env.now:
                yield env.timeout(self._next.arrival - env.now)
            self._send_due()
            if self._is_due():
                self._held_back = env.event()
                yield self._held_back

    @property
    def _now(self) -> int:
        return self._env.now    # type: ignore[return-value]

    def _is_due(self) -> bool:
        return self._next is not None and self._next.arrival <= self._env.now

    def _send_due(self) -> None:
        now, self._sending = self._now, True
        while self._outstanding < self._limit:
            if self._turns and self._is_first(self._turns[0]):
                request = self._turns.popleft()
                self._conversations.sent()    # type: ignore[union-attr]
            elif self._next is not None and self._next.arrival <= now:
                request, self._next = self._next, next(self._requests, None)
            else:
                break
            self._outstanding += 1
            self._send(request, now)
        self._sending = False
        if self._next is None:
            self._close()

    def _is_first(self, turn: Request) -> bool:
        """Whether a later turn has been due longest; of the same instant, whoever follows nobody goes first."""
        return self._next is None or turn.arrival < self._next.arrival

    def _close(self) -> None:
        """Say that no request will follow, once none will: whoever is outstanding may be sent again, or be followed."""
        turns = self._conversations is not None and self._conversations.left > 0
        if not turns and not (self._patience.retries and self._outstanding):
            assert self._server is not None
            self._server.close()

    def _send(self, request: Request, now: int) -> None:
        assert self._server is not None
        request.arrival = now
        if not self._hangs_up:
            self._server.submit(request)
            return
        self._open.add(request)
        self._server.submit(request)
        if request in self._open:
            self._watch(request)

    def _watch(self, request: Request) -> None:
        """Set the alarms of a request that the server has taken."""
        first, whole = self._patience.first_token, self._patience.answer
        if first is not None:
            self._alarm(first, lambda: None if request.generated else self._hang_up(request))
        if whole is not None:
            self._alarm(whole, lambda: self._hang_up(request))

    def _hang_up(self, request: Request) -> None:
        """Cancel a request whose time is up, if it is still there."""
        if request in self._open:
            assert self._server is not None
            self._server.cancel(request)

    def _try_again(self, request: Request) -> bool:
        """Send a request once more after a pause, unless it has had all its tries."""
        tries = self._tries.get(request.index, 0)
        if tries >= self._patience.retries:
            return False
        self._tries[request.index] = tries + 1
        self._alarm(self._patience.pause(tries), lambda: self._send(request.again(), self._now))
        return True

    def _alarm(self, after: int, act: Callable[[], None]) -> None:
        self._env.timeout(after).callbacks.append(lambda _: act())
