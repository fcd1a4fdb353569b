"""Traces drawn at random: bursts, lattices, gaps of days, conversations, tenants, priorities, prompts that begin alike.

Arrivals are told in units of about one step, so that requests meet whatever a step costs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn.knobs import MODEL_LEN, some
from hypothesis import strategies as st

from traces import Trace

DAYS = 10 ** 15
MOST = 14
LENGTHS = {"ones": (st.just(1), st.just(1)), "usual": (st.integers(1, 60), st.integers(1, 40)),
           "short answers": (st.integers(20, 80), st.integers(1, 3)), "first tokens": (st.integers(1, 60), st.just(1)),
           "long answers": (st.integers(1, 5), st.sampled_from([1, 2, 115])),
           "huge": (st.sampled_from([1, 900, 60_000]), st.sampled_from([1, 2, 70]))}
"""Prompt and output tokens by kind."""


@st.composite
def traces(draw: st.DrawFn, unit: int, kind: str) -> Trace:
    """A trace of up to MOST requests, whose lengths are of this kind."""
    count = draw(some(1, 2, 3, 5) if kind == "huge" else some(1, 2, 3, 5, 8, MOST, MOST))
    prompt, output = (draw(st.lists(each, min_size=count, max_size=count)) for each in LENGTHS[kind])
    columns: dict[str, Any] = {}
    if draw(st.booleans()):
        spare = draw(st.lists(some(-3, 0, 0, 1, 9), min_size=count, max_size=count))
        columns["max_tokens"] = np.maximum(1, np.array(output) + spare)
    if draw(st.booleans()):
        levels = draw(some((0, 1, 2), (-1, 0), (-10 ** 18, 10 ** 18)))
        columns["priority"] = np.array(draw(st.lists(st.sampled_from(levels), min_size=count, max_size=count)))
    names = st.lists(st.sampled_from("abc"), min_size=count, max_size=count).map(tuple)
    columns |= {"tenant": draw(names), "session": draw(names)}
    if draw(st.integers(0, 2)) == 0:
        columns |= draw(turns(unit, prompt, output))
    if draw(st.booleans()):
        columns |= draw(alike(prompt))
    return Trace("drawn", draw(arrivals(unit, count)), np.array(prompt), np.array(output), **columns)


@st.composite
def arrivals(draw: st.DrawFn, unit: int, count: int) -> np.ndarray:
    """All at once, anywhere, on the lattice of the step ends, in bursts, or days apart."""
    gaps = draw(some(st.just(0), st.integers(0, 6 * unit), some(0, unit, 2 * unit, 7 * unit),
                     some(0, 0, 0, 15 * unit + 1), some(0, unit // 2, DAYS)))
    drawn = draw(st.lists(gaps, min_size=count - 1, max_size=count - 1))
    return np.cumsum([draw(some(0, 0, 3)), *drawn], dtype=np.int64)


@st.composite
def turns(draw: st.DrawFn, unit: int, prompt: list[int], output: list[int]) -> dict[str, Any]:
    """Conversations: chains, and turns that follow the same one; some users think, some repeat what was said."""
    parent = [draw(some(-1, row - 1, draw(st.integers(-1, max(-1, row - 1))))) if row else -1
              for row in range(len(prompt))]
    columns: dict[str, Any] = {"parent": np.array(parent)}
    if draw(st.booleans()):
        columns["think"] = np.array([0 if before < 0 else draw(some(0, unit, 5 * unit)) for before in parent])
    if draw(st.booleans()):
        columns["shared"] = np.array([0 if before < 0 else min(tokens, prompt[before] + output[before])
                                      for before, tokens in zip(parent, prompt, strict=True)])
    return columns


@st.composite
def alike(draw: st.DrawFn, prompt: list[int]) -> dict[str, Any]:
    """Hash ids: families of prompts, of which each parts into branches at one of its blocks."""
    block = draw(some(1, 3, 8, 16, 512))
    ids = []
    for row, tokens in enumerate(prompt):
        family, fork, branch = draw(st.integers(0, 2)), draw(some(1, 3, 1000)), draw(st.integers(0, 1))
        ids.append([_id(family, at, branch if at >= fork else None, fork) if family else -1 - 10_000 * row - at
                    for at in range(min(-(-tokens // block), 2 * MODEL_LEN))])
    known: dict[Any, int] = {}
    return {"hash_ids": [[known.setdefault(each, len(known)) for each in row] for row in ids], "hash_block": block}


def _id(family: int, at: int, branch: int | None, fork: int) -> Any:
    """What stands for a block and all before it."""
    return family, at, branch, None if branch is None else fork
