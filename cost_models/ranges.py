"""Whether a step lies where a profile was measured. It knows bounds, not what they were measured with."""

from cost_models.base import StepShape


def within(bounds: tuple[float, ...], shape: StepShape, steps: int = 1) -> bool:
    """Whether each bound holds for the parts that the step has, and for steps after it with contexts growing.

    Args:
        bounds: See `CostModel.bounds`.
        shape: The first step.
        steps: How many there are; each sequence has one token more in each than in the one before.
    """
    decodes, context, chunks, _, _ = shape
    fewest, most, shortest, longest, first, last, low, high = bounds
    if decodes and not (fewest <= decodes <= most and shortest <= context
                        and context + (steps - 1) * decodes <= longest):
        return False
    if not chunks:
        return True
    tokens = before = 0
    for new, prior in chunks:
        tokens += new
        before += prior
    return first <= tokens <= last and low <= before <= high
