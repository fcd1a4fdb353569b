"""vLLM's first scheduler (V0): prompts first and alone, then decodes; preemption by swap to the host or by recompute.

Mirrors: vLLM before its V1 engine, default settings without chunked prefill. Evidence: general knowledge, not a
recording: it is here for comparison with tools that model it. Use `vllm` for what runs today.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.paged import Paged
from simulator.policies.base import Policy, one_of, positive
from simulator.request import Request
from simulator.step import Queue, Step


@dataclass
class Vllm0(Policy):
    """vLLM V0: prefill first, 1% watermark.

    Attributes:
        max_num_seqs: Most running requests.
        max_num_batched_tokens: Prompt tokens a step; default the larger of the model length and 2048.
        block_size: Tokens a block.
        watermark: Share of the blocks that an admission leaves free.
        preemption_mode: "recompute": KV is thrown away; "swap": it moves to the host and comes back.
        swap_bandwidth: Bytes a second between GPU and host; moving delays the step.
        kv_bytes_per_token: Bytes of KV cache that a token takes; default the model's.
    """

    name: ClassVar[str] = "vllm-0"
    version: ClassVar[str] = "vLLM before V1 (V0 scheduler, no chunked prefill)"
    evidence: ClassVar[str] = "general knowledge"
    left_out: ClassVar[tuple[str, ...]] = ("prefix caching", "chunked prefill", "beam search",
                                           "the spare block that V0 asks for before it appends a token",
                                           "a bound on the host's swap space")
    steady: ClassVar[bool] = True

    max_num_seqs: int | None = 256
    max_num_batched_tokens: int | None = None
    block_size: int = 16
    watermark: float = 0.01
    preemption_mode: str = "recompute"
    swap_bandwidth: float = 25e9
    kv_bytes_per_token: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_bytes_per_token")
        one_of(self, "preemption_mode", ("recompute", "swap"))
        if not isinstance(self.watermark, int | float) or not 0 <= self.watermark < 1:
            raise InputError(f"vllm-0: watermark must be at least 0 and below 1, not {self.watermark!r}")
        if not isinstance(self.swap_bandwidth, int | float) or not self.swap_bandwidth > 0:
            raise InputError(f"vllm-0: swap_bandwidth must be above 0 bytes a second, not {self.swap_bandwidth!r}")

    def resolve(self, deployment: Deployment) -> Self:
        tokens = self.max_num_batched_tokens or max(deployment.max_model_len, 2048)
        if tokens < deployment.longest_exact - 1:
            raise InputError(f"vllm-0: max_num_batched_tokens ({tokens}) must hold the longest request with what it "
                             f"generates ({deployment.longest_exact} tokens), for it is never chunked: raise it")
        return replace(self, max_num_seqs=self.max_num_seqs or UNLIMITED, max_num_batched_tokens=tokens,
                       kv_bytes_per_token=self.kv_bytes_per_token or deployment.kv_bytes_per_token)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        blocks = deployment.kv_capacity_tokens // self.block_size
        return Paged(blocks, self.block_size, largest=blocks - int(self.watermark * blocks))

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        step = Step()
        if not queue.swapped:
            self._prefill(queue, memory, step)
        if step.chunks:
            step.decodes = False    # prompts run alone
            return step
        self._decode(queue, memory, step)
        return step if queue.running or step.preempted else None

    def _spare(self, memory: Memory) -> int:
        return int(self.watermark * memory.capacity)

    def _prefill(self, queue: Queue, memory: Memory, step: Step) -> None:
        """Whole prompts from the head of the queue, as long as slots, tokens and memory last."""
        budget = self.max_num_batched_tokens or UNLIMITED
        while queue.waiting:
            head = queue.waiting[0]
            if len(queue.running) >= self.slots:
                step.blocked = "cap"
            elif head.known > budget:
                step.blocked = "budget"
            elif memory.demand(head, head.known) + self._spare(memory) > memory.free:
                step.blocked = memory.shortage
            if step.blocked:
                return
            memory.grow(queue.admit(), head.known)
            step.chunks.append((head, head.known))
            budget -= head.known

    def _decode(self, queue: Queue, memory: Memory, step: Step) -> None:
        """One token for everybody; while that does not fit, the youngest goes. Only then do the swapped come back."""
        while not memory.take(queue.decoding, ()):
            step.drop(self._preempt(queue, memory, step))
        while queue.swapped and not step.preempted:    # there are slots, for nobody enters while any are swapped out
            head = queue.swapped[0]
            if memory.demand(head, head.stashed + 1) + self._spare(memory) > memory.free:
                return
            self._move(step, head.stashed)
            memory.grow(queue.swap_in(), head.known)
            head.unstash()
            step.chunks.append((head, head.lacking))

    def _preempt(self, queue: Queue, memory: Memory, step: Step) -> Request:
        victim = queue.youngest
        if self.preemption_mode == "recompute":
            return queue.preempt(victim, memory)
        self._move(step, victim.computed)
        return queue.swap_out(victim, memory)

    def _move(self, step: Step, tokens: int) -> None:
        """KV that moves between GPU and host delays the step."""
        step.delay += round(tokens * (self.kv_bytes_per_token or 0) / self.swap_bandwidth * 1e9)
