"""Where requests wait while no replica takes one: in which order they leave, and who can be taken out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.overflow import Line, line_for
from simulator.request import Request

TENANTS = ("a", "b", "c")


def requests(priorities: list[int]) -> list[Request]:
    return [Request(index, 0, 1, 1, priority=priority) for index, priority in enumerate(priorities)]


def filled(overflow: str, tenants: str, priorities: list[int] | None = None) -> tuple[Line, list[Request]]:
    line = line_for(overflow, tuple(tenants))
    assert line is not None
    here = requests(priorities or [0] * len(tenants))
    for request in here:
        line.push(request)
    return line, here


def drained(line: Line) -> list[int]:
    return [line.pop().index for _ in range(len(line))]


@pytest.mark.parametrize(("overflow", "order"), [
    ("fcfs", [0, 1, 2, 3, 4, 5]), ("priority", [1, 4, 0, 2, 3, 5]), ("fair", [0, 3, 4, 1, 5, 2])])
def test_each_order_by_hand(overflow: str, order: list[int]) -> None:
    line, _ = filled(overflow, "aaabcb", [1, 0, 1, 1, 0, 2])
    assert drained(line) == order


@pytest.mark.parametrize("overflow", ["fcfs", "priority", "fair"])
def test_who_hangs_up_is_taken_out_once(overflow: str) -> None:
    line, here = filled(overflow, "abc")
    assert line.remove(here[1])
    assert not line.remove(here[1])
    assert not line.remove(Request(9, 0, 1, 1) if overflow != "fair" else Request(0, 0, 1, 1))
    assert drained(line) == [0, 2]


def test_a_tenant_that_comes_back_waits_for_its_turn() -> None:
    line, _ = filled("fair", "ab")
    assert line.pop().index == 0
    line.push(Request(0, 0, 1, 1))
    assert drained(line) == [1, 0]


@given(st.sampled_from(["fcfs", "priority", "fair"]),
       st.lists(st.tuples(st.sampled_from(TENANTS), st.integers(0, 2), st.booleans()), max_size=30))
def test_everybody_leaves_once(overflow: str, drawn: list[tuple[str, int, bool]]) -> None:
    line, here = filled(overflow, "".join(tenant for tenant, _, _ in drawn) or "a", [each[1] for each in drawn] or [0])
    gone = [request.index for request, (_, _, leaves) in zip(here, drawn, strict=False) if leaves]
    assert all(line.remove(here[index]) for index in gone)
    left = drained(line)
    assert sorted(left + gone) == list(range(len(here)))
    if overflow == "fcfs":
        assert left == sorted(left)
    if overflow == "priority":
        assert left == sorted(left, key=lambda index: (here[index].priority, index))
