"""Trie: which prefixes have their KV in blocks that may be reclaimed. It knows no request and no pool.

A node holds consecutive blocks of a prefix; its children are the ways in which that prefix goes on. A node is locked
while somebody has pinned it or one below it. The others may be evicted, leaf by leaf, the one that was touched the
longest ago first, and of a leaf only as many blocks as are needed, from its end.
Source: the radix trie of text-generation-inference. Content is written as spans, never token by token.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush

Span = tuple[Hashable, int, int]
"""Consecutive blocks of some content: what it is, and its first and last position, the last one excluded."""
Text = list[Span]
"""Spans that follow one another."""


def length(text: Text) -> int:
    """Blocks of a text."""
    return sum(high - low for _, low, high in text)


def cut(text: Text, at: int) -> tuple[Text, Text]:
    """The first `at` blocks of a text, and the rest."""
    head: Text = []
    for number, (content, low, high) in enumerate(text):
        if at < high - low:
            middle = low + at
            return ([*head, (content, low, middle)] if at else head), [(content, middle, high), *text[number + 1:]]
        head.append((content, low, high))
        at -= high - low
    return head, []


def common(one: Text, other: Text) -> int:
    """Blocks that two texts have in common at their beginning."""
    same = 0
    for (mine, low, high), (theirs, start, end) in zip(one, other, strict=False):
        if mine != theirs or low != start:
            break
        same += min(high, end) - low
        if high != end:
            break
    return same


class Node:
    """A part of a prefix. Its blocks stand in `text`; `pins` counts those that need it or a node below it."""

    __slots__ = ("children", "parent", "pins", "text", "touched")

    def __init__(self, text: Text, parent: Node | None, touched: int) -> None:
        self.text, self.parent, self.touched = text, parent, touched
        self.children: dict[tuple[Hashable, int], Node] = {}
        self.pins = 0

    @property
    def key(self) -> tuple[Hashable, int]:
        """What tells it from its siblings: its first block."""
        return self.text[0][:2]


class Trie:
    """All prefixes with KV.

    Attributes:
        blocks: Blocks of all nodes.
        locked: Those of locked nodes.
    """

    def __init__(self) -> None:
        self.blocks = self.locked = 0
        self._root = Node([], None, 0)
        self._time = 0
        self._idle: list[tuple[int, int, Node]] = []    # (touched, number, leaf), the oldest first; some are stale
        self._offered = 0

    def match(self, text: Text) -> tuple[int, int]:
        """How many blocks of the text are there, and how many blocks would be locked with them; nothing is touched."""
        node, before, same = self._walk(text)
        idle, at = 0, node
        while at.parent is not None and not at.pins:
            idle, at = idle + length(at.text), at.parent
        return before + same, idle

    def find(self, text: Text) -> tuple[Node, int]:
        """Touch the way of a text: the last node on it, and how many of its blocks are there."""
        node, before, same = self._touch(text)
        return node, before + same

    def pin(self, node: Node) -> None:
        """Lock a node and all above it."""
        at: Node | None = node
        while at is not None:
            if not at.pins:
                self.locked += length(at.text)
            at.pins += 1
            at = at.parent

    def unpin(self, node: Node) -> None:
        """Take one pin away again."""
        at: Node | None = node
        while at is not None:
            at.pins -= 1
            if not at.pins:
                self.locked -= length(at.text)
            at = at.parent
        self._offer(node)

    def insert(self, text: Text) -> int:
        """Put in what is missing of a text: the number of its blocks."""
        node, before, same = self._touch(text)
        missing = cut(text, before + same)[1]
        if not missing:
            return 0
        if same < length(node.text):
            node = self._split(node, same)
        leaf = Node(missing, node, self._time)
        node.children[leaf.key] = leaf
        self.blocks += length(missing)
        self._offer(leaf)
        return length(missing)

    def evict(self, blocks: int) -> int:
        """Give up so many blocks, or as many as are not locked. Returns how many."""
        left = blocks
        while left and self._idle:
            touched, _, leaf = self._idle[0]
            size = length(leaf.text)
            if not _is_idle(leaf) or leaf.touched != touched:
                heappop(self._idle)
            elif size > left:
                leaf.text = cut(leaf.text, size - left)[0]
                left = 0
            else:
                heappop(self._idle)
                self._remove(leaf)
                left -= size
        self.blocks -= blocks - left
        return blocks - left

    def _walk(self, text: Text) -> tuple[Node, int, int]:
        """The last node that has some of a text, how much of it stands above that node, and how much in it."""
        node, before, same, rest = self._root, 0, 0, text
        while rest and same == length(node.text) and (child := node.children.get(rest[0][:2])) is not None:
            node, before, same = child, before + same, common(child.text, rest)
            rest = cut(rest, same)[1]
        return node, before, same

    def _touch(self, text: Text) -> tuple[Node, int, int]:
        self._time += 1
        node, before, same = self._walk(text)
        at: Node | None = node
        while at is not None:
            at.touched = self._time
            at = at.parent
        self._offer(node)
        return node, before, same

    def _offer(self, node: Node) -> None:
        """Let a node be evicted, if it may be."""
        if _is_idle(node):
            self._offered += 1
            heappush(self._idle, (node.touched, self._offered, node))

    def _remove(self, leaf: Node) -> None:
        parent = leaf.parent
        assert parent is not None
        del parent.children[leaf.key]
        leaf.parent = None
        self._offer(parent)

    def _split(self, node: Node, at: int) -> Node:
        """Cut a node in two; returns the upper part. Who has pinned the node keeps the lower."""
        parent = node.parent
        assert parent is not None
        head, rest = cut(node.text, at)
        upper = Node(head, parent, self._time)
        upper.pins = node.pins
        parent.children[upper.key] = upper
        node.text, node.parent = rest, upper
        upper.children[node.key] = node
        return upper


def _is_idle(node: Node) -> bool:
    """Whether it is in the trie, and nobody needs it."""
    return node.parent is not None and not node.pins and not node.children
