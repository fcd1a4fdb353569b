"""Timed kernels of one model on one device, and the steps that they add up to.

The times are those of one layer on one rank. A step is layers x (linear + attention [+ 2 all-reduces]) + head, as
``cost_models.table`` has it. It knows no file, and no host: what it composes are kernels back to back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.rows import Floats, StepRows
from cost_models import StepShape

ByOne = dict[int, float]
ByTwo = dict[tuple[int, int], float]


@dataclass(frozen=True)
class KernelTimes:
    """Microseconds of each kernel by its sizes.

    Attributes:
        layers: Layers of the model.
        linear: All of a layer but attention, by tokens of the step.
        head: Embedding, last norm, output head and sampling, by sequences of the step.
        decode: Attention of decodes, by (sequences, context of each).
        prefill: Attention of one chunk, by (new tokens, tokens already there).
        mixed: Attention of both in one call, by the four sizes: the chunk's two, then the decodes' two.
        all_reduce: One all-reduce by tokens of the step; empty on one GPU.
    """

    layers: int
    linear: ByOne
    head: ByOne
    decode: ByTwo
    prefill: ByTwo
    mixed: dict[tuple[int, int, int, int], float] = field(default_factory=dict)
    all_reduce: ByOne = field(default_factory=dict)

    def steps(self) -> StepRows:
        """Every timed attention as a step, in milliseconds; those with more tokens than were timed are left out.

        Between timed numbers of tokens and sequences the rest of the step is interpolated.
        """
        shapes, attention = zip(*self._attention(), strict=True)
        most = min(max(self.linear), max(self.all_reduce, default=max(self.linear)))
        within = np.array([self._tokens(shape) <= most for shape in shapes])
        tokens = np.array([self._tokens(shape) for shape in shapes])
        sequences = np.array([shape.decodes + len(shape.chunks) for shape in shapes])
        layer = np.array(attention) + at(self.linear, tokens) + 2 * at(self.all_reduce, tokens)
        ms = (self.layers * layer + at(self.head, sequences)) / 1e3
        return StepRows(shapes, ms)[within]

    def _attention(self) -> Iterator[tuple[StepShape, float]]:
        for (sequences, each), us in self.decode.items():
            yield StepShape(sequences, sequences * each), us
        for chunk, us in self.prefill.items():
            yield StepShape(0, 0, (chunk,)), us
        for (new, prior, sequences, each), us in self.mixed.items():
            yield StepShape(sequences, sequences * each, ((new, prior),)), us

    @staticmethod
    def _tokens(shape: StepShape) -> int:
        return shape.decodes + sum(new for new, _ in shape.chunks)


def at(curve: ByOne, sizes: NDArray[np.int64]) -> Floats:
    """Times at these sizes, on straight lines between the timed ones; 0 where nothing was timed."""
    known = sorted(curve)
    return np.interp(sizes, known, [curve[size] for size in known]) if known else np.zeros(len(sizes))
