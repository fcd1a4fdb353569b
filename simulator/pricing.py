"""Pricing: what steps cost, and how long they last. It moves no clock and knows no policy."""

from __future__ import annotations

from collections.abc import Sequence

from cost_models import CostModel, Noise, StepShape
from simulator.measure import Rows
from simulator.step import Step

SMALLEST = StepShape(1, 0)
"""What a step is priced as that computes nothing."""


class Pricing:
    """A cost model, and what comes on top of it.

    Args:
        cost: The price of a step.
        noise: Draws how long steps last, given what they cost; None: as long as they cost.
        scheduling: What the scheduler adds to a step: so many ns, and so many more for each request that runs.

    Attributes:
        delays: Whether the scheduler adds anything.
        ranged: Whether the cost model states where it was measured.
        bounds: See CostModel.
    """

    def __init__(self, cost: CostModel, noise: Noise | None = None, scheduling: tuple[int, int] = (0, 0)) -> None:
        self.cost, self.noise, self._scheduling = cost, noise, scheduling
        self.delays = any(scheduling)
        self.ranged, self.bounds = cost.in_range(SMALLEST) is not None, cost.bounds

    def delay(self, step: Step, running: int) -> int:
        """Nanoseconds by which scheduler and moving KV make a step longer, with so many requests running."""
        fixed, each = self._scheduling
        return step.delay + fixed + each * running

    def lasting(self, costs: list[int], delay: int, shape: StepShape, first: int) -> list[int]:
        """How long steps of these costs last, with this delay each; the first of them has this number."""
        if self.noise:
            costs = self.noise.draw(costs, first, shape)
        return [cost + delay for cost in costs] if delay else costs

    def excess(self, costs: Sequence[int], rows: Rows) -> int:
        """Nanoseconds by which steps of these costs exceed what their useful rows would cost at their own lengths."""
        shape = StepShape(rows.decodes, rows.context, rows.chunks)
        if shape.chunks:
            return sum(costs) - self.cost.time(shape)
        return sum(costs) - sum(self.cost.decode_times(shape, len(costs))) if shape.decodes else sum(costs)

    def out_of_range(self, shape: StepShape, steps: int) -> int:
        """How many steps of this shape lie outside the cost model's measured range, contexts growing."""
        in_range = self.cost.in_range
        if in_range(shape) and (steps == 1 or in_range(_ahead(shape, steps - 1))):
            return 0    # what lies between lies inside, too
        return sum(not in_range(_ahead(shape, ahead)) for ahead in range(steps))


def _ahead(shape: StepShape, steps: int) -> StepShape:
    """What a decode step of this shape has become so many steps later."""
    decodes, context, chunks, _, _ = shape
    return StepShape(decodes, context + steps * decodes, chunks)
