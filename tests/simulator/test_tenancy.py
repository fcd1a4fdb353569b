"""How tenants fare: their tables, classes and slowdown, on runs small enough to add up by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cluster import scenario, trace_of

from simulator.errors import InputError
from simulator.run_tables import tables as run_tables
from simulator.simulation import run
from simulator.tenancy import jain_index

MS = 10 ** 6


def test_jain_index_of_known_shares() -> None:
    assert jain_index([1, 1, 1, 1]) == 1
    assert jain_index([1, 0, 0, 0]) == 0.25
    assert jain_index([0.5, 1.0]) == pytest.approx(2.25 / 2.5)
    assert jain_index([1]) is None
    assert jain_index([0, 0]) is None


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=9))
def test_jain_index_lies_between_one_over_n_and_one(shares: list[float]) -> None:
    index = jain_index(shares)
    assert index is not None
    assert 1 / len(shares) - 1e-9 <= index <= 1 + 1e-9
    assert jain_index([3 * share for share in shares]) == pytest.approx(index)


def two_tenants(**fields):
    """One slot, 10 ns a step: a's answer of 4 steps, then b's of 2, then a's of 1, in the order of arrival."""
    made = trace_of((0, 4, 4), (0, 4, 2), (0, 4, 1), tenant=("a", "b", "a"))
    return run(scenario(made, **({"knobs": {"max_num_seqs": 1}} | fields)))


def test_each_tenant_by_hand() -> None:
    first, second = two_tenants(goodput={"ttft": 60 / MS}).tenants
    assert (first.tenant, first.requests, first.completed) == ("a", 2, 2)
    assert first.median_ttft_ms == pytest.approx((10 + 70) / 2 / MS)
    assert first.attainment == 0.5    # 10 ns are in time, 70 are not
    assert (second.requests, second.attainment) == (1, 1.0)    # 50 ns
    assert first.request_goodput == second.request_goodput == pytest.approx(1 / 70e-9)


def test_who_is_rejected_is_one_of_its_tenants_requests() -> None:
    made = trace_of((0, 4, 4), (0, 90, 2), (0, 90, 1), tenant=("a", "a", "b"))
    result = run(scenario(made, max_model_len=50))
    found = [(each.tenant, each.requests, each.rejected, each.completed, each.attainment) for each in result.tenants]
    assert found == [("a", 2, 1, 1, None), ("b", 1, 1, 0, None)]
    tables = list(run_tables({"vllm": json.loads(result.to_json())}))
    assert [(row[0], *row[1:4]) for row in tables[-1].rows] == [("a", "2", "1", "1"), ("b", "1", "1", "0")]
    assert tables[-1].header[1:4] == ("requests", "rejected", "finished")
    nobody = list(run_tables({"vllm": json.loads(two_tenants().to_json())}))[-1]
    assert "rejected" not in nobody.header


def test_a_class_takes_the_place_of_the_objectives_of_all() -> None:
    strict = {"b": {"ttft": 49 / MS}}
    result = two_tenants(goodput={"ttft": 1.0}, classes=strict)
    assert [tenant.attainment for tenant in result.tenants] == [1.0, 0.0]
    summary = result.summary()
    assert summary["request_goodput"] == pytest.approx(2 / 70e-9)
    assert summary["jain_index"] == 0.5
    assert summary["classes"] == "b=ttft:4.9e-05"
    alone = two_tenants(classes=strict)    # without goodput, whoever has no class is fine once answered
    assert [tenant.attainment for tenant in alone.tenants] == [1.0, 0.0]


def test_without_objectives_nobody_is_well_served() -> None:
    """There is nothing to meet, and so no share, no goodput and no index of shares."""
    result = two_tenants()
    assert [(each.completed, each.attainment, each.request_goodput) for each in result.tenants] == [
        (2, None, None), (1, None, None)]
    assert result.summary()["jain_index"] is None
    tenants = next(table for table in run_tables({"vllm": json.loads(result.to_json())}) if table.title == "Tenants")
    place = tenants.header.index("well served")
    assert [row[place] for row in tenants.rows] == ["-", "-"]


