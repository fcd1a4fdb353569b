"""A cost model around another one: what it does not change, it passes on. It knows no formula."""

from collections.abc import Mapping, Sequence

from cost_models.base import CostModel, StepShape


class Around(CostModel):
    """Base of models that change the answers of the model inside, ``cost``."""

    cost: CostModel

    @property
    def name(self) -> str:
        """That of the model inside."""
        return self.cost.name

    @property
    def origin(self) -> str:
        """That of the model inside."""
        return self.cost.origin

    def in_range(self, shape: StepShape) -> bool | None:
        """Whether the model inside was measured there."""
        return self.cost.in_range(shape)

    @property
    def bounds(self) -> tuple[float, ...] | None:
        """Those of the model inside."""
        return self.cost.bounds

    def residuals(self) -> Mapping[str, Sequence[float]] | None:
        """Those of the model inside."""
        return self.cost.residuals()

    def stated_bias(self) -> float | None:
        """That of the model inside."""
        return self.cost.stated_bias()

    def held_against(self) -> str | None:
        """That of the model inside."""
        return self.cost.held_against()

    @property
    def request_overhead(self) -> int:
        """That of the model inside, in ns."""
        return self.cost.request_overhead
