"""vLLM's scheduler: continuous batching over paged memory, with chunked prefill and preemption by recompute.

Mirrors: vLLM 0.33.0, the synchronous V1 scheduler, one full-attention KV group.
There is no prefill or decode phase: every request catches up the tokens whose KV it lacks, within one token budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.paged import Paged
from simulator.memory.prefix import PrefixCached
from simulator.policies.base import Policy, at_most, flag, not_negative, one_of, positive
from simulator.policies.vllm_priority import by_priority, serve_by_urgency
from simulator.request import Request
from simulator.step import Queue, Step

GIB = 1 << 30
LARGEST_BLOCK = 1 << 20


@dataclass
class Vllm(Policy):
    """vLLM 0.33.0.

    Attributes:
        max_num_seqs: Most running requests; default 1024 on GPUs of 70 GiB and more but the A100, 256 elsewhere.
        max_num_batched_tokens: Tokens a step; default of the API server: 8192 on those GPUs (16384 from 160 GiB),
            2048 elsewhere.
        block_size: Tokens a block.
        enable_chunked_prefill: A prompt may be computed in several steps.
        enable_prefix_caching: Full blocks keep their KV after they are freed, for whoever has the same prefix.
        long_prefill_token_threshold: Longest chunk of one request while it is not alone; 0: no limit.
        scheduler_reserve_full_isl: Admit only who finds room for all tokens known, not only for the first chunk.
        watermark: Share of the blocks that an admission leaves free while others run.
        scheduling_policy: "fcfs" or "priority": who waits and who is preempted is then a matter of (priority, arrival).
        max_model_len: Longest prompt plus output, in tokens; default the model's.
    """

    name: ClassVar[str] = "vllm"
    version: ClassVar[str] = "vLLM 0.33.0 (V1 scheduler, synchronous)"
    evidence: ClassVar[str] = "recorded"
    left_out: ClassVar[tuple[str, ...]] = ("speculative decoding", "asynchronous scheduling",
                                           "LoRA and encoder budgets", "several KV groups")
    steady: ClassVar[bool] = True

    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    block_size: int = 16
    enable_chunked_prefill: bool = True
    enable_prefix_caching: bool = True
    long_prefill_token_threshold: int = 0
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    scheduling_policy: str = "fcfs"
    max_model_len: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_num_seqs", "max_num_batched_tokens", "block_size", "max_model_len")
        at_most(self, "block_size", LARGEST_BLOCK)
        flag(self, "enable_chunked_prefill", "enable_prefix_caching", "scheduler_reserve_full_isl")
        one_of(self, "scheduling_policy", ("fcfs", "priority"))
        not_negative(self, "long_prefill_token_threshold")
        if not isinstance(self.watermark, int | float) or not 0 <= self.watermark < 1:
            raise InputError(f"vllm: watermark must be at least 0 and below 1, not {self.watermark!r}")

    def resolve(self, deployment: Deployment) -> Self:
        large = deployment.gpu_bytes >= 70 * GIB and not deployment.gpu.startswith("a100")
        model_len = self.max_model_len or deployment.max_model_len
        seqs = self.max_num_seqs or (1024 if large else 256)
        tokens = self.max_num_batched_tokens
        if tokens is None:
            usual = 16384 if deployment.gpu_bytes >= 160 * GIB else 8192 if large else 2048
            tokens = min(max(usual, 1 if self.enable_chunked_prefill else model_len), seqs * model_len)
        if self.max_num_seqs is None:
            seqs = min(seqs, tokens)
        self._refuse_too_small_a_budget(seqs, tokens, model_len)
        return replace(self, max_num_seqs=seqs, max_num_batched_tokens=tokens, max_model_len=model_len)

    def _refuse_too_small_a_budget(self, seqs: int, tokens: int, model_len: int) -> None:
        if tokens < seqs < UNLIMITED:
            raise InputError(f"vllm: max_num_batched_tokens ({tokens}) must be at least max_num_seqs ({seqs}): "
                             "raise the one or lower the other")
        if not self.enable_chunked_prefill and tokens < model_len:
            raise InputError(f"vllm: max_num_batched_tokens ({tokens}) must be at least max_model_len ({model_len}) "
                             "when enable_chunked_prefill is false: raise it, or lower --max-model-len")

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        blocks = deployment.kv_capacity_tokens // self.block_size
        kind = PrefixCached if self.enable_prefix_caching else Paged
        return kind(max(0, blocks - 1), self.block_size)    # block 0 is the engine's null block

    @property
    def slots(self) -> int:
        return self.max_num_seqs or UNLIMITED

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_num_seqs=slots, max_num_batched_tokens=UNLIMITED)

    def urgency(self) -> Callable[[Request], Any] | None:
        return by_priority if self.scheduling_policy == "priority" else None

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step()
        longest = self.long_prefill_token_threshold
        if not longest or len(queue) == 1:
            longest = UNLIMITED
        budget = self._serve_running(queue, memory, step, longest)
        if not step.preempted:
            self._admit(queue, memory, step, budget, longest)
        return step if queue.running or step.preempted else None

    def _serve_running(self, queue: Queue, memory: Memory, step: Step, longest: int) -> int:
        """Everyone running wants the tokens it lacks; the oldest is served first. Returns the budget left."""
        assert self.max_num_batched_tokens is not None
        budget = self.max_num_batched_tokens - queue.decoding.size
        for request in queue.catching_up.values():
            tokens = min(request.lacking, longest)
            step.chunks.append((request, tokens))
            budget -= tokens
        if self.scheduling_policy == "priority":
            if budget < 0 or not memory.take(queue.decoding, step.chunks):
                budget = serve_by_urgency(queue, memory, step, self.max_num_batched_tokens, longest)
            return budget
        if budget < 0:
            queue.trim(step, -budget)
        if not memory.take(queue.decoding, step.chunks):
            self._preempt_youngest(queue, memory, step)
        return max(0, budget)

    def _preempt_youngest(self, queue: Queue, memory: Memory, step: Step) -> None:
        """The youngest go back to the queue until there is room for the others.

        The others take their blocks as soon as enough have come back: that is the order of free blocks in the engine.
        """
        assert isinstance(memory, Paged)
        victims: list[Request] = []
        while not victims or memory.need(queue.decoding, step.chunks) > memory.free + memory.would_free(victims):
            victims.append(queue.stop(queue.youngest))
            step.drop(victims[-1])
        served = memory.take(queue.decoding, step.chunks)
        for victim in victims:
            queue.send_back(victim, memory)
            served = served or memory.take(queue.decoding, step.chunks)

    def _admit(self, queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> None:
        """The queue is looked at in order; the first that does not fit stops it."""
        waiting, running, most = queue.waiting, queue.running, self.max_num_seqs
        assert most is not None
        while waiting:
            if len(running) >= most:
                step.blocked = "cap"
                return
            head = waiting[0]
            known, cached = head.known, memory.cached(head)
            tokens = min(known - cached, longest)
            if budget <= 0 or (tokens > budget and not self.enable_chunked_prefill):
                step.blocked = "budget"
                return
            tokens = min(tokens, budget)
            if not self._enters(head, tokens, known if self.scheduler_reserve_full_isl else cached + tokens, memory,
                                bool(running)):
                step.blocked = memory.shortage
                return
            step.chunks.append((queue.admit(), tokens))
            budget -= tokens

    def _enters(self, head: Request, tokens: int, known: int, memory: Memory, others_run: bool) -> bool:
        """Make room for the head's next `tokens` if there is a place for its first `known`; False if there is none."""
        spare = int(self.watermark * (memory.capacity + 1)) if self.watermark and others_run else 0
        return memory.demand(head, known) + spare <= memory.free and memory.grow(head, tokens)
