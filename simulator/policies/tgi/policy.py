"""text-generation-inference (TGI): full reservation, so nothing is ever preempted, and a router in front of the model.

Mirrors: TGI 3.x, commit db931fcf, the v3 backend. Its queue and both loops were recorded; its trie is transcribed from
the source, and so are the sums of devices that pad. See `batching`, `chunked` and `whole_prompts` for the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory.base import UNLIMITED, Lengths, Memory
from simulator.memory.prompts import PromptCached
from simulator.memory.reserved import Counted, Reserved
from simulator.policies.base import Policy, flag, positive
from simulator.policies.tgi.chunked import Chunked
from simulator.policies.tgi.whole_prompts import WholePrompts
from simulator.request import Request
from simulator.step import Queue, Step

MOST_PREFILL_TOKENS = 4096
WHOLE_PROMPTS = ("max_batch_size", "waiting_served_ratio", "max_waiting_tokens")
"""Knobs that the engine heeds where prompts are computed whole, and only there."""


@dataclass
class Tgi(Policy):
    """text-generation-inference 3.x.

    Attributes:
        max_concurrent_requests: Requests that the router takes, waiting and running; it refuses more (429). A client
            that saturates keeps below it.
        max_batch_prefill_tokens: Prompt tokens of a forward, decodes included where prompts come in chunks; default
            4096, or max_model_len if that is less.
        max_batch_total_tokens: Tokens of memory; default the KV pool.
        max_input_tokens: Longest prompt; default max_batch_prefill_tokens where prompts are computed whole, else none.
        max_batch_size: Most running requests; ignored where prompts come in chunks.
        waiting_served_ratio: Requests let in at once, over those running, that are worth a prefill; ignored where
            prompts come in chunks. The launcher's default; the router by itself takes 1.2.
        max_waiting_tokens: Decodes after which fewer than that are let in, the prefill counted as one; ignored where
            prompts come in chunks.
        support_chunking: Prompts are computed in chunks, beside decodes; default unless requires_padding.
        prefix_caching: Prompts keep their KV after their request has left; default unless requires_padding.
        block_size: Tokens a block: 1 (flashinfer), 16 (paged), 64 or 256 (flashdecoding).
        requires_padding: The device computes rectangles, and memory has no blocks.
        quirk_phantom_prefix: The engine's fault: who finds memory but no prefill budget goes back to the queue, and its
            prompt counts as cached from then on though nothing of it was computed.
    """

    name: ClassVar[str] = "tgi"
    version: ClassVar[str] = "text-generation-inference 3.x (commit db931fcf, v3 backend)"
    evidence: ClassVar[str] = "recorded"
    left_out: ClassVar[tuple[str, ...]] = (
        "speculative decoding", "sliding windows", "the v2 backend",
        "max_batch_prefill_tokens from FLOPs (4096 is what the launcher falls back to)",
        "the sums of devices that pad between two requests' leaving")
    steady: ClassVar[bool] = True

    max_concurrent_requests: int = 128
    max_batch_prefill_tokens: int | None = None
    max_batch_total_tokens: int | None = None
    max_input_tokens: int | None = None
    max_batch_size: int | None = None
    waiting_served_ratio: float = 0.3
    max_waiting_tokens: int = 20
    support_chunking: bool | None = None
    prefix_caching: bool | None = None
    block_size: int = 1
    requires_padding: bool = False
    quirk_phantom_prefix: bool = False
    _loop: Chunked | WholePrompts | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "max_concurrent_requests", "max_batch_prefill_tokens", "max_batch_total_tokens",
                 "max_input_tokens", "max_batch_size", "max_waiting_tokens", "block_size")
        flag(self, "requires_padding", "quirk_phantom_prefix")
        for name in ("support_chunking", "prefix_caching"):
            if getattr(self, name) is not None:
                flag(self, name)
            if getattr(self, name) and self.requires_padding:
                raise InputError(f"tgi: {name} must be false where requires_padding is true")
        ratio = self.waiting_served_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 <= ratio <= UNLIMITED:
            raise InputError(f"tgi: waiting_served_ratio must be at least 0, not {ratio!r}")

    def resolve(self, deployment: Deployment) -> Self:
        pool, total = deployment.kv_capacity_tokens, self.max_batch_total_tokens
        if total is not None and pool < total < UNLIMITED:
            raise InputError(f"tgi: max_batch_total_tokens ({total}) must be at most the KV pool's {pool} tokens")
        prefill = self.max_batch_prefill_tokens or min(MOST_PREFILL_TOKENS, deployment.max_model_len)
        chunking = not self.requires_padding if self.support_chunking is None else self.support_chunking
        longest = self.max_input_tokens or (None if chunking else prefill)
        if not chunking and longest is not None and longest > prefill:
            raise InputError(f"tgi: max_input_tokens ({longest}) must be at most max_batch_prefill_tokens ({prefill}) "
                             "where prompts are computed whole: lower the one or raise the other")
        caching = not self.requires_padding if self.prefix_caching is None else self.prefix_caching
        return replace(self, max_batch_prefill_tokens=prefill, max_batch_total_tokens=min(total or pool, pool),
                       max_input_tokens=longest, support_chunking=chunking, prefix_caching=caching)

    def memory(self, deployment: Deployment, outputs: Lengths) -> Memory:
        if self.requires_padding:
            return Counted(self.total_budget)
        blocks = max(0, self.total_budget // self.block_size - 1)    # block 0 is kept for health checks
        return (PromptCached if self.prefix_caching else Reserved)(blocks, self.block_size)

    @property
    def prefill_budget(self) -> int:
        """Tokens of a forward that computes prompts."""
        assert self.max_batch_prefill_tokens is not None
        return self.max_batch_prefill_tokens

    @property
    def total_budget(self) -> int:
        """Tokens of memory."""
        assert self.max_batch_total_tokens is not None
        return self.max_batch_total_tokens

    @property
    def slots(self) -> int:
        chunking = not self.requires_padding if self.support_chunking is None else self.support_chunking
        cap = UNLIMITED if chunking else self.max_batch_size or UNLIMITED
        return min(cap, self.max_concurrent_requests)

    def unheeded(self) -> tuple[str, ...]:
        """Where prompts come in chunks, nothing waits for a batch of them."""
        default = self.knobs()
        idle = (name for name in WHOLE_PROMPTS if getattr(self, name) != default[name])
        return tuple(idle) if self.support_chunking else ()

    @property
    def longest_prompt(self) -> int:
        return self.max_input_tokens or UNLIMITED

    @property
    def max_outstanding(self) -> int:
        return self.max_concurrent_requests

    def bounded_by(self, slots: int) -> Self:
        return replace(self, max_concurrent_requests=slots, max_batch_size=None, max_batch_prefill_tokens=UNLIMITED,
                       max_batch_total_tokens=None, max_input_tokens=None)

    def loop(self) -> Chunked | WholePrompts:
        """The rule that goes with the knobs, as it stands at the start."""
        return Chunked(self) if self.support_chunking else WholePrompts(self)

    def dropped(self, request: Request) -> None:
        if isinstance(self._loop, Chunked):
            self._loop.dropped(request)

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        if self._loop is None:
            self._loop = self.loop()
        return self._loop.plan(queue, memory)
