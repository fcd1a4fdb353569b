"""What a step comes to: the shape that the cost model prices, and the row that the recorder keeps.

Pure functions of the step, the queue and the memory between plan and commit. They know no clock and move no counter.
"""

from __future__ import annotations

from cost_models import CostModel, StepShape
from simulator.memory.base import Memory
from simulator.recorder import CODES
from simulator.request import Request
from simulator.step import Queue, Step

Useful = tuple[int, int, tuple[tuple[int, int], ...]]
"""Decodes that produce a token, their context, and the chunks as new tokens and tokens already there."""


def late_decodes(step: Step) -> list[Request]:
    """Requests outside the decoding set that compute just the token they emitted last: decodes, not chunks."""
    return [request for request, tokens in step.chunks
            if tokens == 1 and request._generated and request.lacking == 1]


def shape_of(step: Step, useful: Useful) -> StepShape:
    """What the cost model is asked about: rows and contexts as they are computed, padding included."""
    size, context, chunks = useful
    decodes = size + step.spent
    if step.pad_to:
        padding = step.spent + sum([step.pad_to - tokens for tokens, _ in chunks])
        return StepShape(decodes, decodes * step.pad_to, ((step.pad_to, 0),) * len(chunks), padding, "padded")
    return StepShape(decodes, context + step.spent_context, chunks, step.spent)


def useful_rows(step: Step, queue: Queue) -> Useful:
    """The rows of a step that compute something new or lost, without padding."""
    size, context = (queue.decoding.size, queue.decoding.context) if step.decodes else (0, 0)
    if not step.chunks:
        return size, context, ()
    late = late_decodes(step)
    chunks = [(tokens, request._computed) for request, tokens in step.chunks if not late or request not in late]
    return size + len(late), context + sum([request._computed for request in late]), tuple(chunks)


def excess_of(cost: CostModel, useful: Useful, took: int, steps: int) -> int:
    """Nanoseconds by which steps that cost so much exceed what their useful rows would cost at their own lengths."""
    shape = StepShape(*useful)
    if shape.chunks:
        return took - cost.time(shape)
    return took - sum(cost.decode_times(shape, steps)) if shape.decodes else took


def out_of_range(cost: CostModel, shape: StepShape, steps: int) -> int:
    """How many of these steps lie outside the cost model's measured range."""
    shapes = (shape._replace(context=shape.context + ahead * shape.decodes) for ahead in range(steps))
    return sum(not cost.in_range(each) for each in shapes)


def row_of(step: Step, queue: Queue, memory: Memory, useful: Useful, padded: int) -> tuple[int, ...]:
    """The columns of the record from `decodes` to `paused`."""
    size, context, chunks = useful
    redone = redoing = 0
    for request, tokens in step.chunks:
        if request.lost > request._computed:
            redone += min(tokens, request.lost - request._computed)
            redoing += 1
    return (size, context, len(chunks), sum([tokens for tokens, _ in chunks]), redone, redoing, step.spent,
            padded, len(queue.running) - len(queue.in_flight), len(queue.held), len(queue.waiting),
            resident(queue, memory), -1 if memory.promised is None else memory.promised, CODES[step.blocked],
            int(not step.decodes))


def resident(queue: Queue, memory: Memory) -> int:
    """Tokens with KV, those that several requests share counted once."""
    tokens = queue.decoding.context
    if queue.catching_up:
        tokens += sum([request._computed for request in queue.catching_up.values()])
    if queue.in_flight:
        tokens += sum([request._computed for request in queue.in_flight.values()])
    if queue.held:
        tokens += sum([request._computed for request in queue.held.values()])
    return tokens - memory.shared_tokens
