"""The contract between a replica and its policy, and the words when a policy breaks it. It runs nothing."""

from __future__ import annotations

from typing import Any, NoReturn

from simpy import Environment

from cost_models import CostModelError
from simulator.errors import InputError, PolicyError
from simulator.memory.base import Memory
from simulator.policies.base import Policy
from simulator.policies.own import is_own, told, where
from simulator.recorder import Recorder
from simulator.request import Request
from simulator.standing import standing
from simulator.step import Queue, Step, Wait

LATEST = 1 << 62
"""The clock counts nanoseconds in 64 bits."""


class Contract:
    """What a policy must keep. Each check raises PolicyError with the policy, the step and the state of the replica."""

    def __init__(self, env: Environment, policy: Policy, queue: Queue, memory: Memory, record: Recorder) -> None:
        self._env, self._policy, self._queue, self._memory, self._record = env, policy, queue, memory, record

    def complain(self, what: str) -> NoReturn:
        """The policy did something that it may not do."""
        raise PolicyError(self._line(what))

    def _line(self, what: str) -> str:
        return (f"{self._policy.name}: {what}, in step {len(self._record.ends)} at {self._env.now} ns "
                f"({standing(self._queue, self._memory)})")

    def check_chunk(self, request: Request, tokens: int, step: Step) -> None:
        """Whoever gets a chunk lacks that many tokens, is no member of the decoding set, and is not cut by padding."""
        if not 1 <= tokens <= request.lacking or request.decoding:
            self.complain(f"planned a chunk of {tokens} tokens for request {request.index}, which lacks "
                          f"{request.lacking}{' and decodes' * request.decoding}")
        if 0 < (width := step.pad_chunks_to or step.pad_to) < tokens:
            self.complain(f"pads to {width} tokens, but request {request.index} computes {tokens}")

    def refuse_room(self, end: int) -> NoReturn:
        """The clock leaves its 64 bits, or somebody holds memory that is not there."""
        if end > LATEST:
            raise InputError("the simulated time passes 146 years: check the cost model and the arrivals")
        self.complain("holds more memory than there is, or gave back more than it took")

    def check_wait(self, decision: Any) -> None:
        """What is neither a step nor None is a wait that ends later, while the clock still runs."""
        if not isinstance(decision, Wait):
            self.complain(f"plan must return a Step, a Wait or None, not {decision!r}")
        if type(decision.until) is not int:
            self.complain(f"waits until {decision.until!r}, which is no whole number of nanoseconds: return None to "
                          "sleep until a request arrives")
        now = self._env.now
        if not now < decision.until <= LATEST:
            self.complain(f"waits until {decision.until} ns, which is "
                          f"{'not later' if decision.until <= now else 'after 146 years'}")

    def blame(self, error: Exception, doing: str) -> NoReturn:
        """What goes wrong with the step of a policy of somebody's own is that policy's fault; other errors pass."""
        if isinstance(error, InputError | PolicyError | CostModelError) or not is_own(self._policy):
            raise error
        self.accuse(error, doing)

    def accuse(self, error: Exception, doing: str) -> NoReturn:
        """The policy raised an error."""
        raise PolicyError(self._line(f"{doing} ({told(error)}{where(error, self._policy)})")) from error
