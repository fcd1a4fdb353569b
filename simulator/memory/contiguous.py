"""Contiguous memory: each request reserves one interval when it starts and keeps it whole until it leaves.

How much it reserves is a rule: the model's whole length, prompt and declared output, or prompt and true output.
Source: the memories "Max", "Pow2" and "Oracle" of Kwon et al., SOSP 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from simulator.batch import DecodingSet
from simulator.errors import InputError
from simulator.memory.base import Chunks, Lengths, Memory
from simulator.memory.spaces import SPACES, Space
from simulator.request import Request

Reserve = Literal["model", "declared", "exact"]
RESERVES = ("model", "declared", "exact")


def reservation(rule: Reserve, max_model_len: int, prompt: Lengths, output: Lengths,
                max_tokens: Lengths) -> Lengths:
    """Tokens that requests of these lengths reserve: as long as the model allows, as declared, or as it turns out."""
    if rule == "model":
        return np.full_like(prompt, max_model_len)
    return prompt + (max_tokens if rule == "declared" else output)


class Contiguous(Memory):
    """A row of `capacity` tokens, of which each request reserves `size_of(request)`."""

    name = "contiguous"
    promised: int

    def __init__(self, capacity: int, size_of: Callable[[Request], int],
                 sizes: Callable[[Lengths, Lengths, Lengths], Lengths], placement: str = "first-fit") -> None:
        super().__init__(capacity)
        if placement not in SPACES:
            raise InputError(f"unknown placement {placement!r} (known: {', '.join(SPACES)})")
        self._space: Space = SPACES[placement](capacity)
        self._size_of, self._sizes, self._placement = size_of, sizes, placement
        self._at: dict[int, tuple[int, int, int]] = {}    # request -> address, length, reservation
        self.promised = 0

    def grow(self, request: Request, tokens: int) -> bool:
        if request.index in self._at:
            return True
        size = self._size_of(request)
        place = self._space.take(size)
        if place is None:
            self.shortage = "fragmentation" if size <= self.free else "memory"
            return False
        self._at[request.index] = (*place, size)
        self._free -= place[1]
        self.promised += size
        return True

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        return all(request.index in self._at for request, _ in chunks)

    def extend(self, decoding: DecodingSet, steps: int) -> list[int]:
        return [self.used] * steps

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        address, length, size = self._at.pop(request.index)
        self._space.give(address, length)
        self._free += length
        self.promised -= size

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        return self._space.lengths(self._sizes(prompt, output, max_tokens))

    def longest_run(self) -> int:
        return SPACES[self._placement](self.capacity).largest()
