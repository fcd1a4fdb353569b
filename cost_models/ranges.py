"""Whether a step lies where a profile was measured. It knows bounds, not what they were measured with."""

from cost_models.base import StepShape
from cost_models.fits import Range


def in_range(bounds: Range | None, shape: StepShape) -> bool | None:
    """Whether each stated bound holds for the parts that the step has; None where there are no bounds."""
    if bounds is None:
        return None
    asked = []
    if shape.decodes:
        asked += [(bounds.decodes, shape.decodes), (bounds.context, shape.context)]
    if shape.chunks:
        asked += [(bounds.chunk_tokens, sum(new for new, _ in shape.chunks))]
        asked += [(bounds.prior_tokens, sum(prior for _, prior in shape.chunks))]
    return all(bound is None or bound[0] <= value <= bound[1] for bound, value in asked)
