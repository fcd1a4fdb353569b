"""Where the slots of static batching come from: the pool over the longest reservation, in tiny worlds."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import trace_of

import simulator as sim
from simulator.policies import StaticBatching
from simulator.setup import prepare
from simulator.studies.batch_size import size_told

ROWS = [(0, 10, 5), (0, 60, 40), (0, 10, 5)]


def told(policy: StaticBatching, **options: Any) -> list[str]:
    asked = {"max_tokens": "exact", "kv_capacity_tokens": 250, **options}
    return size_told(prepare(sim.Scenario(trace=trace_of(ROWS), policy=policy, **asked)))


def test_the_longest_reservation_is_named_beside_what_most_would_give() -> None:
    rows = [(0, 10, 5)] * 199 + [(0, 60, 40)]
    setup = prepare(sim.Scenario(trace=trace_of(rows), policy=StaticBatching(), max_tokens="exact",
                                 kv_capacity_tokens=250))
    assert setup.policy.slots == 2
    assert size_told(setup) == [
        "static: 2 slots = 250 // 100 tokens, the longest reservation: request 199 (prompt 60 + declared 40); the p99 "
        "of the reservations, 15 tokens, would give 16"]


def test_where_the_longest_is_usual_nothing_stands_beside_it() -> None:
    assert told(StaticBatching()) == [
        "static: 2 slots = 250 // 100 tokens, the longest reservation: request 1 (prompt 60 + declared 40)"]
    assert told(StaticBatching(reserve="exact"))[0].endswith("request 1 (prompt 60 + output 40)")
    assert told(StaticBatching(reserve="model"), max_model_len=125) == [
        "static: 2 slots = 250 // 125 tokens, the longest reservation: the model's own length"]


def test_a_large_pool_leaves_the_default() -> None:
    assert told(StaticBatching(), kv_capacity_tokens=5000) == [
        "static: 32 slots, the most by default; the longest reservation, request 1 (prompt 60 + declared 40), leaves "
        "room for 50"]


@pytest.mark.parametrize(("policy", "pool"), [
    (StaticBatching(max_batch_size=2), 250), (StaticBatching(reserve="pow2"), 250), (StaticBatching(), float("inf")),
    (StaticBatching(), 10)])
def test_where_somebody_set_them_or_nothing_bounds_them_nothing_is_said(policy: StaticBatching, pool: float) -> None:
    assert told(policy, kv_capacity_tokens=pool) == []


def test_a_comparison_says_it() -> None:
    options = {"max_tokens": "exact", "kv_capacity_tokens": 250, "cost_model": "roofline"}
    line = "static: 2 slots = 250 // 100 tokens, the longest reservation: request 1 (prompt 60 + declared 40)"
    assert line in sim.compare(trace_of(ROWS), **options).account().facts
