"""Costs that are a straight line in the context while nothing but decoding happens.

The simulator asks for such steps most of all, one at a time and thousands at once. Both answers are sums of
whole femtoseconds rounded once, so they are equal to the last nanosecond. It knows no coefficients.
"""

from abc import abstractmethod

import numpy as np

from cost_models.base import CostModel, StepShape, empty_step, refuse_chunks

FS_PER_NS = 1_000_000
HALF_NS = FS_PER_NS // 2
# Below this many steps a list comprehension is faster than setting up an array.
ARRAY_FROM = 64
INT64_MAX = (1 << 63) - 1


def femtoseconds(seconds: float) -> int:
    """Seconds as whole femtoseconds: fine enough for the cost of one token of context (some 20 ns)."""
    return round(seconds * 1e15)


def nanoseconds(fs: int) -> int:
    """Femtoseconds rounded to nanoseconds, half up; a step lasts at least 1 ns."""
    return (fs + HALF_NS) // FS_PER_NS or 1


class LinearDecode(CostModel):
    """A model whose decode step costs ``decode_fs(decodes) + context * context_fs``, in femtoseconds."""

    @property
    @abstractmethod
    def context_fs(self) -> int:
        """Cost in fs of one token of context in a decode-only step."""

    @abstractmethod
    def decode_fs(self, decodes: int) -> int:
        """Cost in fs of a decode-only step of ``decodes`` sequences, context aside."""

    @abstractmethod
    def chunked_fs(self, decodes: int, context: int, chunks: tuple[tuple[int, int], ...]) -> int:
        """Cost in fs of a step with prompt chunks, beside any number of decodes."""

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        decodes, context, chunks, _, _ = shape
        if chunks:
            return (self.chunked_fs(decodes, context, chunks) + HALF_NS) // FS_PER_NS or 1
        if decodes > 0:
            return (self.decode_fs(decodes) + context * self.context_fs + HALF_NS) // FS_PER_NS or 1
        raise empty_step()

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row, without ``k`` calls."""
        decodes, context, chunks, _, _ = shape
        if chunks or decodes <= 0:
            refuse_chunks(shape)
            raise empty_step()
        context_fs = self.context_fs
        growth = decodes if growth is None else growth
        return evenly_spaced(self.decode_fs(decodes) + context * context_fs, growth * context_fs, k)


def evenly_spaced(first: int, growth: int, k: int) -> list[int]:
    """``first``, ``first + growth``, ... (``k`` of them, in fs), each rounded to ns.

    >>> evenly_spaced(2_000_000, 600_000, 4)
    [2, 3, 3, 4]
    """
    start = first + HALF_NS
    end = start + k * growth
    if not growth:
        return [nanoseconds(first)] * k
    if k < ARRAY_FROM or end > INT64_MAX:
        return [fs // FS_PER_NS or 1 for fs in range(start, end, growth)]
    in_ns = np.arange(start, end, growth, dtype=np.int64) // FS_PER_NS
    times: list[int] = np.maximum(in_ns, 1).tolist()
    return times
