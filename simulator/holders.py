"""Holders: who holds memory, and who was stopped, told by the calls that a policy of somebody's own makes.

It listens to the memory and the queue of one replica. It knows no step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.batch import DecodingSet
from simulator.contract import Contract
from simulator.memory.base import Chunks, Memory
from simulator.policies.own import named
from simulator.request import Request
from simulator.step import Queue


class Holders:
    """Those who hold memory, by index.

    Attributes:
        stopped: Who was taken out of those running since the plan began.
    """

    def __init__(self, queue: Queue, memory: Memory, contract: Contract) -> None:
        self._queue, self._contract = queue, contract
        self._holding: dict[int, Request] = {}
        self._touched: dict[Request, None] = {}    # since the plan began
        self.stopped: list[Request] = []
        self._listen(memory, "grow", self._grow)
        self._listen(memory, "hold", self._hold)
        self._listen(memory, "take", self._take)
        self._listen(memory, "release", self._release)
        self._listen(queue, "stop", self._stop)

    def begin(self) -> None:
        """A plan begins."""
        self._touched.clear()
        self.stopped = []

    def __contains__(self, request: Request) -> bool:
        return self._holding.get(request.index) is request

    def check(self) -> None:
        """At the end of a plan nobody has room who does not run, and nobody who runs has lost it."""
        queue = self._queue
        for request in self._touched:
            runs = queue.running.get(request.order) is request    # type: ignore[arg-type]
            if request in self and not runs:
                self._contract.complain(f"made room for {named(request)}, which does not run")
            if request not in self and runs and request.order not in queue.held:
                self._contract.complain(f"gave back the memory of {named(request)}, which still runs")

    @staticmethod
    def _listen(where: Any, verb: str, ear: Callable[..., Any]) -> None:
        """Call `ear` with the verb and its arguments in place of the verb."""
        original = getattr(where, verb)
        setattr(where, verb, lambda *args, **options: ear(original, *args, **options))

    def _grow(self, grow: Callable[..., bool], request: Request, tokens: int) -> bool:
        self._check_tokens(request, tokens)
        given = grow(request, tokens)
        if given:
            self._note(request)
        return given

    def _hold(self, hold: Callable[..., None], request: Request) -> None:
        self._check_tokens(request, 1)
        hold(request)
        self._note(request)

    def _take(self, take: Callable[..., bool], decoding: DecodingSet, chunks: Chunks) -> bool:
        for request, tokens in chunks:
            self._check_tokens(request, tokens)
        given = take(decoding, chunks)
        if given:
            for request, _ in chunks:
                self._note(request)
        return given

    def _release(self, release: Callable[..., None], request: Request, **options: Any) -> None:
        if request not in self and (not isinstance(request, Request) or request.computed):
            self._contract.complain(f"gives back the memory of {named(request)}, which holds none")
        release(request, **options)
        self._holding.pop(request.index, None)
        self._touched[request] = None

    def _stop(self, stop: Callable[..., Request], request: Request) -> Request:
        if not isinstance(request, Request) or self._queue.running.get(request.order) is not request:    # type: ignore[arg-type]
            self._contract.complain(f"stops {named(request)}, which does not run")
        self.stopped.append(request)
        return stop(request)

    def _check_tokens(self, request: object, tokens: object) -> None:
        if not isinstance(request, Request) or type(tokens) is not int or tokens < 0:
            self._contract.complain(f"asks for room for {tokens!r} tokens of {named(request)}: it takes a request, and "
                                    "an int of at least 0")

    def _note(self, request: Request) -> None:
        self._holding[request.index] = request
        self._touched[request] = None
