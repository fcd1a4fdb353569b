"""The prefill adder: what one prefill pass may still take on, and who it lets in. Mirrors: SGLang 0.5.23.

Two memory budgets are kept, in tokens. The one counts all that the running requests may come to need by the ratio, and
all that the new ones may generate; the other only what this pass takes. A request that this pass lets in is charged for
its whole output; from the next pass on it counts among those running, and the ratio discounts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from simulator.memory.base import UNLIMITED, Memory
from simulator.policies.sglang.completions import Completions
from simulator.request import Request
from simulator.step import Queue

Verdict = Literal["continue", "no token", "other"]
"""What comes after a request: the next one; nobody, for lack of memory; nobody, for another reason."""
CLIP = 4096
"""Output tokens beyond this are never set aside (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION)."""


class PrefillAdder:
    """One prefill pass.

    Args:
        queue, memory: Lent by the replica.
        ratio: The new-token ratio.
        decoding: Those who decode and the tokens each has generated.
        mixed: Tokens that decodes take in the same step.
        input_tokens: Prompt tokens a pass (max_prefill_tokens).
        chunk_tokens: Tokens after which a prompt is cut; UNLIMITED: prompts are whole.
        page: Tokens a page.
        most: Requests a pass (prefill_max_requests).
        foreseen: Every request generates all that it declares, and nothing is cached: let in by completions.

    Attributes:
        chunks: (request, tokens) of everybody let in, in order.
        cut: The request whose prompt goes on after this pass, if there is one.
    """

    def __init__(self, queue: Queue, memory: Memory, ratio: float, decoding: Sequence[tuple[Request, int]], *,
                 mixed: int, input_tokens: int, chunk_tokens: int, page: int, most: int | None = None,
                 foreseen: bool = False) -> None:
        self._queue, self._memory, self._page, self._most = queue, memory, page, most
        self._whole_prompts = chunk_tokens >= UNLIMITED
        self._input_left, self._chunk_left = input_tokens - mixed, chunk_tokens - mixed
        self._taken = mixed
        self._promised = mixed + sum([min(request.max_tokens - generated, CLIP) * ratio
                                      for request, generated in decoding])
        self._completions = Completions(request for request, _ in decoding) if foreseen else None
        self.chunks: list[tuple[Request, int]] = []
        self.cut: Request | None = None

    @property
    def total_left(self) -> float:
        """Tokens of memory that nobody may come to need: never more than are left after this pass."""
        return self._memory.free * self._page - self._promised

    @property
    def now_left(self) -> int:
        """Tokens of memory that are there after this pass."""
        return self._memory.free * self._page - self._taken

    def go_on(self, request: Request) -> None:
        """The next chunk of the one prompt that is in the middle: it gets on even where no memory should be left.

        Never more than there is, though; the engine fails there.
        """
        room = min(self._chunk_left, int(self.total_left))
        tokens = min(request.lacking, room if room > 0 else self._chunk_left, self.now_left)
        if tokens > 0:
            self._take(request, tokens)
        if self._completions:
            self._completions.join(request)

    def add(self, request: Request) -> Verdict:
        """Let the head of the queue in, if it fits."""
        if self._most is not None and len(self.chunks) >= self._most:
            return "other"
        self._memory.hold(request)
        stopped = self._refuse_by_completions(request) if self._completions else self._refuse(request)
        tokens = self._share(request) if stopped is None else 0
        if not tokens:
            self._memory.release(request, returns=True)
            request.reuse(0)
            return stopped or "other"
        self._take(self._queue.admit(), tokens)
        return self._state()

    def _refuse(self, request: Request) -> Verdict | None:
        """Why a request stays out: memory must be left over even after its whole output."""
        extend = request.lacking
        new = min(request.max_tokens - request.generated, CLIP)
        if extend + new + self._page >= self.total_left:
            return "no token"
        if self._whole_prompts and self.chunks and self._paged(extend) >= self._input_left:
            return "other"
        return None

    def _refuse_by_completions(self, request: Request) -> Verdict | None:
        """Why a request stays out where everybody's end is known: the pool would overflow before enough have ended."""
        assert self._completions is not None
        needed = self._paged(request.lacking) + self._page
        if needed > self.total_left or not self._completions.fit(request, self.now_left - needed):
            return "no token"
        return None

    def _share(self, request: Request) -> int:
        """Tokens that a request computes in this pass; 0 if none are left for it."""
        extend = request.lacking
        if self._whole_prompts or self._paged(extend) <= self._chunk_left:
            return extend
        return max(0, self._chunk_left - self._chunk_left % self._page)

    def _take(self, request: Request, tokens: int) -> None:
        """Charge what a request computes; its whole output, too, unless its prompt is cut here."""
        paged = self._paged(tokens)
        self.chunks.append((request, tokens))
        if tokens < request.lacking:
            self.cut = request
        self._taken += paged + self._page
        self._promised += paged + self._page + self._charged(request, tokens)
        self._input_left -= paged
        if not self._whole_prompts:
            self._chunk_left -= paged

    def _charged(self, request: Request, tokens: int) -> float:
        return min(request.max_tokens, CLIP) if tokens == request.lacking else 0

    def _state(self) -> Verdict:
        """Whether anything is left for the next one."""
        if self.total_left <= 0:
            return "no token"
        return "other" if self._input_left <= 0 or self._chunk_left <= 0 else "continue"

    def _paged(self, tokens: int) -> int:
        return -(-tokens // self._page) * self._page
