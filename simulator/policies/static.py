"""Static (request-level) batching: nobody enters a batch after it has started, nobody leaves before its last token.

Mirrors: the textbook batcher in front of Hugging Face `generate` or FasterTransformer. It takes up to
``max_batch_size`` requests from the queue, prefills their prompts in one step, then decodes until the longest of
them is done; all answers return together. A request that has finished keeps its slot and its memory until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.contiguous import RESERVES, Contiguous, Reserve, reservation
from simulator.memory.spaces import SPACES
from simulator.policies.base import Policy, at_most, flag, one_of, positive
from simulator.request import Request
from simulator.step import Obstacle, Queue, Step, Wait


@dataclass
class StaticBatching(Policy):
    """Batches of `max_batch_size` requests that start and end together.

    Attributes:
        max_batch_size: Requests a batch; default min(32, KV pool // longest reservation of the trace).
        reserve: Memory a request reserves: "model" length, prompt + "declared" output, or prompt + "exact" output.
        padded: Prompts and contexts are padded to the longest of the batch, and finished rows still compute.
        run_to: Output tokens that every batch runs to, however short its answers are; finished rows still compute.
        max_wait: Milliseconds that the oldest request waits for a full batch; 0 takes what is there, inf waits for
            a full one. A replica that is told that no request will follow starts the last batch as it is.
        placement: How a reservation finds its place: "first-fit" or "buddy".
    """

    name: ClassVar[str] = "static"
    version: ClassVar[str] = "textbook request-level batching"
    evidence: ClassVar[str] = "textbook"
    left_out: ClassVar[tuple[str, ...]] = ("batches of mixed priority", "beam search", "early stop of a whole batch")
    steady: ClassVar[bool] = True
    streams: ClassVar[bool] = False
    unit: ClassVar[str] = "one batch, start to end"

    max_batch_size: int | None = None
    reserve: Reserve = "declared"
    padded: bool = False
    run_to: int | None = None
    max_wait: float = 0.0
    placement: str = "first-fit"
    _ran_on: bool = field(default=False, init=False, repr=False)
    _kept_out: Obstacle = field(default="batch", init=False, repr=False)    # why the batch is no larger

    def __post_init__(self) -> None:
        positive(self, "max_batch_size", "run_to")
        one_of(self, "reserve", RESERVES)
        one_of(self, "placement", tuple(SPACES))
        flag(self, "padded")
        if not (isinstance(self.max_wait, int | float) and self.max_wait >= 0):
            raise InputError(f"static: max_wait must be at least 0 milliseconds, not {self.max_wait!r}")

    def resolve(self, deployment: Deployment) -> Self:
        longest = {"model": deployment.max_model_len, "declared": deployment.longest_declared,
                   "exact": deployment.longest_exact}[self.reserve]
        bounded = deployment.kv_capacity_tokens < UNLIMITED
        size = self.max_batch_size or (min(32, max(1, deployment.kv_capacity_tokens // longest)) if bounded else 32)
        at_most(self, "run_to", deployment.max_model_len)
        if self.max_wait == inf and deployment.max_concurrency < size:
            raise InputError(f"static: with max_wait=inf, {deployment.max_concurrency} outstanding requests never fill "
                             f"a batch of {size}: raise max_concurrency, or lower max_batch_size or max_wait")
        return replace(self, max_batch_size=size)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        model_len, rule = deployment.max_model_len, self.reserve

        def size_of(request: Request) -> int:
            if rule == "model":
                return model_len
            return request.prompt + (request.max_tokens if rule == "declared" else int(outputs[request.index]))

        def sizes(prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
            return reservation(rule, model_len, prompt, output, max_tokens)

        return Contiguous(deployment.kv_capacity_tokens, size_of, sizes, self.placement)

    @property
    def slots(self) -> int:
        return self.max_batch_size or UNLIMITED

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_batch_size=slots, padded=False, run_to=None)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        if queue.running:
            return self._decode(queue)
        if not queue.waiting:
            return None
        if len(queue.waiting) >= self.slots or queue.closed:
            return self._start(queue, memory)
        if self.max_wait == inf:
            return None
        due = queue.waiting[0].arrival + ceil(self.max_wait * 1_000_000)
        return Wait(due) if now < due else self._start(queue, memory)

    def _start(self, queue: Queue, memory: Memory) -> Step:
        """Take a batch from the queue, in order, and prefill it in one step."""
        step, self._kept_out, self._ran_on = Step(), "batch", False
        while queue.waiting and len(step.chunks) < self.slots:
            head = queue.waiting[0]
            if not memory.grow(head, head.prompt):
                self._kept_out = memory.shortage
                break
            step.chunks.append((queue.admit(), head.prompt))
        if self.padded:
            step.pad_to = max(tokens for _, tokens in step.chunks)
        step.blocked = self._kept_out
        return step

    def _decode(self, queue: Queue) -> Step:
        """One token for everybody who is not done; what else the batch computes is padding."""
        step = Step(blocked=self._kept_out)
        batch = queue.running.values()
        emitted = max(request.generated for request in batch)
        if not queue.decoding.size:    # all are done, and the batch runs on
            assert self.run_to is not None
            step.times, self._ran_on = self.run_to - emitted, True
        if self.padded or self.run_to:
            step.spent = len(queue.held)
            step.spent_context = sum(request.prompt + emitted - 1 for request in queue.held.values())
        if self.padded:
            step.pad_to = max(request.prompt for request in batch) + emitted - 1
        return step

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        """Nobody, until the batch has run to its end: then all of it."""
        if queue.decoding.size or queue.catching_up:
            return []
        batch = list(queue.running.values())
        if self.run_to and not self._ran_on and max(request.generated for request in batch) < self.run_to:
            return []
        return batch
