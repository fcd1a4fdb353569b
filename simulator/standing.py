"""Standing: how things stand at a replica, in words: who runs, who waits for what, and the pool. It changes nothing."""

from __future__ import annotations

from simulator.counting import counted
from simulator.memory.base import Memory
from simulator.step import Queue


def standing(queue: Queue, memory: Memory) -> str:
    """How many run, wait and are swapped out, what is free, and what the next one needs of it, in one line."""
    counts = {"running": len(queue.running), "of them held after their last token": len(queue.held),
              "waiting": len(queue.waiting), "swapped out": len(queue.swapped)}
    parts = [f"{count} {word}" for word, count in counts.items() if count or word in ("running", "waiting")]
    return ", ".join([*parts, _pool(memory)]) + _first_in_line(queue, memory)


def _pool(memory: Memory) -> str:
    """Blocks free, and how many of these still hold KV that may be reused."""
    if memory.unbounded:
        return "memory without bound"
    kept = f", {memory.evictable} of them evictable" if memory.evictable else ""
    return f"{memory.free} of {memory.capacity} blocks free{kept}"


def _first_in_line(queue: Queue, memory: Memory) -> str:
    """Who is to be let in next, and what that one needs; nothing if nobody waits."""
    if queue.swapped:
        head, tokens = queue.swapped[0], queue.swapped[0].stashed + 1
    elif queue.waiting:
        head, tokens = queue.waiting[0], queue.waiting[0].known
    else:
        return ""
    return (f"; request {head.index} is first in line: {counted(tokens, 'token')}, "
            f"{counted(memory.demand(head, tokens), 'block')}")
