"""Whether a step lies where a profile was measured. It knows bounds, not what they were measured with."""

from cost_models.base import StepShape
from cost_models.fits import Range


def in_range(bounds: Range | None, shape: StepShape) -> bool | None:
    """Whether each stated bound holds for the parts that the step has; None where there are no bounds."""
    if bounds is None:
        return None
    decodes, context, chunks, _, _ = shape
    fewest, most, shortest, longest, first, last, low, high = bounds.closed
    if decodes and not (fewest <= decodes <= most and shortest <= context <= longest):
        return False
    if not chunks:
        return True
    tokens = before = 0
    for new, prior in chunks:
        tokens += new
        before += prior
    return first <= tokens <= last and low <= before <= high
