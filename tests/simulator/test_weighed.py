"""A line that knows its weight, against adding up; and that a router by KV cache sees what waits without looking."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import trace_of

import simulator as sim
from simulator.ranked import Ranked
from simulator.scenario import Scenario
from simulator.weighed import Weighed


@pytest.mark.parametrize("ranked", [False, True])
@given(st.lists(st.tuples(st.sampled_from(["append", "appendleft", "popleft", "remove", "extend", "clear"]),
                          st.integers(0, 99)), max_size=60))
def test_it_weighs_what_all_of_them_weigh(ranked: bool, acts: list[tuple[str, int]]) -> None:
    line = Weighed[int](Ranked(lambda value: value) if ranked else deque(), lambda value: 3 * value)
    for act, value in acts:
        if act in ("append", "appendleft"):
            getattr(line, act)(value)
        elif act == "extend":
            line.extend([value, value + 1])
        elif act == "clear":
            line.clear()
        elif len(line) and act == "popleft":
            head = line[0]
            assert line.popleft() == head
        elif len(line):
            gone = list(line)[value % len(line)]
            line.remove(gone)
        assert line.weight == 3 * sum(line)
        assert len(line) == len(list(line))
        assert all(each in line for each in line)


@pytest.mark.parametrize("policy", ["vllm", "sglang", "tensorrt_llm", "static"])
def test_a_router_by_kv_cache_looks_at_no_queue(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four hundred at once at two replicas: to add up those that wait took 40,000 looks."""
    weighed = 0
    plain = Weighed.append

    def counting(line: Weighed[int], entry: int) -> None:
        nonlocal weighed
        weighed += 1
        plain(line, entry)

    monkeypatch.setattr(Weighed, "append", counting)
    monkeypatch.setattr(Weighed, "__iter__", None if policy in ("vllm", "static") else Weighed.__iter__)
    result = sim.run(Scenario(trace_of([(0, 30, 5)] * 400), policy, replicas=2, router="least-kv",
                              cost_model="constant:1"))
    assert result.summary()["completed"] == 400
    assert 400 <= weighed <= 800
    assert [len(record.sent) for record in result.cluster.records] == [200, 200]
