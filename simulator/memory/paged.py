"""Paged memory: blocks of a few tokens, taken as a request grows. No request ever holds more than it has computed.

Blocks held are a function of the tokens computed, so only the number of free ones is kept.
Source: Kwon et al., PagedAttention, SOSP 2023; vLLM 0.33.0 reserves block 0, so its caller passes one block less.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from simulator.batch import DecodingSet
from simulator.memory.base import Chunks, Lengths, Memory
from simulator.request import Request


class Paged(Memory):
    """A pool of `capacity` blocks of `block_size` tokens, of which one request may hold `largest`."""

    name = "paged"

    def __init__(self, capacity: int, block_size: int = 16, *, largest: int | None = None) -> None:
        super().__init__(capacity)
        self.block_size, self._largest = block_size, largest

    def longest_run(self) -> int:
        return self.capacity if self._largest is None else self._largest

    def _growth(self, request: Request, tokens: int) -> int:
        computed, size = request._computed if request._set is None else request.computed, self.block_size
        return -(-(computed + tokens) // size) + -computed // size

    def grow(self, request: Request, tokens: int) -> bool:
        need = self._growth(request, tokens)
        if need > self.free:
            return False
        self._free -= need
        return True

    def need(self, decoding: DecodingSet, chunks: Chunks) -> int:
        """Blocks that `take` would take."""
        need = decoding.demand
        for request, tokens in chunks:
            need += self._growth(request, tokens)
        return need

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        need = self.need(decoding, chunks)
        if need > self.free:
            return False
        self._free -= need
        return True

    def short_of_room(self, requests: Iterable[Request]) -> list[Request]:
        """Those of these running requests that need a block for their next token, or compute more than one."""
        size = self.block_size
        return [request for request in requests if request._set is None
                or (request._computed + request._set.turn - request._joined) % size == 0]

    def would_free(self, requests: Sequence[Request]) -> int:
        """Blocks that nobody holds any more once all of these are released."""
        return sum([self.blocks_for(request.computed) for request in requests])

    def foresee(self, decoding: DecodingSet, steps: int) -> list[int]:
        used = list(accumulate(decoding.demands(steps), initial=self.used))[1:]
        return used[:bisect_right(used, self.capacity)] if used[-1] > self.capacity else used

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        self._free += self.blocks_for(request.computed + ahead)

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        # The last token generated never gets KV: nothing is computed after it.
        return -(-(prompt + output - 1) // self.block_size)
