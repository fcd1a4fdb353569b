"""Measured steps: what was in each, and how long it took. It knows no file and no device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cost_models import StepShape

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Kind = Literal["decode", "prefill", "mixed"]
Bounds = dict[str, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class StepRows:
    """Measured steps, and their sizes as columns.

    Attributes:
        shapes: What was computed.
        ms: Milliseconds, one a shape.
    """

    shapes: Sequence[StepShape]
    ms: Floats

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, which: Mask) -> "StepRows":
        return StepRows([shape for shape, kept in zip(self.shapes, which.tolist(), strict=True) if kept],
                        self.ms[which])

    def of(self, kind: Kind) -> "StepRows":
        """The rows that only decode, only prefill, or do both."""
        return self[self.kind(kind)]

    def kind(self, kind: Kind) -> Mask:
        """Which rows those are."""
        decoding, chunked = self.decodes > 0, self.tokens > 0
        return {"decode": decoding & ~chunked, "prefill": chunked & ~decoding, "mixed": decoding & chunked}[kind]

    @cached_property
    def decodes(self) -> Floats:
        """Sequences that compute one new token each."""
        return self._column(lambda shape: shape.decodes)

    @cached_property
    def context(self) -> Floats:
        """Tokens of context that these read, summed."""
        return self._column(lambda shape: shape.context)

    @cached_property
    def tokens(self) -> Floats:
        """New prompt tokens, summed over the chunks."""
        return self._column(lambda shape: sum(new for new, _ in shape.chunks))

    @cached_property
    def prior(self) -> Floats:
        """Tokens already there, summed over the chunks."""
        return self._column(lambda shape: sum(prior for _, prior in shape.chunks))

    @cached_property
    def squares(self) -> Floats:
        """(prior + new)^2 - prior^2, summed over the chunks."""
        return self._column(lambda shape: sum(new * (new + 2 * prior) for new, prior in shape.chunks))

    @property
    def matrix_rows(self) -> Floats:
        """Rows of the matrices as ``regimes`` counts them: chunk tokens, or the sequences where there is no chunk."""
        return np.where(self.tokens > 0, self.tokens, self.decodes)

    def bounds(self) -> Bounds:
        """Lowest and highest value of each term that occurs, under the names that a profile's range has."""
        decoding, chunked = self.decodes > 0, self.tokens > 0
        terms = {"decodes": self.decodes[decoding], "context": self.context[decoding],
                 "chunk_tokens": self.tokens[chunked], "prior_tokens": self.prior[chunked]}
        return {name: (int(column.min()), int(column.max())) for name, column in terms.items() if len(column)}

    def _column(self, size: Callable[[StepShape], int]) -> Floats:
        return np.array([size(shape) for shape in self.shapes], float)
