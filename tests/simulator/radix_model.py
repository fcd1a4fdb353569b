"""The radix cache as it reads, token by token: what the fast one is compared with. Slow, plain, and sharing no code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulator.request import Request

Token = tuple[Any, int]


def tokens_of(request: Request, n: int) -> list[Token]:
    """The first tokens of a request: each is known by the run that covers it, and its position."""
    return [(next((name for name, end in request.prefix if at < end), request.index), at) for at in range(n)]


class PlainNode:
    """A stretch of tokens that belong together until somebody cuts it."""

    def __init__(self, parent: PlainNode | None, tokens: list[Token], used: int) -> None:
        self.parent, self.tokens, self.used, self.locks = parent, tokens, used, 0
        self.children: list[PlainNode] = []

    def path(self) -> Iterator[PlainNode]:
        """From here up to below the root."""
        at: PlainNode | None = self
        while at is not None and at.parent is not None:
            yield at
            at = at.parent

    def depth(self) -> int:
        return sum(len(node.tokens) for node in self.path())


class PlainRadix:
    """The pool, in tokens; pages of `page` tokens."""

    def __init__(self, capacity: int, page: int) -> None:
        self.page, self.empty, self.clock = page, capacity, 0
        self.root = PlainNode(None, [], 0)
        self.held: dict[Request, PlainNode] = {}

    def nodes(self) -> list[PlainNode]:
        found, stack = [], [*self.root.children]
        while stack:
            node = stack.pop()
            found.append(node)
            stack += node.children
        return found

    @property
    def evictable(self) -> int:
        return sum(len(node.tokens) for node in self.nodes() if not node.locks)

    @property
    def shared(self) -> int:
        return sum(len(node.tokens) * (node.locks - 1) for node in self.nodes() if node.locks)

    def walk(self, tokens: list[Token]) -> PlainNode:
        self.clock += 1
        node, rest = self.root, tokens[:len(tokens) // self.page * self.page]
        while rest:
            child = next((child for child in node.children if child.tokens[:self.page] == rest[:self.page]), None)
            if child is None:
                break
            child.used = self.clock
            same = next((at for at, pair in enumerate(zip(child.tokens, rest, strict=False)) if pair[0] != pair[1]),
                        min(len(child.tokens), len(rest)))
            same -= same % self.page
            if same < len(child.tokens):
                return self.cut(child, same)
            node, rest = child, rest[same:]
        return node

    def cut(self, lower: PlainNode, at: int) -> PlainNode:
        parent = lower.parent
        upper = PlainNode(parent, lower.tokens[:at], lower.used)
        upper.locks, upper.children = lower.locks, [lower]
        parent.children[parent.children.index(lower)] = upper
        lower.parent, lower.tokens = upper, lower.tokens[at:]
        return upper

    def insert(self, tokens: list[Token]) -> tuple[PlainNode, int]:
        node = self.walk(tokens)
        known, full = node.depth(), len(tokens) // self.page * self.page
        if known < full:
            leaf = PlainNode(node, tokens[known:full], self.clock)
            node.children.append(leaf)
            node = leaf
        return node, known

    def lock(self, node: PlainNode, by: int) -> None:
        for each in node.path():
            each.locks += by

    def cached(self, request: Request) -> int:
        return self.walk(tokens_of(request, request.known - 1)).depth()

    def hold(self, request: Request) -> None:
        self.held[request] = self.walk(tokens_of(request, request.known - 1))
        self.lock(self.held[request], 1)

    def paged(self, tokens: int) -> int:
        return -(-tokens // self.page) * self.page

    def take(self, tokens: int) -> None:
        self.evict(tokens)
        self.empty -= tokens

    def evict(self, tokens: int) -> None:
        while self.empty < tokens:
            leaves = [node for node in self.nodes() if not node.children and not node.locks]
            if not leaves:
                return
            leaf = min(leaves, key=lambda node: node.used)
            leaf.parent.children.remove(leaf)
            self.empty += len(leaf.tokens)

    def computed(self, request: Request) -> None:
        old = self.held[request]
        before = old.depth()
        node, known = self.insert(tokens_of(request, request.computed))
        self.empty += known - before
        self.lock(node, 1)
        self.lock(old, -1)
        self.held[request] = node

    def release(self, request: Request, returns: bool) -> None:
        old = self.held.pop(request)
        before, computed = old.depth(), request.computed
        kept = before
        if not returns and computed // self.page * self.page > before:
            node, known = self.insert(tokens_of(request, computed))
            self.empty += known - before
            kept = node.depth()
        self.empty += self.paged(computed) - kept
        self.lock(old, -1)
