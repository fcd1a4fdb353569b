"""vLLM's priority rule: who waits first, who is preempted, and the walk by which running requests get memory.

The walk is taken only where memory or the token budget runs short: the running requests are served one by one, in
order, and a victim may already have its tokens of this step, which it gives back.
Mirrors: vLLM 0.33.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop

from simulator.memory.base import Memory
from simulator.memory.paged import Paged
from simulator.request import Request
from simulator.step import Queue, Step


def by_priority(request: Request) -> tuple[int, int, str]:
    """The order of the queue: priority, then arrival, then the id as a string."""
    return request.priority, request.arrival, request.name


def least_urgent_first(queue: Queue) -> Iterator[Request]:
    """Who is preempted, one after the other: the largest priority, then the latest arrival, then the oldest admission.

    Meanwhile nobody may join those who run, or leave them but for those it names.
    """
    heap = [(-request.priority, -request.arrival, order) for order, request in queue.running.items()]
    heapify(heap)
    while heap:
        yield queue.running[heappop(heap)[2]]


def serve_by_urgency(queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> int:
    """Give the running requests their tokens in order; whoever lacks memory preempts the least urgent.

    The victim may be the request itself: then the walk goes on with the next. Returns the budget left.
    """
    wanted = queue.decoding.size + sum([min(request.lacking, longest) for request in queue.catching_up.values()])
    return (serve_all if wanted <= budget else serve_some)(queue, memory, step, budget, longest)


def serve_all(queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> int:
    """The walk where the budget is enough for everybody: only those who need a block are asked."""
    assert isinstance(memory, Paged)
    victims = least_urgent_first(queue)
    for request in memory.short_of_room(queue.running.values()):
        while request.order is not None and not memory.grow(request, min(request.lacking, longest)):
            victim = next(victims)
            served = victim.order < request.order    # type: ignore[operator]
            returned = min(victim.lacking, longest) if served else 0
            step.preempted.append(queue.preempt(victim, memory, returned))
    step.chunks = [(request, min(request.lacking, longest)) for request in queue.catching_up.values()]
    step.trimmed = True
    return budget - queue.decoding.size - sum([tokens for _, tokens in step.chunks])


def serve_some(queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> int:
    """The walk where the budget runs out on the way: one by one."""
    granted: dict[Request, int] = {}
    victims = least_urgent_first(queue)
    for request in list(queue.running.values()):
        if budget == 0:
            break
        if request.order is None:    # preempted by one before it
            continue
        tokens = min(request.lacking, longest, budget)
        while request.order is not None and not memory.grow(request, tokens):
            victim = next(victims)
            returned = granted.pop(victim, 0)
            budget += returned
            step.preempted.append(queue.preempt(victim, memory, returned))
        if request.order is not None:
            granted[request] = tokens
            budget -= tokens
    queue.sit_out([request for request in queue.running.values() if request.decoding and request not in granted])
    step.chunks = [(request, granted[request]) for request in queue.catching_up.values() if request in granted]
    step.trimmed = True
    return budget
