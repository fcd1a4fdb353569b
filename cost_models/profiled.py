"""What every model of a calibrated profile answers alike: what it is called, and how far off it may be."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from cost_models.base import CostModel, StepShape
from cost_models.profile import Profile
from cost_models.ranges import within
from cost_models.residuals import residuals


class Profiled(CostModel):
    """Base of models whose numbers come from ``profile``."""

    profile: Profile

    @property
    def name(self) -> str:
        """Name of the profile."""
        return self.profile.name

    @property
    def origin(self) -> str:
        """Source and date of the profile, and what in it is not measured."""
        return self.profile.provenance

    def residuals(self) -> Mapping[str, Sequence[float]] | None:
        """Those that the profile states, or that follow from its errors."""
        return residuals(self.profile.fit.errors)

    def stated_bias(self) -> float | None:
        """The largest of the profile's regimes."""
        return self.profile.fit.errors.bias

    def held_against(self) -> str | None:
        """What the profile says, where it states an error."""
        return None if self.stated_bias() is None else self.profile.fit.held_against

    @property
    def request_overhead(self) -> int:
        """What the profile states, in ns."""
        return self.profile.request_overhead

    def in_range(self, shape: StepShape) -> bool | None:
        """Whether each stated bound of the profile holds; None where the profile states none."""
        return None if self.bounds is None else within(self.bounds, shape)

    @cached_property
    def bounds(self) -> tuple[float, ...] | None:
        """Those of the profile."""
        stated = self.profile.fit.range
        return stated.closed if stated else None
