"""The micro-batch scheduler, the second stage: which of the fitting requests compute in this step, and how much.

Generating requests cost one token each. A context costs all of itself, or, with chunking, what the others leave.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from simulator.policies.tensorrt_llm.active import Active
from simulator.request import Request

Chunks = list[tuple[Request, int]]


@dataclass(frozen=True)
class Limits:
    """What the stage knows.

    Attributes:
        tokens: Most tokens of a step.
        chunking: How contexts are cut; None: they are not.
        unit: Tokens of which a chunk must be a multiple, if it is not the last of its context.
        in_list_order: The fitting requests come by their places; otherwise those who generate come first.
    """

    tokens: int
    chunking: Chunking | None
    unit: int
    in_list_order: bool


def micro_batch(active: Active, fitting: list[Request], limits: Limits) -> tuple[Chunks, list[Request]]:
    """Contexts and the tokens of each, in order, and those who generate but get no token."""
    contexts, without = _up_to_the_limit(active, fitting, limits)
    wanted = [(request, active.left(request)) for request in contexts]
    capacity = limits.tokens - active.generations + len(without)
    if limits.chunking and sum(tokens for _, tokens in wanted) > capacity:
        wanted = _last_chunks_last(active, limits.chunking(wanted, capacity, limits.unit))
    return wanted, without


def _up_to_the_limit(active: Active, fitting: list[Request], limits: Limits) -> tuple[list[Request], list[Request]]:
    """The contexts before the first request that exceeds the limit, and those who generate from there on.

    With chunking only those who generate count against it.
    """
    def cost(request: Request) -> int:
        return (0 if limits.chunking else active.left(request)) if request in contexts else 1

    contexts, generations = set(fitting), active.generations
    if generations + sum(map(cost, fitting)) <= limits.tokens:
        return fitting, []
    if generations <= limits.tokens and not limits.in_list_order:
        return _cut(fitting, cost, limits.tokens - generations)[0], []
    line = active.in_order(active.generating + fitting) if limits.in_list_order else active.generating + fitting
    taken, rest = _cut(line, cost, limits.tokens)
    return [request for request in taken if request in contexts], [r for r in rest if r not in contexts]


def _cut(line: list[Request], cost: Callable[[Request], int], limit: int) -> tuple[list[Request], list[Request]]:
    """The line before and from the first request whose cost exceeds the limit."""
    taken = bisect_right(list(accumulate(map(cost, line))), limit)
    return line[:taken], line[taken:]


def _last_chunks_last(active: Active, chunks: Chunks) -> Chunks:
    """The engine's order: contexts that go on, then those that end; who gets no token is left out."""
    chunks = [(request, tokens) for request, tokens in chunks if tokens]
    return sorted(chunks, key=lambda chunk: chunk[1] == active.left(chunk[0]))


Chunking = Callable[[Chunks, int, int], Chunks]
"""Cuts wanted contexts to a capacity, given the unit."""


def first_come_first_served(wanted: Chunks, capacity: int, unit: int) -> Chunks:
    """Each takes what is left, rounded down to whole units if that is not all it wants."""
    chunks = []
    for request, tokens in wanted:
        if tokens > capacity:
            tokens = capacity // unit * unit
        chunks.append((request, tokens))
        capacity -= tokens
    return chunks


def equal_progress(wanted: Chunks, capacity: int, unit: int) -> Chunks:
    """One more unit for each in turn, round after round, as long as anybody's next one fits."""
    got, going = [0] * len(wanted), True
    while going and capacity:
        going = False
        for at, (_, tokens) in enumerate(wanted):
            more = min(unit, tokens - got[at])
            if 0 < more <= capacity:
                got[at], capacity, going = got[at] + more, capacity - more, True
    return [(request, tokens) for (request, _), tokens in zip(wanted, got, strict=True)]


CHUNKING: dict[str, Chunking] = {"FIRST_COME_FIRST_SERVED": first_come_first_served, "EQUAL_PROGRESS": equal_progress}
"""By the names that `context_chunking_policy` takes."""
