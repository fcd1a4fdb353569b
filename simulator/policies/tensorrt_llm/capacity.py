"""The capacity scheduler, the first stage: which active requests fit, by count and by KV cache, and who is paused.

Each rule lets generating requests through, and returns the contexts that fit beside them, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge

from simulator.policies.tensorrt_llm.active import Active
from simulator.request import Request
from simulator.step import Step

Rule = Callable[[Active, Step], list[Request]]


def guaranteed_no_evict(active: Active, step: Step) -> list[Request]:
    """Whoever starts can end: its blocks up to its declared end fit beside what all others still come to.

    The first that does not fit stops the rest.
    """
    memory = active.memory
    return _with_admissible(active, step, memory.capacity - memory.pledged, memory.to_completion)


def static_batch(active: Active, step: Step) -> list[Request]:
    """The same, but contexts wait while anybody generates."""
    if active.generations:
        step.blocked = "batch"
        return []
    return guaranteed_no_evict(active, step)


def max_requests(active: Active, step: Step) -> list[Request]:
    """Everybody, up to the cap: there is no KV cache to look at."""
    return _with_admissible(active, step, 0, lambda request: 0)


def max_utilization(active: Active, step: Step) -> list[Request]:
    """Whoever finds blocks for its next step; where one does not, the last started is paused.

    If all who run find theirs and nobody waits before one of them, there is no need to walk the list.
    """
    spare = active.memory.free - active.one_step_of_all()
    if spare < 0 or active.overtaken:
        return _walk(active, step)
    return _with_admissible(active, step, spare, active.one_step)


def _with_admissible(active: Active, step: Step, free: int, need: Callable[[Request], int]) -> list[Request]:
    """Contexts under way, and those who wait, up to the cap or to the first that needs more than is `free`."""
    count, found = len(active.queue.running), list[Request]()
    for request in active.queue.waiting:
        free -= need(request)
        if count >= active.slots or free < 0:
            step.blocked = "cap" if count >= active.slots else "memory"
            break
        count += 1
        found.append(request)
    return active.in_order(active.contexts + found)


def _walk(active: Active, step: Step) -> list[Request]:
    """Walk the list in order. Who does not fit pauses the last started, maybe itself, and tries again.

    The list ends at the last one paused. A context that does not fit while nobody after it has started ends it, too.
    """
    memory, place = active.memory, active.place
    started, found = active.in_order(active.queue.running.values()), list[Request]()
    count, free = 0, memory.free
    for request in merge(tuple(started), active.queue.waiting, key=place):
        if step.preempted and place(request) >= place(step.preempted[-1]):
            return found
        need = active.one_step(request)
        while count >= active.slots or need > free:
            step.blocked = "cap" if count >= active.slots else "memory"
            if not started or place(started[-1]) < place(request):
                return found
            step.preempted.append(victim := started.pop())
            free += memory.held(victim)
            if victim is request:
                return found
        count, free = count + 1, free - need
        if request.order is None or active.in_context(request):
            found.append(request)
    return found


RULES: dict[str, Rule] = {"GUARANTEED_NO_EVICT": guaranteed_no_evict, "MAX_UTILIZATION": max_utilization,
                          "STATIC_BATCH": static_batch, "MAX_REQUESTS": max_requests}
"""By the names that `capacity_scheduler_policy` takes."""
