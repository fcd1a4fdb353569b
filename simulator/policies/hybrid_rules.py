"""The rules between static batching and vLLM: what `hybrid` runs where neither of the two is asked as it is.

Each is one of them with one habit changed. `PagedBatches` is static batching that asks for blocks, `ReservedSteps` is
vLLM over reservations, `PromptsAlone` is vLLM that keeps prompts and decodes apart, and `pad` makes rectangles of the
steps of any of them. Which rule goes with which switches is the business of `hybrid`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.memory.base import UNLIMITED, Memory
from simulator.policies.static import StaticBatching
from simulator.policies.vllm import Vllm
from simulator.request import Request
from simulator.step import Queue, Step, Wait


@dataclass
class PagedBatches(StaticBatching):
    """Static batches over paged memory.

    Whoever finds blocks for its prompt enters the batch when it starts. Who has finished gives up its blocks at once,
    and its slot with the batch. Where the others run out of blocks, the youngest goes back to the head of the queue:
    it leads the next batch, and computes again what it had.
    """

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        preempted = list(self._make_room(queue, memory))
        step = super().plan(queue, memory, now)
        if isinstance(step, Step):
            step.preempted += preempted
        return step

    def _make_room(self, queue: Queue, memory: Memory) -> Iterator[Request]:
        """See that everybody who is not done finds room for a token; tells who had to go."""
        for request in queue.held.values():
            queue.strip(request, memory)
        while not memory.take(queue.decoding, ()):
            yield queue.preempt(_youngest(queue), memory)


def _youngest(queue: Queue) -> Request:
    """The latest admission among those who are not done."""
    return next(request for order, request in reversed(queue.running.items()) if order not in queue.held)


@dataclass
class ReservedSteps(Vllm):
    """vLLM's steps over reserved memory: who finds no place for all it may need stays out, and nobody is preempted."""

    def _enters(self, head: Request, tokens: int, known: int, memory: Memory, others_run: bool) -> bool:
        return memory.grow(head, tokens)


@dataclass
class PromptsAlone(Vllm):
    """vLLM that reads whole prompts in a step of their own, as soon as they may enter; meanwhile nobody decodes."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step()
        self._admit(queue, memory, step, UNLIMITED, UNLIMITED)
        if step.chunks:
            step.decodes = False
            return step
        self._serve_running(queue, memory, step, UNLIMITED)
        return step if queue.running or step.preempted else None


@dataclass
class ReservedPromptsAlone(ReservedSteps, PromptsAlone):
    """Both habits."""


def pad(step: Step, queue: Queue) -> Step:
    """Make rectangles of a step: chunks are as wide as its longest chunk, contexts as its longest context."""
    late = [request for request, tokens in step.chunks if tokens == request.lacking == 1 and request.generated]
    contexts = [request.computed for request in late]
    if step.decodes:
        contexts += [request.prompt + generated - 1 for request, generated in queue.decoders()]
    step.pad_chunks_to = max((tokens for _, tokens in step.chunks), default=0)
    step.pad_to = max(contexts, default=step.pad_chunks_to)
    return step
