"""Tree: a radix tree over runs of tokens, with locks, and the leaves that were used least recently first to go.

A token is known by the id of the run that covers it and by its position; equal ids stand for equal tokens up to there.
So an edge costs as much as it has runs, however many tokens they cover. It knows requests only as content that nobody
shares, and neither memory nor clock: "recently" counts the walks through the tree.
Source: the radix cache of SGLang 0.5.23. A walk that ends inside an edge cuts it there; it refreshes all it passes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from simulator.memory.base import UNLIMITED
from simulator.request import Request

Runs = Sequence[tuple[Hashable, int]]
"""Ids and the positions up to which each reaches, in that order."""


def runs_of(request: Request) -> Runs:
    """All tokens of a request: its shared prefix, then what is its own."""
    return (*request.prefix, (request, UNLIMITED))


class Node:
    """The tokens `start` to `end` of everybody who comes through here.

    ``locks`` counts who holds it, ``used`` is the latest walk that passed it, ``born`` its age among its siblings.
    """

    __slots__ = ("born", "children", "end", "key", "locks", "parent", "queued", "runs", "start", "used")

    def __init__(self, parent: Node | None, key: Hashable, runs: Runs, start: int, end: int, used: int,
                 born: int) -> None:
        self.parent, self.key, self.runs, self.start, self.end = parent, key, runs, start, end
        self.used, self.born, self.locks, self.queued = used, born, 0, False
        self.children: dict[Hashable, Node] = {}

    def __len__(self) -> int:
        return self.end - self.start


class Tree:
    """Content in pages of `page` tokens.

    Attributes:
        evictable: Tokens that nobody holds.
        shared: Tokens that somebody holds, counted once for each holder beyond the first.
    """

    def __init__(self, page: int = 1) -> None:
        self.page, self.evictable, self.shared = page, 0, 0
        self.root = Node(None, None, (), 0, 0, 0, 0)
        self._walks = self._births = 0
        self._line: list[tuple[int, int, Node]] = []    # (used, born, node): leaves to evict; some have been used since

    def walk(self, runs: Runs, limit: int, since: Node | None = None) -> Node:
        """The node at which the longest known part of the first `limit` tokens ends, going on from `since`."""
        self._walks += 1
        node = since or self.root
        self._refresh(node)
        limit -= limit % self.page
        while node.end < limit:
            child = node.children.get(self._key(runs, node.end))
            if child is None:
                break
            child.used = self._walks
            reach = self._agreement(child, runs, limit)
            if reach < child.end:
                return self._cut(child, reach)
            node = child
        return node

    def insert(self, runs: Runs, limit: int, since: Node | None = None) -> tuple[Node, int]:
        """The node at which the first `limit` tokens end, whole pages only, and how many of them were there before."""
        node = self.walk(runs, limit, since)
        known, limit = node.end, limit - limit % self.page
        if known < limit:
            node = self._grow(node, runs, limit)
        return node, known

    def lock(self, node: Node, above: Node | None = None) -> None:
        """Hold the content from behind `above` up to the end of a node."""
        top = above or self.root
        while node is not top:
            if node.locks:
                self.shared += len(node)
            else:
                self.evictable -= len(node)
            node.locks += 1
            assert node.parent is not None
            node = node.parent

    def unlock(self, node: Node) -> None:
        """Hold the content up to the end of a node no longer."""
        while node.parent is not None:
            node.locks -= 1
            if node.locks:
                self.shared -= len(node)
            else:
                self.evictable += len(node)
                self._line_up(node)
            node = node.parent

    def evict(self, tokens: int) -> int:
        """Forget whole leaves that nobody holds until so many tokens are gone, or none is left; returns how many are.

        The least recently used goes first.
        """
        gone = 0
        while gone < tokens and self._line:
            used, _, node = heappop(self._line)
            node.queued = False
            if node.used > used:
                self._line_up(node)
            elif not node.locks and not node.children:
                gone += len(node)
                self._remove(node)
        return gone

    def idle_part(self, node: Node) -> int:
        """Tokens up to the end of a node that nobody holds."""
        idle = 0
        while node.parent is not None and not node.locks:
            idle += len(node)
            node = node.parent
        return idle

    def _refresh(self, node: Node) -> None:
        """A walk begins here: it has passed all that lies above."""
        at: Node | None = node
        while at is not None:
            at.used = self._walks
            at = at.parent

    def _key(self, runs: Runs, at: int) -> Hashable:
        """By what a node knows the child that begins at a position: the first page of it."""
        first = bisect_right(runs, at, key=_end)
        if self.page == 1:
            return runs[first][0]
        return _slice(runs, at, at + self.page)

    def _agreement(self, node: Node, runs: Runs, limit: int) -> int:
        """Up to where a node's tokens are those of `runs`, in whole pages."""
        at, mine = node.start, bisect_right(runs, node.start, key=_end)
        limit = min(limit, node.end)
        for name, end in node.runs:
            while at < min(end, limit):
                if runs[mine][0] != name:
                    return at - at % self.page
                at = min(end, runs[mine][1])
                while runs[mine][1] <= at:
                    mine += 1
        return min(at, limit)

    def _cut(self, lower: Node, at: int) -> Node:
        """Cut a node in two; returns the upper part. Whoever holds it holds both."""
        assert lower.parent is not None
        upper = Node(lower.parent, lower.key, _slice(lower.runs, lower.start, at), lower.start, at, lower.used,
                     lower.born)
        upper.locks = lower.locks
        lower.parent.children[lower.key] = upper
        lower.runs, lower.parent, lower.start = _slice(lower.runs, at, lower.end), upper, at
        lower.key = self._key(lower.runs, at)
        upper.children[lower.key] = lower
        return upper

    def _grow(self, parent: Node, runs: Runs, end: int) -> Node:
        self._births += 1
        start, key = parent.end, self._key(runs, parent.end)
        leaf = Node(parent, key, _slice(runs, start, end), start, end, self._walks, self._births)
        parent.children[key] = leaf
        self.evictable += len(leaf)
        self._line_up(leaf)
        return leaf

    def _line_up(self, node: Node) -> None:
        """Put a node into the line of those to go, if it is a leaf that nobody holds."""
        if not node.queued and not node.locks and not node.children and node.parent is not None:
            node.queued = True
            heappush(self._line, (node.used, node.born, node))

    def _remove(self, leaf: Node) -> None:
        parent, leaf.parent = leaf.parent, None
        assert parent is not None
        del parent.children[leaf.key]
        self.evictable -= len(leaf)
        self._line_up(parent)


def _end(run: tuple[Hashable, int]) -> int:
    return run[1]


def _slice(runs: Runs, start: int, end: int) -> Runs:
    """The runs that cover the positions `start` to `end`."""
    first, last = bisect_right(runs, start, key=_end), bisect_right(runs, end - 1, key=_end)
    return (*runs[first:last], (runs[last][0], end))
