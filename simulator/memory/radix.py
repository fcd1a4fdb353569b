"""Radix cache: paged memory whose content stays in a tree after it is freed, until the space is needed.

What a request has computed enters the tree when the step is over: its prompt chunk by chunk, what it generates when it
finishes. Until then that is its own. What two computed at the same time is kept once. KV that nobody holds goes leaf by
leaf, the least recently used first, and only when a step finds no empty block.
Source: SGLang 0.5.23. A request finds all but its last token; one that is retracted puts nothing new into the tree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from simulator.batch import DecodingSet
from simulator.memory.base import Chunks, Lengths, Memory
from simulator.memory.tree import Node, Tree, runs_of
from simulator.request import Request


class Radix(Memory):
    """A pool of `capacity` blocks, here called pages, of `block_size` tokens."""

    name = "radix"

    def __init__(self, capacity: int, block_size: int = 1) -> None:
        super().__init__(capacity)
        self.block_size = block_size
        self._empty = capacity
        self._tree = Tree(block_size)
        self._held: dict[Request, Node] = {}    # the node at which that part ends of a request that is in the tree

    @property
    def free(self) -> int:
        return self._empty + self.evictable

    @property
    def evictable(self) -> int:
        return self._tree.evictable // self.block_size

    @property
    def empty(self) -> int:
        return self._empty

    @property
    def shared_tokens(self) -> int:
        return self._tree.shared

    def cached(self, request: Request) -> int:
        return self._find(request).end

    def demand(self, request: Request, tokens: int) -> int:
        node = self._find(request)
        return self.blocks_for(tokens) - (node.end - self._tree.idle_part(node)) // self.block_size

    def hold(self, request: Request) -> None:
        node = self._held[request] = self._find(request)
        self._tree.lock(node)
        request.reuse(node.end)

    def grow(self, request: Request, tokens: int) -> bool:
        new = request not in self._held
        if new:
            self.hold(request)
        if self._take(self._growth(request, tokens)):
            return True
        if new:
            self._tree.unlock(self._held.pop(request))
            request.reuse(0)
        return False

    def take(self, decoding: DecodingSet, chunks: Chunks) -> bool:
        return self._take(decoding.demand + sum([self._growth(request, tokens) for request, tokens in chunks]))

    def foresee(self, decoding: DecodingSet, steps: int) -> list[int]:
        """As far as the empty blocks go: a step that must evict asks for itself."""
        used, most = list(accumulate(decoding.demands(steps), initial=self.used))[1:], self.used + self._empty
        return used[:bisect_right(used, most)] if used[-1] > most else used

    def extend(self, blocks: int) -> None:
        self._empty -= blocks

    def computed(self, chunks: Chunks) -> None:
        for request, _ in chunks:
            node = self._held[request]
            last, known = self._tree.insert(runs_of(request), request._computed, node)
            self._tree.lock(last, node)
            self._held[request] = last
            self._empty += (known - node.end) // self.block_size    # the tree had them: somebody else was faster

    def release(self, request: Request, *, ahead: int = 0, returns: bool = False) -> None:
        node = self._held.pop(request)
        computed, kept = request.computed, node.end
        if not returns and computed - kept >= self.block_size:
            last, known = self._tree.insert(runs_of(request), computed, node)
            self._empty += (known - node.end) // self.block_size
            kept = last.end
        self._empty += self.blocks_for(computed + ahead) - kept // self.block_size
        self._tree.unlock(node)

    def evict(self, blocks: int) -> None:
        lacking = blocks - self._empty
        if lacking > 0:
            self._empty += self._tree.evict(lacking * self.block_size) // self.block_size

    def footprint(self, prompt: Lengths, output: Lengths, max_tokens: Lengths) -> Lengths:
        # The last token generated never gets KV: nothing is computed after it.
        return -(-(prompt + output - 1) // self.block_size)

    def depth_first(self, requests: Iterable[Request]) -> list[Request]:
        """The requests in the order of a walk through the tree that goes deep first, and first where most of them are.

        Where nodes have equally many, the older one comes first; requests at one node keep their order.
        """
        at: dict[Node, list[Request]] = {}
        for request in requests:
            at.setdefault(self._find(request), []).append(request)
        return _gather(self._tree.root, at, *_weigh(at))

    def _find(self, request: Request) -> Node:
        return self._tree.walk(runs_of(request), request.known - 1)

    def _growth(self, request: Request, tokens: int) -> int:
        computed = request.computed
        return self.blocks_for(computed + tokens) - self.blocks_for(computed)

    def _take(self, blocks: int) -> bool:
        if blocks > self.free:
            return False
        self.evict(blocks)
        self._empty -= blocks
        return True


def _weigh(at: dict[Node, list[Request]]) -> tuple[dict[Node, int], dict[Node, list[Node]]]:
    """How many requests are at or below each node, and the children of each that have any."""
    weight: dict[Node, int] = {}
    below: dict[Node, list[Node]] = {}
    for node, requests in at.items():
        up: Node | None = node
        while up is not None:
            if up not in weight and up.parent is not None:
                below.setdefault(up.parent, []).append(up)
            weight[up] = weight.get(up, 0) + len(requests)
            up = up.parent
    return weight, below


def _gather(root: Node, at: dict[Node, list[Request]], weight: dict[Node, int],
            below: dict[Node, list[Node]]) -> list[Request]:
    """Everybody below a node, the heaviest child first, then those at the node itself."""
    found: list[Request] = []
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            found += at.get(node, [])
            continue
        stack.append((node, True))
        heaviest_last = sorted(below.get(node, []), key=lambda child: (-weight[child], child.born), reverse=True)
        stack += [(child, False) for child in heaviest_last]
    return found
