"""Prefixes: which tokens of a trace's prompts are the same, as the trace's hash ids tell. It knows no memory.

A hash id stands for a block of tokens and everything before it, so requests with one id in common have all tokens up
to there in common. Blocks may have any size; the memory cuts them into its own. A trace without ids shares nothing.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, takewhile

from traces import Trace

Prefix = tuple[tuple[int, int], ...]
"""Shared ids and the prompt tokens up to which each reaches."""


def prefixes(trace: Trace) -> list[Prefix]:
    """The shared prefix of each request, or an empty list where the trace has no ids.

    Ids that occur once are left out, since nobody can find them again.
    """
    if trace.hash_ids is None:
        return []
    seen = Counter(chain.from_iterable(trace.hash_ids))
    block = trace.hash_block or 1
    shared: list[Prefix] = []
    for ids, prompt in zip(trace.hash_ids, trace.prompt.tolist(), strict=True):
        known = list(takewhile(lambda one: seen[one] > 1, ids))
        shared.append(tuple((one, min(at * block, prompt)) for at, one in enumerate(known, 1)))
    return shared
