"""Step times that a reproduction states: a straight line for decodes, a price for each prompt token, a floor.

    max(floor, base + per_seq * S + per_context_token * C) + per_prompt_token * n + host

S sequences decode over C tokens of context while n prompt tokens are computed; without decodes the first term is what
is missing of the base. Made to write down the assumptions of a publication in a few numbers; it predicts no hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

from cost_models import StepShape
from cost_models.base import empty_step
from cost_models.linear import LinearDecode, femtoseconds, nanoseconds


@dataclass(frozen=True)
class Stated(LinearDecode):
    """Milliseconds, as a specification states them.

    Attributes:
        base_ms: A decode step, apart from what follows; also the least that a step of prompts takes.
        per_seq_ms: For each sequence that decodes.
        per_context_token_ms: For each token of context that they read.
        per_prompt_token_ms: For each prompt token.
        floor_ms: The least that the decodes of a step take: what it takes to launch them.
        host_ms: On top of every step.
        why: Where the numbers come from.
    """

    base_ms: float
    why: str
    per_seq_ms: float = 0.0
    per_context_token_ms: float = 0.0
    per_prompt_token_ms: float = 0.0
    floor_ms: float = 0.0
    host_ms: float = 0.0

    @property
    def name(self) -> str:
        """The formula, its numbers filled in."""
        line = f"{self.base_ms:g} + {self.per_context_token_ms:g} C + {self.per_seq_ms:g} S"
        line = f"max({self.floor_ms:g}, {line})" if self.floor_ms else line
        return f"stated: {line} + {self.per_prompt_token_ms:g} n" + (f" + {self.host_ms:g}" if self.host_ms else "")

    @property
    def origin(self) -> str:
        """They are assumed, for the reason given."""
        return f"assumed: {self.why}"

    @property
    def context_fs(self) -> int:
        """One token of context, in fs."""
        return _fs(self.per_context_token_ms)

    def decode_fs(self, decodes: int) -> int:
        """A decode-only step in fs, context and floor aside."""
        return _fs(self.base_ms + self.host_ms) + decodes * _fs(self.per_seq_ms)

    def chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        """A step with prompts, in fs."""
        if any(new < 1 for new, _ in chunks):
            raise empty_step()
        prompts = sum([new for new, _ in chunks]) * _fs(self.per_prompt_token_ms)
        if not decodes:
            return max(_fs(self.base_ms), prompts) + _fs(self.host_ms)
        return max(self.decode_fs(decodes) + context * self.context_fs, self._least) + prompts

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        time = super().time(shape)
        return time if shape.chunks else max(time, nanoseconds(self._least))

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations of `k` decode steps in a row, in ns."""
        least = nanoseconds(self._least)
        times = super().decode_times(shape, k, growth)
        return [max(time, least) for time in times] if times and times[0] < least else times

    @property
    def _least(self) -> int:
        """The least that a step with decodes takes, in fs."""
        return _fs(self.floor_ms + self.host_ms)


def _fs(ms: float) -> int:
    return femtoseconds(ms * 1e-3)
