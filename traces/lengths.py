"""Prompt and output lengths drawn from a law each, tied together by a rank correlation.

The draw knows nothing else of a source: the order of rows is random.
"""

import numpy as np
import numpy.typing as npt

from traces.laws import Law

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


def sample_lengths(
    prompt: Law, output: Law, spearman: float, n: int, rng: np.random.Generator
) -> tuple[Int64, Int64]:
    """`n` pairs of prompt and output tokens with the rank correlation `spearman` (a Gaussian copula).

    Only the ranks of two correlated normals are used. Each probability is then drawn inside its own 1/n-th of
    [0, 1], so both columns follow their laws as closely as n values can.
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
