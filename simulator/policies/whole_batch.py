"""Whole batches: what request-level policies share. Nobody enters a batch after its start, and all leave with the last.

It says how a batch starts, goes on and ends; when one starts and how large it is, is the policy's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from simulator.deployment import Deployment
from simulator.memory.base import UNLIMITED, Memory
from simulator.memory.contiguous import Reserve
from simulator.policies.base import Policy
from simulator.request import Request
from simulator.step import Obstacle, Queue, Step

USUAL = 32
"""Requests a batch, where memory has room for them and nobody says otherwise."""


@dataclass
class WholeBatch(Policy):
    """A batch is prefilled in one step and decodes until the longest answer is done; all answers return together.

    Attributes:
        max_batch_size: Most requests a batch; None means the default.
    """

    streams: ClassVar[bool] = False
    unit: ClassVar[str] = "one batch, start to end"

    max_batch_size: int | None = None
    _kept_out: Obstacle = field(default="batch", init=False, repr=False)    # why the batch is no larger

    @property
    def slots(self) -> int:
        return self.max_batch_size or UNLIMITED

    def start(self, queue: Queue, memory: Memory, size: int) -> Step:
        """Take up to `size` requests from the queue, in order, and prefill their prompts."""
        step, self._kept_out = Step(), "batch"
        while queue.waiting and len(step.chunks) < size:
            head = queue.waiting[0]
            if not memory.grow(head, head.known - memory.cached(head)):
                self._kept_out = memory.shortage
                break
            step.chunks.append((queue.admit(), head.lacking))
        step.blocked = self._kept_out
        return step

    def go_on(self, queue: Queue) -> Step:
        """One token for everybody who is not done."""
        return Step(blocked=self._kept_out)

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        """Nobody, until the last one is done: then the whole batch."""
        return [] if queue.decoding.size or queue.catching_up else list(queue.running.values())


def usual_size(deployment: Deployment, reserve: Reserve) -> int:
    """The default size of a batch: as many of the longest reservation as memory holds, and no more than 32."""
    longest = {"model": deployment.max_model_len, "declared": deployment.longest_declared,
               "exact": deployment.longest_exact,
               "pow2": min(deployment.longest_exact + deployment.longest_output, deployment.max_model_len)}[reserve]
    if deployment.kv_capacity_tokens >= UNLIMITED:
        return USUAL
    return min(USUAL, max(1, deployment.kv_capacity_tokens // longest))
