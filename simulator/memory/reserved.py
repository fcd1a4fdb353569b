"""Reserved memory: paged, but each request takes all the blocks of its whole life when it is let in, and keeps them.

A reservation covers prompt and declared output, without the last token, which nobody reads. So nothing ever runs out
while requests run, and nothing is ever taken from them. What they leave behind is forgotten; see `prompts` for a memory
that keeps it.
Source: the simple block allocator of text-generation-inference; the pool that a caller passes is free of its block 0.
"""

from __future__ import annotations

from simulator.batch import DecodingSet
from simulator.memory.base import Chunks, Lengths, Memory
from simulator.request import Request


def reservation(request: Request) -> int:
    """Tokens whose KV a request may ever need."""
    return request.prompt + request.max_tokens - 1


class Reserved(Memory):
    """A pool of `capacity` blocks of `block_size` tokens."""

    name = "reserved"
    promised: int

    def __init__(self, capacity: int, block_size: int = 1) -> None:
        super().__init__(capacity)
        self.block_size = block_size
        self.promised = 0
        self._own: dict[int, int] = {}    # request -> blocks that are its alone

    def grow(self, request: Request, tokens: int) -> bool:
        if request.index in self._own:
            return True
        blocks = self.blocks_for(reservation(request))
        if blocks > self._free:
            return False
        self._free -= blocks
        self._own[request.index] = blocks
        self.promised += reservation(request)
        return True

    def demand(self, request: Request, tokens: int) -> int:
        return self.blocks_for(reservation(request))

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        return all(request.index in self._own for request, _ in chunks)

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        self._free += self._own.pop(request.index)
        self.promised -= reservation(request)

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        return -(-(prompt + max_tokens - 1) // self.block_size)


class Counted(Reserved):
    """The same where nothing is laid out: an engine that only counts tokens counts the last one of an answer, too."""

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        return prompt + max_tokens
