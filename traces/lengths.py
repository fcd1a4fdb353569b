"""Prompt and output lengths drawn from published quantiles, tied together by a rank correlation.

The quantiles are facts about a source. The draw knows nothing else of it: the order of rows is random.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Quantiles:
    """Tokens at 101 probabilities 0, 0.01, ... 1, and at some more between 0.99 and 1."""

    values: Sequence[float]
    tail_probs: Sequence[float]
    tail: Sequence[float]

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`: ln(tokens) is linear between the listed ones; at least 1."""
        probs = np.concatenate([np.arange(100) / 100, self.tail_probs, [1.0]])
        tokens = np.concatenate([self.values[:100], self.tail, self.values[100:]])
        logs = np.interp(u, probs, np.log(np.maximum(tokens, 1)))
        return np.rint(np.exp(logs)).astype(np.int64)


def sample_lengths(
    prompt: Quantiles, output: Quantiles, spearman: float, n: int, rng: np.random.Generator
) -> tuple[Int64, Int64]:
    """`n` pairs of prompt and output tokens with the rank correlation `spearman` (a Gaussian copula).

    Only the ranks of two correlated normals are used. Each probability is then drawn inside its own 1/n-th of
    [0, 1], so both columns follow their quantiles as closely as n values can.
    """
    # The normal correlation that gives this rank correlation (Pearson, 1907).
    r = 2 * np.sin(np.pi * spearman / 6)
    first = rng.standard_normal(n)
    second = r * first + np.sqrt(1 - r * r) * rng.standard_normal(n)
    return prompt.at(stratified(first, rng)), output.at(stratified(second, rng))


def stratified(scores: Float64, rng: np.random.Generator) -> Float64:
    """One probability a score, in the order of the scores, one in each n-th of [0, 1]."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(len(scores))
    return (ranks + rng.random(len(scores))) / len(scores)
