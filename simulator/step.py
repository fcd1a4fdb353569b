"""The words a policy speaks: the Queue it is lent, and the Step, Wait or None it answers with."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from simulator.batch import DecodingSet
from simulator.memory.base import Memory
from simulator.request import Request

Obstacle = Literal["cap", "budget", "memory", "fragmentation", "batch"]
"""What keeps the head of the queue out: the cap on sequences, the token budget, too little free memory, enough free
memory but no hole that is long enough, or a batch that lets nobody in before it ends."""


@dataclass(slots=True)
class Step:
    """One forward pass. The decoding set takes part, one token a member, unless it pauses; the rest is said here.

    Attributes:
        chunks: (request, tokens) for everyone who computes prompt or lost tokens in this step, in running order.
        decodes: Whether the decoding set takes part; where it does not, its members keep their slots and wait.
        preempted: Who was sent back to the queue, in that order.
        trimmed: The token budget left somebody out.
        blocked: Why the head of the queue, there or yet to come, stays out until somebody leaves; None if it does not.
        spent: Rows of finished requests that compute a token all the same.
        spent_context: KV tokens that those rows read.
        delay: Nanoseconds that the step takes longer because KV moves between GPU and host.
        pad_to: Tokens that every row is padded to; 0 means ragged.
        times: How often to run this very step before the policy is asked again.
        once: Ask the policy again right after it, even if everybody only decodes and nobody arrives.
    """

    chunks: list[tuple[Request, int]] = field(default_factory=list)
    decodes: bool = True
    preempted: list[Request] = field(default_factory=list)
    trimmed: bool = False
    blocked: Obstacle | None = None
    spent: int = 0
    spent_context: int = 0
    delay: int = 0
    pad_to: int = 0
    times: int = 1
    once: bool = False

    def drop(self, victim: Request) -> None:
        """Note that `victim` was preempted and computes nothing in this step."""
        self.preempted.append(victim)
        self.chunks = [chunk for chunk in self.chunks if chunk[0] is not victim]


@dataclass(frozen=True, slots=True)
class Wait:
    """Run nothing before `until` (nanoseconds), unless a request arrives."""

    until: int


class Queue:
    """Who waits and who runs on one replica.

    ``waiting`` is in the order of service: as they came, or by `urgency`, the smallest first. ``running`` maps the
    running order to requests, oldest admission first. Each of them is in exactly one of ``decoding`` (one token a
    step), ``catching_up`` (lacks more than that) and ``held`` (finished, but not yet let go). ``swapped`` are those
    whose KV waits outside the GPU, in the order in which they went. ``closed`` says that no request will follow those
    that wait.
    """

    def __init__(self, decoding: DecodingSet, urgency: Callable[[Request], Any] | None = None) -> None:
        self.decoding, self._urgency = decoding, urgency
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}
        self.catching_up: dict[int, Request] = {}
        self.held: dict[int, Request] = {}
        self.swapped: deque[Request] = deque()
        self.closed = False
        self._admissions = 0

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting) + len(self.swapped)

    @property
    def youngest(self) -> Request:
        """The latest admission among those running."""
        return next(reversed(self.running.values()))

    def wait(self, request: Request) -> None:
        """Take in a request: at the end, or where its urgency puts it."""
        if self._urgency is None:
            self.waiting.append(request)
        else:
            insort(self.waiting, request, key=self._urgency)

    def admit(self) -> Request:
        """Move the head of the queue to the end of the running order."""
        return self._let_in(self.waiting.popleft())

    def swap_in(self) -> Request:
        """Move the first of those swapped out to the end of the running order."""
        return self._let_in(self.swapped.popleft())

    def _let_in(self, request: Request) -> Request:
        self._admissions += 1
        request.order = self._admissions
        self.running[request.order] = self.catching_up[request.order] = request
        return request

    def swap_out(self, request: Request, memory: Memory) -> Request:
        """Move a running request's KV out of the GPU; it waits among the swapped until it is let in again."""
        self._take_out(request)
        memory.release(request)
        request.stash()
        self.swapped.append(request)
        return request

    def _take_out(self, request: Request) -> None:
        """Take a request out of those running; its counters settle."""
        order = request.order
        assert order is not None
        del self.running[order]
        if self.catching_up.pop(order, None) is None:
            self.decoding.leave(request)

    def preempt(self, request: Request, memory: Memory, ahead: int = 0) -> Request:
        """Send a running request back to the front of the queue, or where its urgency puts it.

        Its KV is lost, its tokens are not.
        `ahead` tokens of room were already made for it in this step.
        """
        self._take_out(request)
        memory.release(request, ahead=ahead, returns=True)
        request.forget()
        if self._urgency is None:
            self.waiting.appendleft(request)
        else:
            insort(self.waiting, request, key=self._urgency)
        return request

    def trim(self, step: Step, excess: int) -> None:
        """Take `excess` tokens away from the step, from the youngest backwards.

        A decode that loses its token falls out of the decoding set and catches up later.
        """
        tokens, without = {request.order: n for request, n in step.chunks}, []
        for order, request in reversed(self.running.items()):
            if excess <= 0:
                break
            if order in self.held:
                continue
            taken = min(tokens.get(order, 1), excess)
            excess -= taken
            if order in tokens:
                tokens[order] -= taken
            else:
                without.append(request)
        self.sit_out(without)
        step.chunks = [(request, tokens[request.order]) for request, _ in step.chunks if tokens[request.order]]
        step.trimmed = True

    def sit_out(self, members: Iterable[Request]) -> None:
        """Take members out of the decoding set because they get no token in this step: they catch up later."""
        for request in members:
            self.decoding.leave(request)
            self.catching_up[request.order] = request    # type: ignore[index]
        self.catching_up = dict(sorted(self.catching_up.items()))

    def emitted(self, request: Request, left: int) -> None:
        """Take note that one who caught up has emitted a token and will emit `left` more."""
        assert request.order is not None
        del self.catching_up[request.order]
        if left:
            self.decoding.join(request, left)

    def hold(self, finished: Iterable[Request]) -> None:
        """Keep finished requests in their slots."""
        self.held.update((request.order, request) for request in finished)    # type: ignore[misc]

    def let_go(self, request: Request) -> None:
        """Give up the slot of a finished request."""
        assert request.order is not None
        del self.running[request.order], self.held[request.order]
