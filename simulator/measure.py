"""What a step comes to: the shape that the cost model prices, and the row that the recorder keeps.

Pure functions of the step, the queue and the memory between plan and commit. They know no clock and move no counter.
"""

from __future__ import annotations

from typing import NamedTuple

from cost_models import StepShape
from simulator.recorder import CODES
from simulator.step import Queue, Step

made = tuple.__new__
"""Makes a named tuple of all of its fields at once: a third of the time that calling its class takes."""


class Rows(NamedTuple):
    """The rows of a step that compute something new or lost, without padding.

    Attributes:
        decodes: Rows that produce a token from the one emitted last.
        context: KV tokens that those read.
        chunks: The others, as new tokens and tokens already there.
        prompt: Tokens that the chunks compute.
        redone: How many of these a preemption had thrown away.
        redoing: Chunks that compute such tokens.
        there: KV tokens that the chunks find there.
    """

    decodes: int
    context: int
    chunks: tuple[tuple[int, int], ...] = ()
    prompt: int = 0
    redone: int = 0
    redoing: int = 0
    there: int = 0


def rows_of(step: Step, queue: Queue) -> Rows:
    """What the rows of a step compute.

    Outside the decoding set, a row that computes just the token emitted last is a decode too: a late one.
    """
    decodes, context = (queue.decoding.size, queue.decoding.context) if step.decodes else (0, 0)
    if not step.chunks:
        return made(Rows, (decodes, context, (), 0, 0, 0, 0))
    chunks, prompt, redone, redoing, there = [], 0, 0, 0, 0
    for request, tokens in step.chunks:
        computed = request._computed
        if tokens == 1 and request._generated and request.lacking == 1:
            decodes += 1
            context += computed
        else:
            chunks.append((tokens, computed))
            prompt += tokens
            there += computed
        if request.lost > computed:
            redone += min(tokens, request.lost - computed)
            redoing += 1
    return made(Rows, (decodes, context, tuple(chunks), prompt, redone, redoing, there))


def shape_of(step: Step, rows: Rows) -> StepShape:
    """What the cost model is asked about: rows and contexts as they are computed, padding included."""
    decodes, context, chunks, *_ = rows
    spent = step.spent
    decodes += spent
    if step.pad_to:
        width, prior = step.pad_chunks_to or step.pad_to, max([there for _, there in chunks], default=0)
        padding = spent + sum([width - tokens for tokens, _ in chunks])
        return StepShape(decodes, decodes * step.pad_to, ((width, prior),) * len(chunks), padding, "padded")
    return made(StepShape, (decodes, context + step.spent_context, chunks, spent, "varlen"))


def row_of(step: Step, queue: Queue, rows: Rows, padded: int, promised: int | None, empty: int,
           shared: int) -> tuple[int, ...]:
    """The columns of the record from `decodes` to `paused`; the last three as the memory tells them."""
    decodes, context, chunks, prompt, redone, redoing, _ = rows
    held = queue.held
    everybody = step.decodes and len(step.chunks) == len(queue.catching_up) and not held and not queue.in_flight
    tokens = context + rows.there if everybody else resident(queue)
    return (decodes, context, len(chunks), prompt, redone, redoing, step.spent, padded,
            len(queue.running) - len(queue.in_flight), len(held), len(queue.waiting), tokens - shared,
            -1 if promised is None else promised, empty, CODES[step.blocked],
            0 if step.decodes else 1)


def resident(queue: Queue) -> int:
    """Tokens with KV of all who run, each by itself; where everybody computes, the rows of the step tell as much."""
    tokens = queue.decoding.context
    for others in (queue.catching_up, queue.in_flight, queue.held):
        if others:
            tokens += sum([request._computed for request in others.values()])
    return tokens