def test_the_priority_of_a_class_decides_at_the_engine() -> None:
    knobs = {"max_num_seqs": 1, "scheduling_policy": "priority"}
    result = two_tenants(knobs=knobs, classes={"a": {"priority": 5}, "b": {"priority": 1}})
    assert result.timeline.admitted.tolist() == [20, 0, 60]


def test_without_anybody_else_a_tenant_is_as_fast_as_alone() -> None:
    result = two_tenants(isolation=True)
    # Alone, a answers after 40 and 50 ns, b after 20; together after 40 and 70, and 60.
    slowed = [tenant.slowdown for tenant in result.tenants]
    assert slowed == [pytest.approx((40 + 70) / (40 + 50)), pytest.approx(60 / 20)]
    summary = result.summary()
    assert (summary["worst_slowdown"], summary["worst_slowdown_tenant"]) == (pytest.approx(3.0), "b")
    single = run(scenario(trace_of((0, 4, 4), (5, 4, 2), tenant=("a", "a")), isolation=True))
    assert [tenant.slowdown for tenant in single.tenants] == [1.0]


def test_fairness_at_the_router_shields_a_tenant_from_a_flood() -> None:
    rows = [(0, 4, 10)] * 20 + [(1, 4, 10)]
    made = trace_of(*rows, tenant=("flood",) * 20 + ("victim",))
    waits = {}
    for overflow in ("fcfs", "fair", "priority"):
        result = run(scenario(made, knobs={"max_num_seqs": 1}, queue_limit=1, overflow=overflow, isolation=True,
                              classes={"flood": {"priority": 1}, "victim": {"priority": 0}}))
        waits[overflow] = {tenant.tenant: tenant.slowdown for tenant in result.tenants}["victim"]
        assert result.summary()["completed"] == 21
    # An answer takes 100 ns. First come, first served, the victim is the last of 21; by priority it is the second; in
    # turn the third, for the flood, which waits from 0 on, has the first turn.
    assert waits == {"fcfs": pytest.approx(20.99), "fair": pytest.approx(2.99), "priority": pytest.approx(1.99)}


def test_wrong_classes() -> None:
    made = trace_of((0, 4, 4), tenant=("chat",))
    with pytest.raises(InputError, match="unknown tenant of classes 'chta': did you mean 'chat'"):
        run(scenario(made, classes={"chta": {"ttft": 1.0}}))
    with pytest.raises(InputError, match="unknown entry in classes of chat 'tfft': did you mean 'ttft'"):
        scenario(made, classes={"chat": {"tfft": 1.0}})
    with pytest.raises(InputError, match=r"classes of chat: priority must be a whole number, not 0\.5"):
        scenario(made, classes={"chat": {"priority": 0.5}})
    with pytest.raises(InputError, match="classes of chat: ttft must be above 0, not -1"):
        scenario(made, classes={"chat": {"ttft": -1}})
    with pytest.raises(InputError, match="classes of chat must map priority, ttft, tpot or e2el to numbers"):
        scenario(made, classes={"chat": {}})
    nameless = trace_of((0, 4, 4), tenant=None)
    for field in ({"isolation": True}, {"queue_limit": 1, "overflow": "fair"}):
        with pytest.raises(InputError, match="tenants are needed, and made names none; --columns tenant=NAME"):
            run(scenario(nameless, **field))
    many = trace_of(*[(0, 4, 1)] * 101)
    with pytest.raises(InputError, match="isolation simulates each tenant by itself, and made names 101"):
        run(scenario(many, isolation=True))


def test_rows_without_a_class_keep_the_priority_that_they_have() -> None:
    made = trace_of((0, 4, 1), (0, 4, 1), tenant=("a", "b"), priority=np.array([7, 8]))
    result = run(scenario(made, classes={"b": {"priority": 2}}))
    assert result.setup.trace.priority.tolist() == [7, 2]
