"""Kernel times of one model on one device, as they were measured: the part of a profile that ``table`` reads.

All in microseconds, on one rank. It checks that knots ascend and that each grid is whole; it adds nothing up.
"""

from dataclasses import dataclass
from itertools import pairwise

from cost_models.base import CostModelError, choose

Numbers = tuple[float, ...]
Knots = tuple[int, ...]


@dataclass(frozen=True)
class Curve:
    """Time by one size; straight lines between the knots."""

    at: Knots
    us: Numbers

    def __post_init__(self) -> None:
        _check_knots("at", self.at)
        if len(self.us) != len(self.at):
            raise CostModelError(f"us must have a time for each of the {len(self.at)} knots, got {len(self.us)}")


@dataclass(frozen=True)
class DecodeGrid:
    """Attention of one layer for so many sequences with so much context each: a row for each number of sequences."""

    sequences: Knots
    context: Knots
    """Tokens of context of each sequence."""
    us: tuple[Numbers, ...]

    def __post_init__(self) -> None:
        _check_grid(self.us, sequences=self.sequences, context=self.context)


@dataclass(frozen=True)
class PrefillGrid:
    """Attention of one layer for one chunk of so many tokens after so many: a row for each chunk length."""

    tokens: Knots
    prior: Knots
    us: tuple[Numbers, ...]

    def __post_init__(self) -> None:
        _check_grid(self.us, tokens=self.tokens, prior=self.prior)


@dataclass(frozen=True)
class MixedFactors:
    """What a decode and a prefill attention cost when they share a step, over what they cost alone."""

    origin: str
    """``transferred`` from other hardware, or ``measured``."""
    decode_attention: float
    prefill_attention: float

    def __post_init__(self) -> None:
        choose("origin", self.origin, ("measured", "transferred"))


TRANSFERRED = MixedFactors("transferred", 1.4, 0.85)
"""For hardware of which no mixed step was timed: the middle of what two RTX cards showed, whose kernels LLMServingSim's
profiler has timed (casys-kaist/LLMServingSim at 5daddb2, MIT)."""


@dataclass(frozen=True)
class KernelTable:
    """Everything a step is composed of: layers x (linear + attention [+ 2 all-reduces]) + head."""

    linear: Curve
    """All else of one layer (matrix products, norms, activation) by tokens of the step. Best knots are pairs at
    the edges of tiles, (k, k + 8)."""
    head: Curve
    """Embedding, last norm, output head and sampling by sequences of the step."""
    decode_attention: DecodeGrid
    prefill_attention: PrefillGrid
    mixed: MixedFactors
    all_reduce: Curve | None = None
    """One all-reduce by tokens of the step; needed on more than one GPU."""
    beside_chunks: DecodeGrid | None = None
    """Attention of decodes that share a step with chunks, before its factor: engines run another kernel then. Where
    it is absent, ``decode_attention`` is taken."""


def _check_knots(name: str, knots: Knots) -> None:
    if not knots or any(low >= high for low, high in pairwise(knots)):
        raise CostModelError(f"{name} must be ascending whole numbers, got {list(knots)}")


def _check_grid(us: tuple[Numbers, ...], **axes: Knots) -> None:
    for name, knots in axes.items():
        _check_knots(name, knots)
    rows, columns = (len(knots) for knots in axes.values())
    if len(us) != rows or any(len(row) != columns for row in us):
        raise CostModelError(f"us must have {rows} rows ({', '.join(axes)}) of {columns} times")
