"""FasterTransformer: request-level batches whose KV cache is laid out for the model's whole length.

Mirrors: the shape of FasterTransformer as Yu et al., Orca, OSDI 2022, section 6.2, describe and measure it. The first
iteration computes every prompt of the batch up to the length of the shortest; from there on each row computes one token
an iteration, whether it is of its prompt or new. The batch goes on until its longest row is done, and returns at once.
A row that is done still takes part in the matrix products, but its attention is skipped (FasterTransformer 5).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.memory.base import Lengths, Memory
from simulator.memory.contiguous import Contiguous
from simulator.policies.base import positive
from simulator.policies.whole_batch import WholeBatch, usual_size
from simulator.step import Queue, Step


@dataclass
class FasterTransformer(WholeBatch):
    """FasterTransformer behind a batcher that takes what is there whenever it is idle.

    Attributes:
        max_batch_size: Requests a batch; default min(32, KV pool // max_model_len).
        max_model_len: Tokens of KV cache laid out for each row; default the model's longest prompt plus output.
    """

    name: ClassVar[str] = "ft"
    version: ClassVar[str] = "FasterTransformer, as measured in Orca (OSDI 2022)"
    evidence: ClassVar[str] = "published"
    left_out: ClassVar[tuple[str, ...]] = ("microbatches over pipeline stages", "beam search")
    steady: ClassVar[bool] = False    # a stretch would let the rows that are done read more KV at each step

    max_model_len: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_batch_size", "max_model_len")

    def resolve(self, deployment: Deployment) -> Self:
        model_len = self.max_model_len or deployment.max_model_len
        size = self.max_batch_size or usual_size(replace(deployment, max_model_len=model_len), "model")
        return replace(self, max_batch_size=size, max_model_len=model_len)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        model_len = self.max_model_len or deployment.max_model_len
        return Contiguous.reserving("model", deployment.kv_capacity_tokens, model_len, outputs, "counted")

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        if queue.running:
            return self.go_on(queue)
        return self.start(queue, memory, self.slots) if queue.waiting else None

    def start(self, queue: Queue, memory: Memory, size: int) -> Step:
        step = super().start(queue, memory, size)
        shortest = min(tokens for _, tokens in step.chunks)
        step.chunks = [(request, shortest) for request, _ in step.chunks]
        return step

    def go_on(self, queue: Queue) -> Step:
        """One token a row, of its prompt or new; rows that are done compute one for nothing."""
        step = super().go_on(queue)
        step.chunks = [(request, 1) for request in queue.catching_up.values()]
        step.spent = len(queue.held)
        return step
