"""Prefix caching: paged memory in which full blocks keep their KV after they are freed, until the space is needed.

A block's identity is its whole prefix, so content is found only from the first block on. Shared prefixes come with
the requests (`Request.prefix`); all else is private to its request, which may find it again after a preemption.
Strips of blocks are tracked, never single blocks, and private content only while a preempted request waits.
Source: the KV cache manager of vLLM 0.33.0. Full blocks are published when they are scheduled, at most
floor((known - 1) / block) of them are found, tail blocks are freed first, unhashed ones are reused first, and of
several copies the first published is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from simulator.batch import DecodingSet
from simulator.memory.base import Chunks
from simulator.memory.line import FreeLine, Strip
from simulator.memory.paged import Paged
from simulator.request import Request

Found = list[tuple[Strip, int, int]]
"""Consecutive pieces of a prefix: strip, first and last position, the last one excluded."""


class PrefixCached(Paged):
    """A pool of `capacity` blocks of `block_size` tokens that remembers full blocks."""

    name = "paged-prefix"

    def __init__(self, capacity: int, block_size: int = 16) -> None:
        super().__init__(capacity, block_size)
        self._line = FreeLine(capacity)
        self._strips: dict[Any, list[Strip]] = {}           # by node, in the order of publication
        self._tables: dict[Request, list[Strip]] = {}       # strips that a request holds, in the order of position
        self._shared = 0    # blocks, counted once for each holder beyond the first

    @property
    def free(self) -> int:
        return self._line.free

    @property
    def evictable(self) -> int:
        return self._line.free - self._line.empty

    @property
    def empty(self) -> int:
        return self._line.empty

    @property
    def shared_tokens(self) -> int:
        return self._shared * self.block_size

    def levels(self) -> tuple[int, int, int]:
        line = self._line
        return self.capacity - line.free, line.empty, self._shared * self.block_size

    # What a policy asks

    def cached(self, request: Request) -> int:
        found = self._find(request) if request.prefix or request in self._strips else None
        return found[-1][2] * self.block_size if found else 0

    def demand(self, request: Request, tokens: int) -> int:
        need = -(-tokens // self.block_size)
        if request.prefix or request in self._strips:
            need -= sum([high - low for strip, low, high in self._find(request) if strip.holders])
        return need

    def grow(self, request: Request, tokens: int) -> bool:
        if (request.prefix or request in self._strips) and request._computed == 0 and request not in self._tables:
            return self._admit(request, tokens)
        need = self._growth(request, tokens)
        if need > self._line.free:
            return False
        if hit := self._line.take(need):
            self._forget(hit)
        if request.prefix:
            self._publish(request, request.computed + tokens)
        return True

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        need = self.need(decoding, chunks)
        if need > self._line.free:
            return False
        if hit := self._line.take(need):
            self._forget(hit)
        for request, tokens in chunks:
            if request.prefix:
                self._publish(request, request._computed + tokens)
        return True

    def extend(self, blocks: int) -> None:
        if hit := self._line.take(blocks):
            self._forget(hit)

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        computed, size = request._computed if request._set is None else request.computed, self.block_size
        tokens = computed + ahead
        full, table = tokens // size, self._tables.pop(request, ())
        private = full - table[-1].high if table else full
        if private and returns:
            self._line.put_back(-(-tokens // size) - full, 0)
            self._line.put_strip(self._add(Strip(request, full - private, full, {})))
        else:
            self._line.put_back(-(-tokens // size) - full, private)
        for strip in reversed(table):
            self._let_go(strip, request, returns)
        if not returns:
            self._strips.pop(request, None)

    def would_free(self, requests: Sequence[Request]) -> int:
        leaving, freed = set(requests), super().would_free(requests)
        for strip in {strip: None for request in requests for strip in self._tables.get(request, ())}:
            gone = len(strip.holders.keys() & leaving)
            freed -= len(strip) * (gone - (gone == len(strip.holders)))
        return freed

    # How it is found and kept

    def _find(self, request: Request) -> Found:
        """The longest prefix of the request that is cached; nothing where no strip could be of it."""
        limit, at = (request.known - 1) // self.block_size, 0
        found: Found = []
        for node, end in self._chain(request):
            while at < min(end, limit):
                strip, to = self._first_copy(node, at)
                if strip is None:
                    return found
                to = min(to, end, limit)
                found.append((strip, at, to))
                at = to
        return found

    def _chain(self, request: Request) -> Iterator[tuple[Any, int]]:
        """The nodes of a request's prefix and where each ends, in blocks; last its private content."""
        for node, tokens in request.prefix:
            yield node, tokens // self.block_size
        yield request, self.capacity

    def _first_copy(self, node: Any, at: int) -> tuple[Strip | None, int]:
        """The first published strip that holds a position, and up to where none published before it does."""
        to = self.capacity
        for strip in self._strips.get(node, ()):
            if strip.low <= at < strip.high:
                return strip, min(to, strip.high)
            if at < strip.low:
                to = min(to, strip.low)
        return None, at

    def _admit(self, request: Request, tokens: int) -> bool:
        """Let a request without KV in: it holds what is found, and room for `tokens` more is made."""
        found = self._find(request)
        start = found[-1][2] if found else 0
        need = self.blocks_for(start * self.block_size + tokens) - start
        if need > self.free - sum([high - low for strip, low, high in found if not strip.holders]):
            return False
        if found:
            self._tables[request] = [self._hold(self._cut(*piece), request) for piece in found]
            request.reuse(start * self.block_size)
        if hit := self._line.take(need):
            self._forget(hit)
        if request.prefix:
            self._publish(request, request._computed + tokens)
        return True

    def _hold(self, strip: Strip, request: Request) -> Strip:
        if strip.holders:
            self._shared += len(strip)
        else:
            self._line.lift(strip)
        strip.holders[request] = None
        return strip

    def _let_go(self, strip: Strip, request: Request, returns: bool) -> None:
        del strip.holders[request]
        if strip.holders:
            self._shared -= len(strip)
        elif strip.node is request and not returns:
            self._line.put_back(0, len(strip))
        else:
            self._line.put_strip(strip)

    def _publish(self, request: Request, tokens: int) -> None:
        """Make the full blocks of the request's shared prefix findable, up to `tokens`; what is private can wait."""
        table = self._tables.setdefault(request, [])
        at, full = (table[-1].high if table else 0), tokens // self.block_size
        for node, end in request.prefix:
            end = min(end // self.block_size, full)
            if at < end:
                table.append(self._add(Strip(node, at, end, {request: None})))
                at = end

    def _add(self, strip: Strip) -> Strip:
        self._strips.setdefault(strip.node, []).append(strip)
        return strip

    def _forget(self, hit: Iterable[Strip]) -> None:
        """Strips have lost blocks; those that have none left cannot be found any more."""
        for strip in hit:
            if not len(strip):
                self._drop(strip)

    def _drop(self, strip: Strip) -> None:
        siblings = self._strips.get(strip.node, [])
        if strip in siblings:
            siblings.remove(strip)
        if not siblings:
            self._strips.pop(strip.node, None)

    def _cut(self, strip: Strip, low: int, high: int) -> Strip:
        """The part of a strip between two positions, as a strip of its own."""
        if low > strip.low:
            strip = self._split(strip, low)
        if high < strip.high:
            self._split(strip, high)
        return strip

    def _split(self, lower: Strip, at: int) -> Strip:
        """Cut a strip in two; returns the upper part. Whoever holds it holds both."""
        upper = Strip(lower.node, at, lower.high, dict(lower.holders))
        lower.high = at
        siblings = self._strips[lower.node]
        siblings.insert(siblings.index(lower) + 1, upper)
        for holder in lower.holders:
            table = self._tables[holder]
            table.insert(table.index(lower) + 1, upper)
        if lower.place is not None:
            self._line.split(lower, upper)
        return upper
