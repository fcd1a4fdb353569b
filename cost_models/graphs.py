"""CUDA graphs: a decode-only step runs as the next larger batch that was captured.

The extra rows pass all matrices but read no context, so they are charged as sequences without any. Steps with
prompt chunks and batches above the largest size run as they are. It does not know what capturing costs in memory.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from cost_models.around import Around
from cost_models.base import CostModel, CostModelError, StepShape

VLLM_SIZES = (1, 2, 4, *range(8, 257, 8), *range(272, 513, 16))
"""What vLLM captures by default."""
DIGITS = 9
"""Of the largest size."""
SHOWN = 60
"""Characters of what is refused that are quoted."""


def graph_sizes(text: str) -> tuple[int, ...]:
    """Captured batch sizes: ``vllm``, ``none``, or numbers between commas.

    >>> graph_sizes("vllm")[:6], graph_sizes("none"), graph_sizes("8,1,16")
    ((1, 2, 4, 8, 16, 24), (), (1, 8, 16))
    """
    if text in ("vllm", "none"):
        return VLLM_SIZES if text == "vllm" else ()
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= DIGITS and int(word) > 0 for word in words):
        raise CostModelError(f"CUDA graph sizes are vllm, none or numbers such as 1,2,4,8, got '{text[:SHOWN]}'")
    return tuple(sorted({int(word) for word in words}))


@dataclass(frozen=True)
class CapturedGraphs(Around):
    """Another cost model, asked about decode-only steps with as many rows as were captured."""

    cost: CostModel
    sizes: Sequence[int]

    @property
    def origin(self) -> str:
        """That of the model inside, and how rows are padded."""
        return f"{self.cost.origin}; decode rows padded to {len(self.sizes)} captured sizes up to {self.sizes[-1]}"

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns, its rows padded."""
        return self.cost.time(self._captured(shape))

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations of ``k`` decode steps; only the sequences add context, the extra rows do not."""
        return self.cost.decode_times(self._captured(shape), k, shape.decodes if growth is None else growth)

    def in_range(self, shape: StepShape) -> bool | None:
        """Whether the padded step lies where the model inside was measured."""
        return self.cost.in_range(self._captured(shape))

    @property
    def bounds(self) -> None:
        """None: those of the model inside hold for padded steps."""
        return None

    def _captured(self, shape: StepShape) -> StepShape:
        if shape.chunks or not 0 < shape.decodes <= self.sizes[-1]:
            return shape
        return StepShape(self.sizes[bisect_left(self.sizes, shape.decodes)], *shape[1:])
