"""Prompt caching: reserved memory in which the prompt of a request that has left keeps its KV while there is space.

Only prompts are kept, not answers, and only once their request has left: requests that run side by side share nothing
that was not there before. What is found is locked for the whole life of whoever found it.
Source: the radix allocator of text-generation-inference. Who is refused has made it give up all that it could, and a
prompt is put in whether or not it was ever computed: the caller says by `returns` that it was not.
"""

from __future__ import annotations

from simulator.memory.reserved import Reserved, reservation
from simulator.memory.trie import Node, Text, Trie
from simulator.request import Request


class PromptCached(Reserved):
    """A pool of `capacity` blocks of `block_size` tokens that remembers full blocks of prompts."""

    name = "reserved-prompts"

    def __init__(self, capacity: int, block_size: int = 1) -> None:
        super().__init__(capacity, block_size)
        self._trie = Trie()
        self._found: dict[int, tuple[Node, int]] = {}    # request -> where it is locked, and blocks found
        self._hits = 0        # blocks found by those who hold memory
        self._reserved = 0    # tokens of all reservations

    @property
    def free(self) -> int:
        return self._free + self.evictable

    @property
    def evictable(self) -> int:
        return self._trie.blocks - self._trie.locked

    @property
    def empty(self) -> int:
        return self._free

    @property
    def shared_tokens(self) -> int:
        # A node is locked whole, be it found in part only: what nobody counts as his own makes this smaller.
        return (self._hits - self._trie.locked) * self.block_size

    def cached(self, request: Request) -> int:
        return self._usable(request, self._trie.match(self._text(request))[0])

    def demand(self, request: Request, tokens: int) -> int:
        found, idle = self._trie.match(self._text(request))
        return super().demand(request, tokens) - found + idle

    def grow(self, request: Request, tokens: int) -> bool:
        if request.index in self._own:
            return True
        node, found = self._trie.find(self._text(request))
        self._trie.pin(node)
        blocks = self.blocks_for(reservation(request)) - found
        if not self._reclaim(blocks):
            self._trie.unpin(node)
            return False
        self._free -= blocks
        self._own[request.index], self._found[request.index] = blocks, (node, found)
        self._count(request, found)
        request.reuse(self._usable(request, found))
        return True

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        node, found = self._found.pop(request.index)
        self._trie.unpin(node)
        self._free += self._own.pop(request.index)
        if not returns and request.prompt > found * self.block_size:
            self._free -= self._trie.insert(self._text(request))
        self._count(request, found, -1)

    def _text(self, request: Request) -> Text:
        """The full blocks of a prompt; what it shares with nobody is known by the request itself."""
        text, at = [], 0
        for content, end in (*request.prefix, (request, request.prompt)):
            if (high := end // self.block_size) > at:
                text.append((content, at, high))
                at = high
        return text

    def _usable(self, request: Request, found: int) -> int:
        """Tokens of the blocks found that need not be computed: the last of a prompt must be, to emit a token."""
        return min(found * self.block_size, request.prompt - 1)

    def _reclaim(self, blocks: int) -> bool:
        """Whether so many blocks are empty, after as much was given up for them as could be."""
        if blocks > self._free:
            self._free += self._trie.evict(blocks - self._free)
        return blocks <= self._free

    def _count(self, request: Request, found: int, sign: int = 1) -> None:
        self._hits += sign * found
        self._reserved += sign * reservation(request)
        self.promised = self._reserved - self.shared_tokens
