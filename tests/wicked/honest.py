"""An honest policy for the wicked ones to spoil: first come, first served, whole prompts, paged memory."""

from __future__ import annotations

from typing import Any, ClassVar

from simulator.memory import Memory
from simulator.policies import Policy
from simulator.step import Queue, Step, Wait


class Honest(Policy):
    """Breaks nothing.

    Class attributes:
        told: What a subclass is told when it breaks the contract, up to the state of the replica.
    """

    told: ClassVar[str] = ""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        step = Step([(request, request.lacking) for request in queue.catching_up.values()])
        while not memory.take(queue.decoding, step.chunks):
            step.drop(queue.preempt(queue.youngest, memory))
        while queue.waiting and not step.preempted and memory.grow(queue.waiting[0], queue.waiting[0].known):
            step.chunks.append((queue.admit(), queue.youngest.lacking))
        return step if queue.running or step.preempted else None


class Spoiled(Honest):
    """Plans as Honest does, and then something else."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Any:
        step = super().plan(queue, memory, now)
        return step if step is None else self.spoil(step, queue, memory, now)

    def spoil(self, step: Any, queue: Queue, memory: Memory, now: int) -> Any:
        """What is answered in place of an honest step."""
        return step
