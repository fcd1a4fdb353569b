"""The engine's list of active requests, as both stages see it: who runs and who waits, each at its place.

An active request is in one of two states. In its context it computes what it knows, prompt and, after a pause, output;
it takes the blocks of all of that with its first chunk. Then it generates, one token a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simulator.memory.ahead import PagedAhead
from simulator.request import Request
from simulator.step import Queue

Place = Callable[[Request], Any]


@dataclass
class Active:
    """The active requests at one step.

    Attributes:
        queue, memory: As lent to the policy.
        place: Where a request stands in the list.
        slots: Most requests that may be served at once.
        look_ahead: Tokens for which a generating request must find room.
        longest: Tokens of the longest context that a pause leaves.
    """

    queue: Queue
    memory: PagedAhead
    place: Place
    slots: int
    look_ahead: int
    longest: int

    def in_context(self, request: Request) -> bool:
        """Whether a running request still computes its context."""
        return request.computed < self.memory.room(request)

    def context(self, request: Request) -> int:
        """Tokens of the whole context of a request."""
        if request.order is not None:
            return self.memory.room(request)
        return max(request.prompt, min(request.known, self.longest))

    def left(self, request: Request) -> int:
        """Tokens of its context that are not yet computed."""
        return self.context(request) - request.computed

    def in_order(self, requests: Iterable[Request]) -> list[Request]:
        """Requests by their places."""
        return sorted(requests, key=self.place)

    @cached_property
    def contexts(self) -> list[Request]:
        """Running requests in their context, in order."""
        return self.in_order(filter(self.in_context, self.queue.catching_up.values()))

    @cached_property
    def late(self) -> list[Request]:
        """Running requests that generate but got no token in a step before, in the order of admission."""
        return [request for request in self.queue.catching_up.values() if not self.in_context(request)]

    @property
    def generations(self) -> int:
        """How many generate."""
        return self.queue.decoding.size + len(self.late)

    @property
    def generating(self) -> list[Request]:
        """Those who generate, in order."""
        return self.in_order(request for request in self.queue.running.values() if not self.in_context(request))

    @property
    def overtaken(self) -> bool:
        """Whether somebody who waits stands before somebody who runs."""
        waiting, running = self.queue.waiting, self.queue.running
        return bool(waiting) and bool(running) and self.place(waiting[0]) < max(map(self.place, running.values()))

    def one_step(self, request: Request) -> int:
        """Blocks that a request needs for the next step: those of its whole context before its first chunk."""
        if request.order is None:
            return self.memory.blocks_for(self.context(request))
        return 0 if self.in_context(request) else self.memory.growth(request, self.look_ahead)

    def one_step_of_all(self) -> int:
        """Blocks that all running requests need for the next step."""
        decoding = self.queue.decoding
        need = decoding.demand + sum(decoding.demands(self.look_ahead - 1)) if decoding.size else 0
        return need + sum(map(self.one_step, self.late))
