"""Paged memory in which room may be made ahead of what is computed, and which sums up what its holders may need.

A prompt that is computed in chunks may take the blocks of all of them with the first: `grow` then makes more room than
the step fills, and later chunks find it there.
Source: the KV cache manager of TensorRT-LLM, without block reuse. The pool loses no block to anything else.
"""

from __future__ import annotations

from simulator.memory.base import Lengths
from simulator.memory.paged import Paged
from simulator.request import Request


class PagedAhead(Paged):
    """A pool of `capacity` blocks of `block_size` tokens.

    Args:
        declared: The largest need of a request is its prompt and all declared output, whatever it comes to.
        ahead: Tokens beyond the next one for which a generating request must find room.

    Attributes:
        pledged: Blocks that those who hold any come to with their prompt and all declared output, in all.
    """

    name = "paged, room ahead"

    def __init__(self, capacity: int, block_size: int, *, declared: bool = False, ahead: int = 0) -> None:
        super().__init__(capacity, block_size)
        self.pledged = 0
        self._declared, self._ahead = declared, ahead
        self._room: dict[int, int] = {}    # request -> tokens of room that `grow` has made, those computed included

    def room(self, request: Request) -> int:
        """Tokens for which the request has been given room, computed or not; 0 if it holds nothing."""
        return self._room.get(request.index, 0)

    def held(self, request: Request) -> int:
        """Blocks that the request holds."""
        return self.blocks_for(max(request.computed, self.room(request)))

    def to_completion(self, request: Request) -> int:
        """Blocks that the prompt and all declared output come to."""
        return self.blocks_for(request.prompt + request.max_tokens)

    def growth(self, request: Request, tokens: int) -> int:
        """Blocks that the request lacks for `tokens` tokens beyond those computed."""
        return max(0, self.blocks_for(request.computed + tokens) - self.held(request))

    def _growth(self, request: Request, tokens: int) -> int:
        return self.growth(request, tokens)

    def grow(self, request: Request, tokens: int) -> bool:
        if not super().grow(request, tokens):
            return False
        if request.index not in self._room:
            self.pledged += self.to_completion(request)
        self._room[request.index] = max(self.room(request), request.computed + tokens)
        return True

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        self._free += self.blocks_for(max(request.computed + ahead, self._room.pop(request.index)))
        self.pledged -= self.to_completion(request)

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        if self._declared:
            return -(-(prompt + max_tokens) // self.block_size)
        return -(-(prompt + output - 1 + self._ahead * (output > 1)) // self.block_size)
