"""The order in which those who wait are asked. Mirrors: SGLang 0.5.23.

An order is made anew for every prefill pass and stays until the next. Orders that look at the cache are first come,
first served where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from simulator.memory.base import Memory
from simulator.memory.radix import Radix
from simulator.memory.tree import Tree, runs_of
from simulator.request import Request
from simulator.step import Queue

LONGEST_SORTED_QUEUE = 128
"""Waiting requests up to which the longest match is worth looking for."""
IN_BATCH = 32
"""A request that finds no more than so many tokens, but so many with one that waits before it, waits for that one."""

Order = Callable[[Sequence[Request], Memory, np.random.Generator], Sequence[Request]]


def arrange(name: str, queue: Queue, memory: Memory, rng: np.random.Generator) -> None:
    """Put the queue into the order of that name."""
    if name != "fcfs":
        queue.arrange(ORDERS[name](list(queue.waiting), memory, rng))


def first_come(waiting: Sequence[Request], memory: Memory, rng: np.random.Generator) -> Sequence[Request]:
    """As they came; who was retracted has come again."""
    return waiting


def longest_output(waiting: Sequence[Request], memory: Memory, rng: np.random.Generator) -> Sequence[Request]:
    """The largest declared output first."""
    return sorted(waiting, key=lambda request: -request.max_tokens)


def shuffled(waiting: Sequence[Request], memory: Memory, rng: np.random.Generator) -> Sequence[Request]:
    """Any order."""
    return [waiting[at] for at in rng.permutation(len(waiting)).tolist()]


def longest_prefix(waiting: Sequence[Request], memory: Memory, rng: np.random.Generator) -> Sequence[Request]:
    """The longest match in the cache first, those that had better wait for another one's prompt last."""
    if len(waiting) > LONGEST_SORTED_QUEUE or not isinstance(memory, Radix):
        return waiting
    others = Tree()
    keys = {request: _distance(request, memory.cached(request), others) for request in waiting}
    return sorted(waiting, key=keys.__getitem__)


def _distance(request: Request, found: int, others: Tree) -> float:
    """The key of one request; `others` are those before it that find little, for it to match against."""
    if found <= IN_BATCH:
        if others.walk(runs_of(request), request.known).end >= IN_BATCH:
            return inf
        others.insert(runs_of(request), request.known)
    return -found


def depth_first(waiting: Sequence[Request], memory: Memory, rng: np.random.Generator) -> Sequence[Request]:
    """As a walk through the cache's tree meets their matches, heavy branches first."""
    return memory.depth_first(waiting) if isinstance(memory, Radix) else waiting


ORDERS: dict[str, Order] = {"fcfs": first_come, "lpm": longest_prefix, "lof": longest_output, "random": shuffled,
                            "dfs-weight": depth_first}
"""Orders by the engine's names for its schedule policies."""
