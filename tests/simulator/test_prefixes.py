"""Shared prefixes from hash ids of any block size and from turns: pairs of requests share what they should."""

from __future__ import annotations

from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

import simulator as sim
from simulator.prefixes import Prefix, prefixes
from traces import Trace


def common(one: Prefix, other: Prefix) -> int:
    """Prompt tokens that two requests share, as a memory finds them."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return max((piece[1] for piece, _ in pairs), default=0)


def test_ids_of_any_size_share_up_to_their_last_common_block() -> None:
    for block in (1, 16, 64, 512):
        trace = Trace("t", arrival=[0, 0, 0], prompt=[3 * block, 4 * block, block], output=[1, 1, 1],
                      hash_ids=((7, 8, 9), (7, 8, 5, 6), (3,)), hash_block=block)
        first, second, third = prefixes(trace)
        assert (common(first, second), common(first, third)) == (2 * block, 0)
        assert [len(first), len(second), len(third)] == [2, 2, 0]


def test_a_last_block_that_is_not_full_reaches_to_the_end_of_the_prompt() -> None:
    trace = Trace("t", arrival=[0, 0], prompt=[70, 70], output=[1, 1], hash_ids=((1, 2), (1, 2)), hash_block=64)
    assert common(*prefixes(trace)) == 70


def test_a_trace_that_tells_nothing_shares_nothing() -> None:
    assert prefixes(Trace("t", arrival=[0], prompt=[1], output=[1])) == []


def test_turns_pass_on_what_they_repeat() -> None:
    # 1 and 2 go on from 0; 3 goes on from 1, but forgets most of it; 4 is alone.
    trace = Trace("t", arrival=[0] * 5, prompt=[100, 150, 130, 80, 50], output=[1] * 5,
                  parent=[-1, 0, 0, 1, -1], shared=[0, 100, 60, 40, 0])
    found = prefixes(trace)
    assert [[common(one, other) for other in found] for one in found] == [
        [100, 100, 60, 40, 0], [100, 100, 60, 40, 0], [60, 60, 60, 40, 0], [40, 40, 40, 40, 0], [0, 0, 0, 0, 0]]
    assert found[4] == ()


@st.composite
def trees(draw: st.DrawFn) -> Trace:
    n = draw(st.integers(1, 9))
    prompt = draw(st.lists(st.integers(1, 12), min_size=n, max_size=n))
    parent = [draw(st.integers(-1, row - 1)) for row in range(n)]
    shared = [0 if before < 0 else draw(st.integers(0, min(prompt[row], prompt[before])))
              for row, before in enumerate(parent)]
    return Trace("t", arrival=[0] * n, prompt=prompt, output=[1] * n, parent=parent, shared=shared)


@settings(max_examples=300, deadline=None)
@given(trees())
def test_turns_share_what_their_tokens_do(trace: Trace) -> None:
    """Against tokens spelled out: each prompt is its predecessor's start and then tokens of its own."""
    tokens: list[list[tuple[int, int]]] = []
    for row, (parent, shared) in enumerate(zip(trace.parent.tolist(), trace.shared.tolist(), strict=True)):
        known = tokens[parent][:shared] if parent >= 0 else []
        tokens.append(known + [(row, at) for at in range(len(known), int(trace.prompt[row]))])
    found = prefixes(trace)
    for one in range(len(trace)):
        for other in range(len(trace)):
            alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1],
                                             zip(tokens[one], tokens[other], strict=False)))
            if one != other:
                assert common(found[one], found[other]) == alike
        assert all(before[1] < after[1] for before, after in zip(found[one], found[one][1:], strict=False))


def test_turns_hit_the_cache_of_the_engine() -> None:
    trace = Trace("t", arrival=[0, 10**9], prompt=[1536, 2048], output=[1, 1], parent=[-1, 0], shared=[0, 1536])
    computed = sim.simulate(trace, "vllm").record.steps["prompt"].tolist()
    assert computed == [1536, 2048 - 1536]
    alone = sim.simulate(Trace("t", trace.arrival, trace.prompt, trace.output), "vllm")
    assert alone.record.steps["prompt"].tolist() == [1536, 2048]
