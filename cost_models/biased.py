"""Another cost model whose every step is so much shorter or longer: what an error of the step times would do.

It scales whole steps, host time included; what a request spends outside the steps is not scaled.
"""

from dataclasses import dataclass

from cost_models.around import Around
from cost_models.base import CostModel, CostModelError, StepShape


@dataclass(frozen=True)
class Biased(Around):
    """Every duration of ``cost`` times ``factor``, rounded to ns.

    >>> from cost_models import Constant
    >>> Biased(Constant(10_000_000), 1.05).time(StepShape(decodes=1, context=1))
    10500000
    """

    cost: CostModel
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < float("inf"):
            raise CostModelError(f"the factor of a bias must be above 0, got {self.factor!r}")

    @property
    def name(self) -> str:
        """That of the model inside, and the bias."""
        return f"{self.cost.name} {self._percent}"

    @property
    def origin(self) -> str:
        """That of the model inside, and the bias."""
        return f"{self.cost.origin}; all steps {self._percent}"

    def time(self, shape: StepShape) -> int:
        """Duration of one step in ns."""
        return self._scaled(self.cost.time(shape))

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """Durations in ns of ``k`` decode steps in a row."""
        return [self._scaled(ns) for ns in self.cost.decode_times(shape, k, growth)]

    def _scaled(self, ns: int) -> int:
        return round(ns * self.factor) or 1

    @property
    def _percent(self) -> str:
        return f"{100 * (self.factor - 1):+.3g}%"
