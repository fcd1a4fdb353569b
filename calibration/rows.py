"""Measured steps as columns: what was in each, and how long it took. It knows no file and no device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models import StepShape

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Regime = str
REGIMES = ("decode", "prefill", "mixed")


@dataclass(frozen=True, eq=False)
class StepRows:
    """Measured steps, one an entry of each column.

    Attributes:
        decodes: Sequences that compute one new token each.
        context: Tokens of context that these read, summed.
        tokens: New prompt tokens, summed over the chunks.
        prior: Tokens already there, summed over the chunks.
        squares: (prior + new)^2 - prior^2, summed over the chunks.
        ms: Measured milliseconds.
    """

    decodes: Floats
    context: Floats
    tokens: Floats
    prior: Floats
    squares: Floats
    ms: Floats

    def __len__(self) -> int:
        return len(self.ms)

    def __getitem__(self, which: Mask) -> "StepRows":
        return StepRows(**{name: column[which] for name, column in vars(self).items()})

    def regime(self, name: Regime) -> "StepRows":
        """The rows that only decode, only prefill, or do both."""
        decoding, chunked = self.decodes > 0, self.tokens > 0
        return self[{"decode": decoding & ~chunked, "prefill": chunked & ~decoding, "mixed": decoding & chunked}[name]]

    def bounds(self) -> dict[str, list[int]]:
        """Lowest and highest value of each term that occurs, under the names that a profile's range has."""
        terms = {"decodes": self.decodes, "context": self.context, "chunk_tokens": self.tokens}
        found = {name: [int(column[column > 0].min()), int(column.max())]
                 for name, column in terms.items() if (column > 0).any()}
        if (self.tokens > 0).any():
            found["prior_tokens"] = [int(self.prior[self.tokens > 0].min()), int(self.prior.max())]
        return found


def steps(shapes: Sequence[StepShape], ms: Sequence[float]) -> StepRows:
    """Rows from step shapes and the milliseconds that each took."""
    columns = [(shape.decodes, shape.context, sum(new for new, _ in shape.chunks),
                sum(prior for _, prior in shape.chunks), sum(new * (new + 2 * prior) for new, prior in shape.chunks))
               for shape in shapes]
    decodes, context, tokens, prior, squares = np.array(columns, float).reshape(-1, 5).T
    return StepRows(decodes, context, tokens, prior, squares, np.array(ms, float))
