"""The contract between a replica and its policy, and the words when a policy breaks it. It runs nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from simulator.errors import InputError, PolicyError
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.request import Request
from simulator.step import Queue, Step, Wait

LATEST = 1 << 62
"""The clock counts nanoseconds in 64 bits."""
OWN_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a policy of somebody's own may bring about with a step that cannot be run."""
MOST_WAITS = 10_000
"""In a row, where nobody runs and nobody else will come."""


class Contract:
    """What a policy must keep. Each check raises PolicyError with the policy, the time and the state of the replica."""

    def __init__(self, policy: Policy, queue: Queue, memory: Memory) -> None:
        self._policy, self._queue, self._memory = policy, queue, memory

    def complain(self, what: str, now: int) -> NoReturn:
        """The policy did something that it may not do."""
        queue, memory = self._queue, self._memory
        raise PolicyError(f"{self._policy.name}: {what}, at {now} ns ({len(queue.running)} running, "
                          f"{len(queue.waiting)} waiting, {memory.free} of {memory.capacity} blocks free)")

    def check_chunk(self, request: Request, tokens: int, step: Step, now: int) -> None:
        """Whoever gets a chunk lacks that many tokens, is no member of the decoding set, and is not cut by padding."""
        if not 1 <= tokens <= request.lacking or request.decoding:
            self.complain(f"planned a chunk of {tokens} tokens for request {request.index}, which lacks "
                          f"{request.lacking}{' and decodes' * request.decoding}", now)
        if 0 < (width := step.pad_chunks_to or step.pad_to) < tokens:
            self.complain(f"pads to {width} tokens, but request {request.index} computes {tokens}", now)

    def refuse_room(self, end: int, now: int) -> NoReturn:
        """The clock leaves its 64 bits, or somebody holds memory that is not there."""
        if end > LATEST:
            raise InputError("the simulated time passes 146 years: check the cost model and the arrivals")
        self.complain("holds more memory than there is, or gave back more than it took", now)

    def check_wait(self, decision: Any, waits: int, now: int) -> None:
        """What is neither a step nor None is a wait that ends later; it does not come for ever, once nobody will."""
        if not isinstance(decision, Wait):
            self.complain(f"plan must return a Step, a Wait or None, not {decision!r}", now)
        if not isinstance(decision.until, int):
            self.complain(f"waits until {decision.until!r}, no whole number of nanoseconds", now)
        if self._queue.closed and not self._queue.running and waits > MOST_WAITS:
            self.complain("waits again and again, although no request will follow", now)
        if decision.until <= now:
            self.complain(f"waits until {decision.until} ns, which is not later", now)

    def blame(self, error: Exception, now: int) -> NoReturn:
        """What goes wrong with the step of a policy of somebody's own is that policy's fault."""
        if isinstance(error, InputError) or type(self._policy).__module__.startswith("simulator."):
            raise error
        self.complain(f"gave a step that cannot be run ({type(error).__name__}: {error})", now)
