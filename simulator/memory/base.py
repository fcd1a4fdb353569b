"""Memory: how KV cache is held. Policies ask; how the answer is found is the memory's business.

It knows requests and the decoding set, and neither the clock nor the policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from simulator.batch import DecodingSet
from simulator.request import Request

UNLIMITED = 1 << 60
"""Stands for an infinite bound where an integer is needed."""

Chunks = Sequence[tuple[Request, int]]
Lengths = NDArray[np.int64]


class Memory(ABC):
    """KV cache of one replica, counted in blocks of ``block_size`` tokens.

    Attributes:
        name: What a result calls it.
        capacity: Blocks in all; see `unbounded`.
        shortage: Why the latest refusal came: too little memory, or no hole that is long enough.
        promised: Tokens that the requests' reservations cover, used or not; None where nothing is reserved.
    """

    name: ClassVar[str] = "memory"
    block_size: int = 1
    shortage: Literal["memory", "fragmentation"] = "memory"

    def __init__(self, capacity: int) -> None:
        self.capacity = self._free = capacity
        self.promised: int | None = None

    @property
    def free(self) -> int:
        """Blocks that a request could take now, those that still hold reusable KV included."""
        return self._free

    @property
    def evictable(self) -> int:
        """How many of the free blocks still hold reusable KV."""
        return 0

    @property
    def empty(self) -> int | None:
        """How many of the free blocks hold nothing; None where no KV outlives its holder, so that all of them do."""
        return None

    @property
    def shared_tokens(self) -> int:
        """Tokens of KV that requests hold together, counted once for each holder beyond the first."""
        return 0

    @property
    def used(self) -> int:
        """Blocks that requests hold."""
        return self.capacity - self.free

    @property
    def unbounded(self) -> bool:
        """Whether it holds UNLIMITED tokens, but for what is lost to whole blocks and to a first one that is kept."""
        return (self.capacity + 2) * self.block_size > UNLIMITED

    def levels(self) -> tuple[int, int, int]:
        """Blocks in use, free blocks that hold nothing (-1 where `empty` is None) and shared tokens, at one go."""
        empty = self.empty
        return self.used, -1 if empty is None else empty, self.shared_tokens

    def blocks_for(self, tokens: int) -> int:
        """Blocks that `tokens` tokens of one request take."""
        return -(-tokens // self.block_size)

    def cached(self, request: Request) -> int:
        """Tokens of the request whose KV is at hand before it computes anything."""
        return 0

    def demand(self, request: Request, tokens: int) -> int:
        """Free blocks that are gone once the request, which holds nothing yet, has room for its first `tokens`."""
        return self.blocks_for(tokens)

    def hold(self, request: Request) -> None:
        """Get hold of what is `cached` of a request that holds nothing yet: it counts as computed, and stays."""
        request.reuse(0)

    def computed(self, chunks: Chunks) -> None:    # noqa: B027 - most memories need not know
        """Take note that a step has computed these chunks: their KV exists from now on."""

    def evict(self, blocks: int) -> None:    # noqa: B027 - most memories have nothing to forget
        """See that so many blocks are empty, as far as forgetting KV that nobody holds can bring it about."""

    @abstractmethod
    def grow(self, request: Request, tokens: int) -> bool:
        """Make room for `tokens` tokens more of the request; False, and nothing changes, if there is none.

        A request that holds nothing yet also gets hold of what is `cached` of it: that counts as computed.
        """

    @abstractmethod
    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        """Make room for one token of every decoding member and for the chunks: all of it or nothing."""

    def foresee(self, decoding: DecodingSet, steps: int) -> list[int]:
        """Blocks used in each of as many as fit of `steps` decode steps beyond the one that `take` has served."""
        return [self.used] * steps

    def extend(self, blocks: int) -> None:
        """Take so many blocks more for steps that were foreseen."""
        self._free -= blocks

    @abstractmethod
    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        """Take back everything the request holds.

        `ahead` tokens of room were made for a step that it takes no part in; `returns` says that it will come again.
        """

    @abstractmethod
    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        """Blocks that requests of these lengths hold when they hold most."""

    def longest_run(self) -> int:
        """Blocks that the largest request to be served could take of an empty memory."""
        return self.capacity
