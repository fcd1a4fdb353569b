"""Workloads that a publication describes by distributions: traces whose lengths are quantiles in a drawn order.

A row has the length at a quantile of its own, (i + 1/2) / n, so a short trace has the mean and the tail of the
distribution without the luck of a draw; a seed only orders the rows. All requests of a pass come at once. It knows no
engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cost_models import CostModelError, choose
from simulator.memory.base import UNLIMITED
from traces import Trace
from traces.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
KINDS: dict[str, tuple[str, ...]] = {"constant": ("tokens",), "uniform": ("lowest", "highest"),
                                     "exponential": ("mean",), "lognormal": ("mean", "sigma")}
"""Distributions, and what each needs to be told."""
SPARE = 3
"""Pairs made for each request, where some of them may be too long."""
GOLDEN = (5 ** 0.5 - 1) / 2
"""Its multiples fill the unit interval evenly, so that they pair prompts with outputs independently."""


@dataclass(frozen=True)
class Lengths:
    """A distribution of token counts.

    Attributes:
        kind: One of KINDS.
        tokens: Of every request: "constant".
        lowest, highest: Inclusive bounds: "uniform".
        mean: Of the distribution before anything is drawn again, in tokens.
        sigma: Standard deviation of the logarithm: "lognormal".
        redrawn_above: A longer draw is thrown away and drawn again, not clipped.
    """

    kind: str
    tokens: int | None = None
    lowest: int | None = None
    highest: int | None = None
    mean: float | None = None
    sigma: float | None = None
    redrawn_above: int | None = None

    def __post_init__(self) -> None:
        for need in KINDS[choose("distribution", self.kind, KINDS)]:
            if getattr(self, need) is None:
                raise CostModelError(f"{self.kind} lengths need '{need}'")

    def quantiles(self, rows: int) -> Ints:
        """Lengths at `rows` evenly spaced quantiles, ascending, at least 1."""
        share = (np.arange(rows) + 0.5) / rows * self._kept
        return np.maximum(np.rint(self._inverse(share)), 1).astype(np.int64)

    def _inverse(self, share: Floats) -> Floats:
        """The length that this share of the draws stays below."""
        match self.kind:
            case "constant":
                return np.full(len(share), float(self.tokens or 1))
            case "uniform":
                low, high = self.lowest or 1, self.highest or 1
                return np.floor(low + share * (high - low + 1))
            case "exponential":
                return -(self.mean or 1.0) * np.log1p(-share)
        normal = np.array([NormalDist().inv_cdf(each) for each in share.tolist()])
        return np.exp(self._mu + (self.sigma or 0.0) * normal)

    @property
    def _mu(self) -> float:
        return float(np.log(self.mean or 1.0)) - (self.sigma or 0.0) ** 2 / 2

    @property
    def _kept(self) -> float:
        """The share of the draws that are not drawn again."""
        bound = inf if self.redrawn_above is None else self.redrawn_above + 0.5
        if bound == inf or self.kind in ("constant", "uniform"):
            return 1.0
        if self.kind == "exponential":
            return float(-np.expm1(-bound / (self.mean or 1.0)))
        return NormalDist(self._mu, self.sigma or 1.0).cdf(float(np.log(bound)))


@dataclass(frozen=True)
class Workload:
    """Requests that a publication describes.

    Attributes:
        requests: How many in a pass.
        prompt, output: Their lengths, independent of one another.
        max_total: Longest prompt plus output; a longer pair is thrown away and drawn again.
        passes: How often the same requests are sent, in the same order.
        pass_every_s: Seconds from the start of a pass to that of the next.
        hash_block: Tokens of a block of the prompt that a later pass has in common with an earlier one.
    """

    requests: int
    prompt: Lengths
    output: Lengths
    max_total: int | None = None
    passes: int = 1
    pass_every_s: float = 0.0
    hash_block: int = 16

    def trace(self, name: str, seed: int) -> Trace:
        """All of them, as a trace; the seed decides their order."""
        order = np.random.default_rng(seed).permutation(self.requests)
        prompt, output = (column[order] for column in self._pairs())
        starts = np.arange(self.passes) * round(self.pass_every_s * 1e9)
        again = self.passes > 1
        return Trace(name, np.repeat(starts, self.requests).astype(np.int64), np.tile(prompt, self.passes),
                     np.tile(output, self.passes), hash_ids=self._blocks(prompt) if again else None,
                     hash_block=self.hash_block if again else None,
                     source=f"made: {self.requests:,} requests a pass, lengths at the quantiles of a distribution")

    def _pairs(self) -> tuple[Ints, Ints]:
        """Prompts and outputs of a pass; of pairs that are not too long together, evenly many of all lengths."""
        rows = self.requests if self.max_total is None else self.requests * SPARE
        mates = np.argsort(np.argsort(np.arange(rows) * GOLDEN % 1))
        prompt, output = self.prompt.quantiles(rows)[mates], self.output.quantiles(rows)
        kept = np.flatnonzero(prompt + output <= (self.max_total or UNLIMITED))
        if len(kept) < self.requests:
            raise CostModelError(f"most requests come to more than max_total ({self.max_total}): raise it")
        kept = kept[np.arange(self.requests) * len(kept) // self.requests]
        return prompt[kept], output[kept]

    def _blocks(self, prompt: Ints) -> Ragged:
        """Ids of the blocks of each prompt, pass after pass: no two requests of a pass have any in common."""
        blocks = -(-prompt // self.hash_block)
        return Ragged.parts(np.tile(np.arange(blocks.sum()), self.passes), np.tile(blocks, self.passes))
