"""One duration for every step, whatever is in it.

Made for closed forms: with it, waiting times and makespans can be worked out by hand. It predicts no
hardware.
"""

from dataclasses import dataclass

from cost_models.base import CostModel, CostModelError, StepShape, empty_step, refuse_chunks


@dataclass(frozen=True)
class Constant(CostModel):
    """Every step lasts ``step_ns`` nanoseconds.

    >>> Constant(10_000_000).time(StepShape(decodes=3, context=700))
    10000000
    """

    step_ns: int

    def __post_init__(self) -> None:
        if type(self.step_ns) is not int or self.step_ns < 1:
            raise CostModelError(f"step_ns must be a whole number of at least 1 ns, got {self.step_ns!r}")

    @property
    def name(self) -> str:
        """``constant:`` and the duration in milliseconds."""
        return f"constant:{self.step_ns / 1e6:g}"

    @property
    def origin(self) -> str:
        """It is stated, not measured."""
        return f"stated: {self.step_ns / 1e6:g} ms a step"

    def time(self, shape: StepShape) -> int:
        """The stated duration in ns."""
        if shape.decodes > 0 or any(new > 0 for new, _ in shape.chunks):
            return self.step_ns
        raise empty_step()

    def decode_times(self, shape: StepShape, k: int, growth: int | None = None) -> list[int]:
        """The stated duration in ns, ``k`` times."""
        refuse_chunks(shape)
        return [self.time(shape)] * k
