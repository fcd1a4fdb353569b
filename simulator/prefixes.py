"""Prefixes: which tokens of a trace's prompts are the same, as the trace tells. It knows no memory.

A hash id stands for a block of tokens and everything before it, so requests with one id in common have all tokens up
to there in common. Where a trace tells instead how much of the turn before it a prompt repeats, prompts have in
common what they pass on to each other. Blocks may have any size; the memory cuts them into its own. A trace with
neither shares nothing. Of what a turn repeats, only the prompt before it counts: the answer is not followed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

import numpy as np

from traces import Trace

Node = tuple[int, int]
"""A shared piece of a prefix and the prompt tokens up to which it reaches."""
Prefix = tuple[Node, ...]


def prefixes(trace: Trace) -> list[Prefix]:
    """The shared prefix of each request, or an empty list where the trace tells nothing.

    Pieces that one request alone has are left out, since nobody can find them again.
    """
    if trace.hash_ids is not None:
        return _by_ids(trace)
    return _by_turns(trace) if trace.shared is not None else []


def _by_ids(trace: Trace) -> list[Prefix]:
    assert trace.hash_ids is not None
    assert trace.hash_block is not None
    blocks, block = trace.hash_ids, trace.hash_block
    _, ids, counts = np.unique(blocks.values, return_inverse=True, return_counts=True)
    single = np.flatnonzero(counts[ids] == 1)
    values, starts = blocks.values.tolist(), blocks.starts.tolist()
    # A request's shared ids end where its first single one stands, or where its ids end.
    firsts = np.append(single, len(values))[np.searchsorted(single, blocks.starts[:-1])].tolist()
    nodes: dict[Node, Node] = {}    # requests with a piece in common hold the same tuple
    shared: list[Prefix] = []
    for (low, high), first, prompt in zip(pairwise(starts), firsts, trace.prompt.tolist(), strict=True):
        found = values[low:min(first, high)]
        path = ((one, min(at * block, prompt)) for at, one in enumerate(found, 1))
        shared.append(tuple([nodes.setdefault(node, node) for node in path]))
    return shared


def _by_turns(trace: Trace) -> list[Prefix]:
    """Pieces are cut where a prompt ends or another one leaves it, so each is passed on whole."""
    paths = _paths(trace)
    cuts: dict[int, set[int]] = {}
    for owner, end in {piece for path in paths for piece in path[:-1]}:
        cuts.setdefault(owner, set()).add(end)
    pieces, number = {}, 0
    for owner, ends in cuts.items():
        pieces[owner] = [(number + at, end) for at, end in enumerate(sorted(ends))]
        number += len(ends)
    return [_along(path, pieces) for path in paths]


def _paths(trace: Trace) -> list[list[tuple[int, int]]]:
    """For each request, whose tokens its prompt is made of: the request that had them first, and up to which token."""
    assert trace.shared is not None
    assert trace.parent is not None
    prompts, paths = trace.prompt.tolist(), list[list[tuple[int, int]]]()
    for row, (parent, shared) in enumerate(zip(trace.parent.tolist(), trace.shared.tolist(), strict=True)):
        own = [(row, prompts[row])]
        if parent < 0 or not (common := min(shared, prompts[parent])):
            paths.append(own)
            continue
        before = paths[parent]
        at = bisect_left(before, common, key=lambda piece: piece[1])
        paths.append([*before[:at], (before[at][0], common), *own])
    return paths


def _along(path: list[tuple[int, int]], pieces: dict[int, list[Node]]) -> Prefix:
    """The shared pieces of a path: of each owner those between the end before it and its own end."""
    found: list[Node] = []
    start = 0
    for owner, end in path:
        known = pieces.get(owner, [])
        low = bisect_right(known, start, key=lambda node: node[1])
        found += known[low:bisect_right(known, end, key=lambda node: node[1])]
        start = end
    return tuple(found)
