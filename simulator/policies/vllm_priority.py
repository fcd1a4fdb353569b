"""vLLM's priority rule: who waits first, who is preempted, and the walk that finds out.

It differs from first come, first served only where memory or the token budget runs short. Then the running requests
are walked in order: a victim may already have its tokens of this step, and gives them back.
Mirrors: vLLM 0.33.0, policy "priority".
"""

from __future__ import annotations

from simulator.memory.base import Memory
from simulator.request import Request
from simulator.step import Queue, Step


def by_priority(request: Request) -> tuple[int, int, str]:
    """The order of the queue: priority, then arrival, then the id as a string."""
    return request.priority, request.arrival, request.name


def serve_by_priority(queue: Queue, memory: Memory, step: Step, budget: int, longest: int) -> int:
    """Give the running requests their tokens one by one; whoever lacks memory preempts the least urgent.

    The victim may be the request itself: then the walk goes on with the next. Returns the budget left.
    """
    granted: dict[Request, int] = {}
    step.chunks.clear()
    for request in list(queue.running.values()):
        if budget == 0:
            break
        if request.order is None:    # preempted by one before it
            continue
        tokens = min(request.lacking, longest, budget)
        while request.order is not None and not memory.grow(request, tokens):
            victim = max(queue.running.values(), key=lambda other: (other.priority, other.arrival))
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
