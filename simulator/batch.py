"""The decoding set: requests that compute one token in every step. It knows neither memory nor policy.

Two sets with one contract. `LockstepSet` stores nothing that grows by one for everybody: a member's context is
``turn + offset``, so a step costs nothing per member, and joining or leaving costs O(log n). `ListedSet` walks its
members at each step. It is the plain reference that a simulation in exact mode uses.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from simulator.request import Request

SpanSink = Callable[[int, int, int], None]
"""Called with (request index, first step, last step) when a run of tokens ends: one in each step in between, but for
steps in which the set paused."""


class DecodingSet(Protocol):
    """What a replica, a memory and a policy may ask of the decoding set.

    ``turn`` counts the steps in which the set took part, ``size`` its members, ``context`` the KV tokens of all.
    """

    turn: int

    @property
    def size(self) -> int:
        """Members."""

    @property
    def context(self) -> int:
        """KV tokens of all members together."""

    @property
    def demand(self) -> int:
        """Blocks that all members need for one token more each."""

    def demands(self, steps: int) -> list[int]:
        """The demand of each of `steps` steps that follow the next one."""

    def join(self, request: Request, left: int) -> None:
        """Take in a request that has just emitted a token and will emit `left` more, one a step."""

    def leave(self, request: Request) -> None:
        """Let a member go; its counters settle."""

    def advance(self, steps: int) -> None:
        """Every member computes and emits one token in each of `steps` steps."""

    def pause(self, steps: int = 1) -> None:
        """Steps pass in which no member takes part."""

    def steps_to_finish(self) -> int:
        """Steps until the first member emits its last token; at least 1."""

    def finish(self) -> list[Request]:
        """Let go those that have emitted their last token, oldest admission first."""


class LockstepSet:
    """The decoding set as an aggregate: sums, a table of block crossings and a heap of last steps."""

    def __init__(self, block_size: int, on_span: SpanSink) -> None:
        self.block_size, self.on_span = block_size, on_span
        self.turn = self.size = self.context = 0
        self._steps = 0         # of the replica, those of pauses included
        self._latest = -1       # the step of the latest turn
        self._crossing = [0] * block_size    # members that need a new block when turn % block_size == i
        self._due: list[tuple[int, int, Request]] = []    # (last turn, order, request); some entries are stale

    @property
    def demand(self) -> int:
        return self._crossing[self.turn % self.block_size]

    def demands(self, steps: int) -> list[int]:
        first = (self.turn + 1) % self.block_size
        turn = self._crossing[first:] + self._crossing[:first]
        return (turn * (steps // self.block_size + 1))[:steps]

    def join(self, request: Request, left: int) -> None:
        assert request.order is not None
        turn, computed = self.turn, request._computed
        request._set, request._joined, request._last = self, turn, turn + left - 1
        request._since = self._steps - 1
        self.size += 1
        self.context += computed
        self._crossing[(turn - computed) % self.block_size] += 1
        heappush(self._due, (request._last, request.order, request))

    def leave(self, request: Request) -> None:
        turn, joined = self.turn, request._joined
        request._computed = computed = request._computed + turn - joined
        request._generated += turn - joined
        request._set = None
        self.size -= 1
        self.context -= computed
        self._crossing[(turn - computed) % self.block_size] -= 1
        self.on_span(request.index, request._since, self._latest if turn > joined else request._since)

    def advance(self, steps: int) -> None:
        self.turn += steps
        self.context += steps * self.size
        self._steps += steps
        self._latest = self._steps - 1

    def pause(self, steps: int = 1) -> None:
        self._steps += steps

    def steps_to_finish(self) -> int:
        due = self._due
        while True:
            last, order, request = due[0]
            if request._set is self and request._last == last and request.order == order:
                return last - self.turn + 1
            heappop(due)

    def finish(self) -> list[Request]:
        done: list[Request] = []
        due, turn = self._due, self.turn
        while due and due[0][0] < turn:
            last, order, request = heappop(due)
            if request._set is self and request._last == last and request.order == order:
                self.leave(request)
                done.append(request)
        return done


class ListedSet:
    """The same set as a plain list of members: O(members) a step and nothing clever."""

    def __init__(self, block_size: int, on_span: SpanSink) -> None:
        self.block_size, self.on_span = block_size, on_span
        self.turn = self._steps = 0
        self._latest = -1
        self._members: dict[int, Request] = {}
        self._left: dict[int, int] = {}    # tokens each has still to emit
        self._began: dict[int, int] = {}   # turn at which each joined

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def context(self) -> int:
        return sum(request._computed for request in self._members.values())

    @property
    def demand(self) -> int:
        return sum(request._computed % self.block_size == 0 for request in self._members.values())

    def demands(self, steps: int) -> list[int]:
        return [sum((request._computed + ahead) % self.block_size == 0 for request in self._members.values())
                for ahead in range(1, steps + 1)]

    def join(self, request: Request, left: int) -> None:
        assert request.order is not None
        request._set, request._joined, request._since = self, self.turn, self._steps - 1
        self._members[request.order], self._left[request.order] = request, left
        self._began[request.order] = self.turn

    def leave(self, request: Request) -> None:
        assert request.order is not None
        request._set = None
        del self._members[request.order], self._left[request.order]
        moved = self.turn > self._began.pop(request.order)
        self.on_span(request.index, request._since, self._latest if moved else request._since)

    def advance(self, steps: int) -> None:
        self.turn += steps
        self._steps += steps
        self._latest = self._steps - 1
        for order, request in self._members.items():
            request._computed += steps
            request._generated += steps
            request._joined = self.turn    # nothing is left to settle on reading
            self._left[order] -= steps

    def pause(self, steps: int = 1) -> None:
        self._steps += steps

    def steps_to_finish(self) -> int:
        return min(self._left.values())

    def finish(self) -> list[Request]:
        done = [self._members[order] for order in sorted(self._left) if self._left[order] == 0]
        for request in done:
            self.leave(request)
        return done
