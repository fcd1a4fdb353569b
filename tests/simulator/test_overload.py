"""From half to ten times what is served, in a tight pool: every run ends, and its tokens bound what it takes."""

from __future__ import annotations

import pytest
from overload import CASES, LOADS, REQUESTS, counts

MOST_PREEMPTIONS = {"vllm, first chunks admitted": 4.0}
"""A request, on average. Who is let in for a first chunk is thrown out when the rest of the prompt finds no room: so
the engine does (vLLM pull request 37307), and why it looks at whole prompts by default.
"""
USUAL = 1.5


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", CASES)
def test_it_ends_after_so_many_steps_a_token(name: str, load: float) -> None:
    found = counts(name, load)
    assert found.ended == REQUESTS
    assert found.plans <= found.steps <= 1 + found.again
    assert found.preemptions <= MOST_PREEMPTIONS.get(name, USUAL)
    assert found.again <= 1.5
