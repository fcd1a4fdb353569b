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
from simulator.memory.base import Lengths, Memory
from simulator.memory.contiguous import RESERVES, Contiguous, Reserve
from simulator.memory.spaces import SPACES
from simulator.policies.base import at_most, flag, one_of, positive
from simulator.policies.whole_batch import WholeBatch, usual_size
from simulator.request import Request
from simulator.step import Queue, Step, Wait


@dataclass
class StaticBatching(WholeBatch):
    """Batches of `max_batch_size` requests that start and end together.

    Attributes:
        max_batch_size: Requests a batch; default min(32, KV pool // longest reservation of the trace).
        reserve: Memory a request reserves: "model" length, prompt + "declared" output, prompt + "exact" output, or
            "pow2": the same with the output rounded up to a power of two.
        padded: Prompts and contexts are padded to the longest of the batch, and finished rows still compute.
        run_to: Output tokens that every batch runs to, however short its answers are; finished rows still compute.
        max_wait: Milliseconds that the oldest request waits for a full batch; 0 takes what is there, inf waits for
            a full one. A replica that is told that no request will follow starts the last batch as it is.
        sleep_per_batch: Milliseconds that the server sleeps before each batch.
        placement: How a reservation finds its place: "first-fit", "buddy", or "counted" where it needs no hole.
    """

    name: ClassVar[str] = "static"
    version: ClassVar[str] = "textbook request-level batching"
    evidence: ClassVar[str] = "textbook"
    left_out: ClassVar[tuple[str, ...]] = ("batches of mixed priority", "beam search", "early stop of a whole batch",
                                           "rows that compute on for a client that has hung up")
    steady: ClassVar[bool] = True

    reserve: Reserve = "declared"
    padded: bool = False
    run_to: int | None = None
    max_wait: float = 0.0
    placement: str = "first-fit"
    sleep_per_batch: float = 0.0
    _ran_on: bool = field(default=False, init=False, repr=False)
    _awake: int | None = field(default=None, init=False, repr=False)    # when the sleep before a batch ends, ns
    _began: dict[int, int] = field(default_factory=dict, init=False, repr=False)    # request -> tokens it began with

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_batch_size", "run_to")
        one_of(self, "reserve", RESERVES)
        one_of(self, "placement", tuple(SPACES))
        flag(self, "padded")
        if not (isinstance(self.max_wait, int | float) and self.max_wait >= 0):
            raise InputError(f"static: max_wait must be at least 0 milliseconds, not {self.max_wait!r}")
        if not (isinstance(self.sleep_per_batch, int | float) and 0 <= self.sleep_per_batch < inf):
            raise InputError(f"static: sleep_per_batch must be a number of at least 0, not {self.sleep_per_batch!r}")

    def resolve(self, deployment: Deployment) -> Self:
        size = self.max_batch_size or usual_size(deployment, self.reserve)
        at_most(self, "run_to", deployment.max_model_len)
        if self.max_wait == inf and deployment.max_concurrency < size:
            raise InputError(f"static: with max_wait=inf, {deployment.max_concurrency} outstanding requests never fill "
                             f"a batch of {size}: raise max_concurrency, or lower max_batch_size or max_wait")
        return replace(self, max_batch_size=size)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        return Contiguous.reserving(self.reserve, deployment.kv_capacity_tokens, deployment.max_model_len, outputs,
                                    self.placement)

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_batch_size=slots, padded=False, run_to=None)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait | None:
        if queue.running:
            return self.go_on(queue)
        if len(queue.waiting) < self.slots and not queue.closed:
            if self.max_wait == inf:
                return None
            due = queue.waiting[0].arrival + ceil(self.max_wait * 1_000_000)
            if now < due:
                return Wait(due)
        return self._sleep(now) or self.start(queue, memory, self.slots)

    def _sleep(self, now: int) -> Wait | None:
        """What is left of the sleep before a batch; None if the batch may start."""
        if self.sleep_per_batch and self._awake is None:
            self._awake = now + ceil(self.sleep_per_batch * 1_000_000)
        if self._awake is not None and now < self._awake:
            return Wait(self._awake)
        self._awake = None
        return None

    def start(self, queue: Queue, memory: Memory, size: int) -> Step:
        step, self._ran_on = super().start(queue, memory, size), False
        self._began = {request.index: request.known for request, _ in step.chunks}
        if self.padded:
            step.pad_to = max(tokens for _, tokens in step.chunks)
        return step

    def go_on(self, queue: Queue) -> Step:
        """One token for everybody who is not done; what else the batch computes is padding."""
        step = super().go_on(queue)
        emitted = self._emitted(queue)
        if not queue.decoding.size:    # all are done, and the batch runs on
            assert self.run_to is not None
            step.times, self._ran_on = self.run_to - emitted, True
        if self.padded or self.run_to:
            step.spent = len(queue.held)
            step.spent_context = sum(self._began[request.index] + emitted - 1 for request in queue.held.values())
        if self.padded:
            step.pad_to = max(self._began[request.index] for request in queue.running.values()) + emitted - 1
        return step

    def _emitted(self, queue: Queue) -> int:
        """Tokens that the batch has emitted for each row that is not done."""
        return max(request.known - self._began[request.index] for request in queue.running.values())

    def leaving(self, finished: list[Request], queue: Queue) -> list[Request]:
        """Nobody, until the batch has run to its end: then all of it."""
        batch = super().leaving(finished, queue)
        if self.run_to and batch and not self._ran_on and self._emitted(queue) < self.run_to:
            return []
        return batch
