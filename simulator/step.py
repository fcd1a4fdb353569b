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
        pad_chunks_to: Tokens that chunks are padded to beside decodes with longer contexts; 0 means `pad_to`.
        times: How often to run this very step before the policy is asked again.
        fickle: Ask the policy again after this step, even if it is steady and everybody only decodes.
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
    pad_chunks_to: int = 0
    times: int = 1
    fickle: bool = False

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
    step), ``catching_up`` (lacks more than that), ``held`` (finished, but not yet let go) and ``in_flight`` (its batch
    has not returned while another is made up). ``swapped`` are those whose KV waits outside the GPU, in the order in
    which they went. ``closed`` says that no request will follow those that wait.
    """

    def __init__(self, decoding: DecodingSet, urgency: Callable[[Request], Any] | None = None) -> None:
        self.decoding, self._urgency = decoding, urgency
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}
        self.catching_up: dict[int, Request] = {}
        self.held: dict[int, Request] = {}
        self.in_flight: dict[int, Request] = {}
        self.swapped: deque[Request] = deque()
        self.closed = False
        self._admissions = self._heads = 0

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting) + len(self.swapped)

    @property
    def youngest(self) -> Request:
        """The latest admission among those running."""
        return next(reversed(self.running.values()))

    def decoders(self) -> list[tuple[Request, int]]:
        """Those in the decoding set and the tokens each has generated, in running order."""
        turn = self.decoding.turn
        return [(request, request._generated + turn - request._joined)
                for request in self.running.values() if request._set is not None]

    def wait(self, request: Request) -> None:
        """Take in a request: at the end, or where its urgency puts it."""
        if self._urgency is None:
            self.waiting.append(request)
        else:
            insort(self.waiting, request, key=self._urgency)

    def admit(self, request: Request | None = None) -> Request:
        """Move the head of the queue, or this one of those who wait, to the end of the running order."""
        if request is None:
            request = self.waiting.popleft()
        elif request is self.waiting[0]:
            self.waiting.popleft()
        else:
            self.waiting.remove(request)
        return self._let_in(request)

    def swap_in(self) -> Request:
        """Move the first of those swapped out to the end of the running order."""
        return self._let_in(self.swapped.popleft())

    def _let_in(self, request: Request) -> Request:
        request.order = self._admissions = order = self._admissions + 1
        self.running[order] = self.catching_up[order] = request
        return request

    def swap_out(self, request: Request, memory: Memory) -> Request:
        """Move a running request's KV out of the GPU; it waits among the swapped until it is let in again."""
        self.stop(request)
        memory.release(request)
        request.stash()
        self.swapped.append(request)
        return request

    def stop(self, request: Request) -> Request:
        """Take a request out of those running; its counters settle. It keeps its memory until it is sent back."""
        order = request.order
        assert order is not None
        del self.running[order]
        if self.catching_up.pop(order, None) is None:
            self.decoding.leave(request)
        return request

    def arrange(self, order: Iterable[Request]) -> None:
        """Put those who wait into this order."""
        order = list(order)
        self.waiting.clear()
        self.waiting.extend(order)

    def lead(self, requests: Iterable[Request]) -> None:
        """Put requests that catch up at the head of the running order, in this order."""
        first = list(requests)
        for request in first:
            assert request.order is not None
            del self.running[request.order], self.catching_up[request.order]
        self._heads -= len(first)
        leaders = dict(enumerate(first, self._heads + 1))
        for order, request in leaders.items():
            request.order = order
        self.running = leaders | self.running
        self.catching_up = leaders | self.catching_up

    def preempt(self, request: Request, memory: Memory, ahead: int = 0, *, to_tail: bool = False) -> Request:
        """Stop a running request and send it back. `ahead` tokens of room were already made for it in this step."""
        return self.send_back(self.stop(request), memory, ahead, to_tail=to_tail)

    def send_back(self, request: Request, memory: Memory, ahead: int = 0, *, to_tail: bool = False) -> Request:
        """Put a stopped request at the front of the queue, or at its tail, or where its urgency puts it.

        Its KV is lost, its tokens are not.
        """
        memory.release(request, ahead=ahead, returns=True)
        request.forget()
        if self._urgency is not None:
            insort(self.waiting, request, key=self._urgency)
        elif to_tail:
            self.waiting.append(request)
        else:
            self.waiting.appendleft(request)
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

    def launch(self, step: Step) -> None:
        """Note that those who compute in this step are under way: nobody selects them until it returns."""
        for request, _ in step.chunks:
            self.in_flight[request.order] = self.catching_up.pop(request.order)    # type: ignore[index,arg-type]

    def land(self, step: Step) -> None:
        """Note that this step has returned."""
        for request, _ in step.chunks:
            self.catching_up[request.order] = self.in_flight.pop(request.order)    # type: ignore[index,arg-type]
        self.catching_up = dict(sorted(self.catching_up.items()))

    def hold(self, finished: Iterable[Request]) -> None:
        """Keep finished requests in their slots."""
        for request in finished:
            self.held[request.order] = request    # type: ignore[index]

    def strip(self, request: Request, memory: Memory) -> None:
        """Take back the KV of a finished request that keeps its slot."""
        memory.release(request)
        request.reuse(0)

    def drop(self, request: Request, memory: Memory) -> bool:
        """Take a request out, wherever it is, and its memory back. False if it is not here."""
        if request.order is not None and self.running.get(request.order) is request:
            if request.order in self.held:
                self.let_go(request)
            else:
                self.stop(request)
            memory.release(request)
            return True
        for line in (self.waiting, self.swapped):
            if request in line:
                line.remove(request)
                return True
        return False

    def let_go(self, request: Request) -> None:
        """Give up the slot of a finished request."""
        order = request.order
        assert order is not None
        del self.running[order]
        self.held.pop(order, None)
