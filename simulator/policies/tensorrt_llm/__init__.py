"""TensorRT-LLM's scheduler: in-flight batching in two stages, a capacity scheduler and a micro-batch scheduler.

Mirrors: TensorRT-LLM as published in 2025 and 2026, its capacityScheduler, microBatchScheduler and kvCacheManager, one
attention window, beam width 1. Read `active`, `capacity`, `micro_batch`, then this.

Who is active stands in one list, in the order of arrival. The first stage says who fits, by the KV cache; the second
says who of these computes in this step, by the tokens. Contexts and generating requests share one forward pass.
A paused request loses its blocks, computes prompt and output again as one context, and keeps its place in the list.

The pool: the engine takes `free_gpu_memory_fraction`, 0.9, of the memory that weights and activations leave free, not
of all of it. Here the pool comes with the deployment, the same for every policy. A fraction f of the free memory is
the utilization f + (1 - f) * (weights + reserve) / device bytes of `--gpu-memory-utilization`: for an 8B model in bf16
on 80 GB f = 0.9 is 0.92.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, cast

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.ahead import PagedAhead
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.policies.base import Policy, at_most, flag, one_of, positive
from simulator.policies.tensorrt_llm.active import Active
from simulator.policies.tensorrt_llm.capacity import RULES
from simulator.policies.tensorrt_llm.micro_batch import CHUNKING, Limits, micro_batch
from simulator.request import Request
from simulator.step import Queue, Step

LARGEST_BLOCK = 1 << 20


@dataclass
class TensorRtLlm(Policy):
    """TensorRT-LLM.

    Attributes:
        max_batch_size: Most requests served at once, in both stages.
        max_num_tokens: Most tokens of a step.
        tokens_per_block: Tokens a block of KV cache; a chunk of a context is a multiple of it unless it is the last.
        capacity_scheduler_policy: "GUARANTEED_NO_EVICT" starts only who finds room for all its declared output;
            "MAX_UTILIZATION" looks at the next step alone, and pauses; "STATIC_BATCH" is the first, but starts nobody
            while anybody generates; "MAX_REQUESTS" runs without a KV cache manager, so its pool has no bound.
        enable_chunked_prefill: A context may be computed in several steps. If not, longer prompts than max_num_tokens
            are refused, and a paused request comes back with so many tokens at most: it makes the others again.
        context_chunking_policy: "FIRST_COME_FIRST_SERVED" or "EQUAL_PROGRESS".
        two_step_look_ahead: MAX_UTILIZATION looks for blocks for the next two tokens of those who generate, as the
            engine does where steps overlap.
    """

    name: ClassVar[str] = "tensorrt_llm"
    version: ClassVar[str] = "TensorRT-LLM, sources of 2025-2026 (in-flight batching)"
    evidence: ClassVar[str] = "transcribed"
    left_out: ClassVar[tuple[str, ...]] = (
        "block reuse, and with it the wait for a prefix that another context computes", "free_gpu_memory_fraction",
        "several micro-batches in flight and the overlap scheduler", "PREFILL_FIRST", "FORCE_CHUNK",
        "batch_wait_timeout_ms, batch_wait_timeout_iters and batch_wait_max_tokens_ratio", "request priorities",
        "a max_input_len below max_num_tokens", "attention windows, beams, draft tokens, LoRA and encoders")
    steady: ClassVar[bool] = True

    max_batch_size: int = 2048
    max_num_tokens: int = 8192
    tokens_per_block: int = 32
    capacity_scheduler_policy: str = "GUARANTEED_NO_EVICT"
    enable_chunked_prefill: bool = False
    context_chunking_policy: str = "FIRST_COME_FIRST_SERVED"
    two_step_look_ahead: bool = False
    # Of the latest step, each in the engine's order:
    fitting: list[Request] = field(default_factory=list, init=False, repr=False)    # contexts that the KV cache lets in
    contexts: list[Request] = field(default_factory=list, init=False, repr=False)    # those of them that compute
    pushed_out: list[Request] = field(default_factory=list, init=False, repr=False)    # who generates, but not now

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_batch_size", "max_num_tokens", "tokens_per_block")
        at_most(self, "tokens_per_block", LARGEST_BLOCK)
        one_of(self, "capacity_scheduler_policy", tuple(RULES))
        one_of(self, "context_chunking_policy", tuple(CHUNKING))
        flag(self, "enable_chunked_prefill", "two_step_look_ahead")
        if self.enable_chunked_prefill and self.max_num_tokens < self.tokens_per_block:
            raise InputError(f"tensorrt_llm: max_num_tokens ({self.max_num_tokens}) must be at least tokens_per_block "
                             f"({self.tokens_per_block}), the unit of a chunk, when enable_chunked_prefill is true")

    @property
    def evicts(self) -> bool:
        """Whether requests may be paused."""
        return self.capacity_scheduler_policy == "MAX_UTILIZATION"

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        tokens = deployment.kv_capacity_tokens
        blocks = UNLIMITED if self.capacity_scheduler_policy == "MAX_REQUESTS" else tokens // self.tokens_per_block
        return PagedAhead(blocks, self.tokens_per_block, declared=not self.evicts, ahead=int(self.two_step_look_ahead))

    @property
    def longest_prompt(self) -> int:
        return UNLIMITED if self.enable_chunked_prefill else self.max_num_tokens

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_batch_size=slots, max_num_tokens=UNLIMITED)

    def place(self, request: Request) -> Any:
        """Where a request stands in the list of active ones, from its arrival to its end."""
        return request.arrival, request.index

    def urgency(self) -> Callable[[Request], Any] | None:
        return self.place

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step, memory = Step(), cast(PagedAhead, memory)
        active = Active(queue, memory, self.place, self.max_batch_size, 1 + self.two_step_look_ahead,
                        self.longest_prompt)
        self.fitting = RULES[self.capacity_scheduler_policy](active, step)
        if step.preempted:
            for victim in step.preempted:
                queue.preempt(victim, memory)
            active = replace(active)
        chunks, self.pushed_out = micro_batch(active, self.fitting, self._limits())
        self.contexts = [request for request, _ in chunks]
        self._run(active, step, chunks)
        return step if queue.running or step.preempted else None

    def _limits(self) -> Limits:
        chunking = CHUNKING[self.context_chunking_policy] if self.enable_chunked_prefill else None
        in_list_order = self.capacity_scheduler_policy in ("MAX_UTILIZATION", "MAX_REQUESTS")
        return Limits(self.max_num_tokens, chunking, self.tokens_per_block, in_list_order)

    def _run(self, active: Active, step: Step, chunks: list[tuple[Request, int]]) -> None:
        """Take the room of a whole context with its first chunk, and the next token's for all who generate."""
        queue, memory = active.queue, active.memory
        for request in active.in_order(self.contexts):
            if request.order is None:
                assert memory.grow(request, active.context(request))
                queue.admit(request)
        late = [(request, 1) for request in active.late if request not in self.pushed_out]
        queue.sit_out([request for request in self.pushed_out if request.decoding])
        assert memory.take(queue.decoding, late)
        step.chunks = sorted(chunks + late, key=lambda chunk: chunk[0].order or 0)
        if len(chunks) < len(self.fitting) or self.pushed_out:
            self._short_of_tokens(step)
        step.fickle |= self.evicts and self.two_step_look_ahead

    def _short_of_tokens(self, step: Step) -> None:
        """Somebody fits and gets no token. Whole contexts that wait behind each other without eviction are steady.

        A context under way finds its unit: those that ended since took a token each, as they generate now. So it is
        the head of the queue that gets none, for who fits is a beginning of the queue.
        """
        step.fickle = self.enable_chunked_prefill or self.evicts
        step.blocked = "budget"
