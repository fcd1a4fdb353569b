"""Contiguous memory: each request reserves one interval when it starts and keeps it whole until it leaves.

How much it reserves is a rule: the model's whole length, prompt and declared output, prompt and true output, or prompt
and true output rounded up to a power of two, but no more than the model's length. Where it lies is the address space's
business.
Source: the memories "Max", "Oracle" and "Pow2" of Kwon et al., SOSP 2023; "declared" is Orca's own, OSDI 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, Self

import numpy as np

from simulator.batch import DecodingSet
from simulator.errors import InputError
from simulator.memory.base import Chunks, Lengths, Memory
from simulator.memory.spaces import SPACES, Space, powers_of_two
from simulator.request import Request

Reserve = Literal["model", "declared", "exact", "pow2"]
RESERVES = ("model", "declared", "exact", "pow2")


def reservation(rule: Reserve, max_model_len: int, prompt: Lengths, output: Lengths,
                max_tokens: Lengths) -> Lengths:
    """Tokens that requests of these lengths reserve: as long as the model allows, as declared, or as it turns out."""
    if rule == "model":
        return np.full_like(prompt, max_model_len)
    if rule == "pow2":
        return np.minimum(prompt + powers_of_two(output), max_model_len)
    return prompt + (max_tokens if rule == "declared" else output)


def size_rule(rule: Reserve, max_model_len: int, outputs: Lengths) -> Callable[[Request], int]:
    """The same for one request at a time; `outputs` are true lengths by request index."""
    return partial(_size_of, rule, max_model_len, outputs)


def _size_of(rule: Reserve, max_model_len: int, outputs: Lengths, request: Request) -> int:
    if rule == "model":
        return max_model_len
    if rule == "declared":
        return request.prompt + request.max_tokens
    output = int(outputs[request.index])
    if rule == "exact":
        return request.prompt + output
    return min(request.prompt + (1 << (output - 1).bit_length()), max_model_len)


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

    @classmethod
    def reserving(cls, rule: Reserve, capacity: int, max_model_len: int, outputs: Lengths, placement: str) -> Self:
        """A row of `capacity` tokens in which requests reserve by one of the rules."""
        return cls(capacity, size_rule(rule, max_model_len, outputs), partial(reservation, rule, max_model_len),
                   placement)

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

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        address, length, size = self._at.pop(request.index)
        self._space.give(address, length)
        self._free += length
        self.promised -= size

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        return self._space.lengths(self._sizes(prompt, output, max_tokens))

    def longest_run(self) -> int:
        return SPACES[self._placement](self.capacity).largest()
