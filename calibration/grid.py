"""What is timed: which kernels at which sizes. It knows no device and no clock.

Times of matrix products jump where one more tile of rows is needed, so the numbers of tokens are pairs (k, k + 8) at
the edges of tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, Self

PASSES = 3
"""How often everything is timed, each time in another order, so that a drift shows."""


class Point(NamedTuple):
    """One thing to be timed.

    ``copy`` (bytes) and ``matmul`` (rows and columns of a square) are the device's ceilings; ``qkv``, ``o``,
    ``gate_up``, ``down`` and ``rest`` (tokens) make a layer but for attention; ``lm_head`` and ``head_rest``
    (sequences) its end; ``decode`` (sequences, context of each), ``prefill`` (new tokens, tokens there) and ``mixed``
    (those two, then the decodes' two) are attention; ``step`` (as mixed) is a whole step of the engine.
    """

    kernel: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """Sizes to be timed.

    Attributes:
        copy_bytes, matmul: Sizes of the two ceilings.
        tokens: Tokens of a step.
        heads: Sequences that sample a token.
        sequences, context: Axes of the decode attention.
        chunk, prior: Axes of the prefill attention.
        mixed: Chunk, prior, sequences and context of each of attention calls with both.
        steps: The same four of whole steps; without sequences or without a chunk they are 0.
        repeats: Samples a pass.
    """

    copy_bytes: int
    matmul: int
    tokens: tuple[int, ...]
    heads: tuple[int, ...]
    sequences: tuple[int, ...]
    context: tuple[int, ...]
    chunk: tuple[int, ...]
    prior: tuple[int, ...]
    mixed: tuple[tuple[int, int, int, int], ...]
    steps: tuple[tuple[int, int, int, int], ...]
    repeats: int

    def points(self) -> list[Point]:
        """Everything but the ceilings."""
        return list(self._points())

    @property
    def ceilings(self) -> list[Point]:
        """What is timed before anything else."""
        return [Point("copy", (self.copy_bytes,)), Point("matmul", (self.matmul,))]

    def within(self, tokens: int, step_tokens: int) -> Self:
        """The grid without what reads more tokens than there is memory for; its axes stay whole."""
        context = tuple(each for each in self.context if self.sequences[-1] * (each + 1) <= tokens)
        prior = tuple(each for each in self.prior if each + self.chunk[-1] <= tokens)
        return replace(self, context=context or self.context[:1], prior=prior or self.prior[:1],
                       mixed=tuple(dims for dims in self.mixed if tokens_of(Point("mixed", dims)) <= tokens),
                       steps=tuple(dims for dims in self.steps if tokens_of(Point("step", dims)) <= step_tokens))

    def _points(self) -> Iterator[Point]:
        for kernel, tokens in product(("qkv", "o", "gate_up", "down", "rest"), self.tokens):
            yield Point(kernel, (tokens,))
        for kernel, sequences in product(("lm_head", "head_rest"), self.heads):
            yield Point(kernel, (sequences,))
        for kernel, cells in (("decode", product(self.sequences, self.context)),
                              ("prefill", product(self.chunk, self.prior)), ("mixed", self.mixed),
                              ("step", self.steps)):
            yield from (Point(kernel, dims) for dims in cells)


def rows_of(point: Point) -> list[tuple[int, int]]:
    """New tokens and tokens in all of every row of an attention call or a step, decodes first."""
    chunk, prior, sequences, context = (0, 0, *point.dims) if point.kernel == "decode" else (*point.dims, 0, 0)[:4]
    return [(1, context + 1)] * sequences + [(chunk, prior + chunk)] * bool(chunk)


def tokens_of(point: Point) -> int:
    """Tokens of KV that they read, their own new ones included."""
    return sum(length for _, length in rows_of(point))


def pages_of(point: Point, page_size: int) -> int:
    """Pages that hold those tokens; no two rows share one."""
    return sum(-(-length // page_size) for _, length in rows_of(point))


EDGES = (32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Last full tiles."""
GPU = Grid(
    copy_bytes=1 << 30, matmul=8192,
    tokens=(1, 2, 4, 8, 16, 24, *(size for edge in EDGES for size in (edge, edge + 8)), 6144, 8192),
    heads=(1, 8, 16, 24, 32, 48, 64, 72, 128, 136, 192, 256, 264, 384, 512),
    sequences=(1, 2, 4, 8, 16, 32, 64, 128, 256), context=(128, 512, 1024, 2048, 4096, 8192),
    chunk=(16, 64, 128, 256, 512, 1024, 2048, 4096, 8192), prior=(0, 512, 2048, 4096, 8192, 16384),
    mixed=tuple(product((128, 512, 2048), (0, 2048), (8, 32, 128), (512, 2048))),
    steps=(*((0, 0, sequences, context) for sequences, context in product((1, 8, 32, 64, 128), (256, 1024, 4096))),
           *((chunk, prior, 0, 0) for chunk, prior in product((64, 256, 1024, 4096), (0, 2048))),
           *product((128, 512, 2048), (0, 2048), (8, 64), (512, 1024))),
    repeats=20)
GPU_QUICK = replace(
    GPU, tokens=GPU.tokens[::3], heads=(1, 16, 64, 256), sequences=(1, 8, 64, 256), context=(128, 1024, 4096),
    chunk=(16, 128, 512, 2048, 8192), prior=(0, 2048, 8192), mixed=GPU.mixed[::3], steps=GPU.steps[::2], repeats=8)
CPU = Grid(
    copy_bytes=1 << 26, matmul=512, tokens=(1, 2, 4, 8, 16, 32, 64, 128), heads=(1, 2, 4, 8),
    sequences=(1, 2, 4, 8), context=(8, 64, 128, 256), chunk=(8, 32, 64, 128), prior=(0, 64, 128),
    mixed=tuple(product((8, 32, 64), (0, 64), (1, 4, 7), (16, 128))),
    steps=(*((0, 0, sequences, context) for sequences, context in product((1, 2, 4, 6, 8), (16, 64, 128, 200))),
           *((chunk, prior, 0, 0) for chunk, prior in product((8, 16, 32, 64, 128), (0, 64))),
           *product((4, 16, 48), (0, 48), (2, 4, 7), (24, 100))),
    repeats=10)
CPU_QUICK = replace(
    CPU, tokens=(1, 4, 16, 64, 128), heads=(1, 4, 8), sequences=(1, 4, 8), context=(8, 64, 256), chunk=(8, 32, 128),
    prior=(0, 128), mixed=CPU.mixed[::3], steps=CPU.steps[::2], repeats=7)
