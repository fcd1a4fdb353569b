"""Clusters drawn at random: fast equals exact, nobody is lost, ledgers add up, the same seed gives the same bytes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from worlds import Affine

from cost_models import Constant, CostModel
from simulator.doors import shut
from simulator.policies import (
    FasterTransformer,
    Orca,
    Policy,
    Sglang,
    StaticBatching,
    TensorRtLlm,
    Tgi,
    Vllm,
    Vllm0,
)
from simulator.result import Result
from simulator.routing import ROUTERS
from simulator.scenario import Scenario
from simulator.simulation import run
from traces import Trace

NS = 1e-9
COSTS: list[CostModel] = [Constant(10), Affine(), Affine(3, 0, 2, 50)]
POLICIES: list[Policy] = [
    Vllm(max_num_seqs=4, max_num_batched_tokens=32, block_size=4),
    Vllm(max_num_seqs=8, max_num_batched_tokens=16, block_size=4, scheduling_policy="priority"),
    StaticBatching(max_batch_size=3), StaticBatching(max_batch_size=2, max_wait=40e-6), Tgi(),
    Tgi(max_concurrent_requests=2), Sglang(max_running_requests=4), Vllm0(max_num_seqs=3), Orca(max_bs=3),
    Orca(max_bs=2, pipeline_stages=2), TensorRtLlm(max_batch_size=3), FasterTransformer(max_batch_size=2)]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    count = draw(st.integers(1, 14))
    gaps = draw(st.sampled_from([st.just(0), st.sampled_from([0, 10, 20, 70]), st.integers(0, 60)]))
    arrival = np.cumsum([0, *draw(st.lists(gaps, min_size=count - 1, max_size=count - 1))])
    lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 30)), min_size=count, max_size=count)
    prompt, output = np.array(draw(lengths)).T
    names = st.lists(st.sampled_from("abc"), min_size=count, max_size=count)
    parents = [draw(st.sampled_from([-1, -1, row - 1])) for row in range(count)] if draw(st.booleans()) else None
    hashes = [[row % 3] for row in range(count)]
    return Trace("drawn", arrival, prompt, output, tenant=tuple(draw(names)), session=tuple(draw(names)),
                 hash_ids=hashes, hash_block=8, priority=np.array(draw(st.lists(st.integers(0, 2), min_size=count,
                                                                               max_size=count)), np.int64),
                 parent=parents)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    limit = draw(st.sampled_from([None, 1, 2, 5]))
    retries = draw(st.sampled_from([0, 0, 2]))
    given: dict[str, Any] = {
        "trace": draw(traces()), "policy": draw(st.sampled_from(POLICIES)), "cost_model": draw(st.sampled_from(COSTS)),
        "router": draw(st.sampled_from(list(ROUTERS))), "replicas": draw(st.integers(2, 5)), "queue_limit": limit,
        "overflow": draw(st.sampled_from(["shed", "fcfs", "priority", "fair"])) if limit else "shed",
        "max_concurrency": draw(st.sampled_from([None, None, 1, 3])), "max_retries": retries,
        "request_timeout": draw(st.sampled_from([None, None, 200 * NS])),
        "ttft_timeout": draw(st.sampled_from([None, None, 60 * NS])),
        "retry_backoff": draw(st.sampled_from([0.0, 30 * NS])),
        "kv_capacity_tokens": draw(st.sampled_from([None, 200])), "request_overhead": 0.0,
        "goodput": {"e2el": 0.0005}, "classes": {},
        "noise": draw(st.sampled_from([None, None, 0.3])), "max_model_len": 90,
        "load": draw(st.sampled_from(["trace", "trace", "trace", "saturated"]))}
    return Scenario(**given)


def same(one: Result, other: Result) -> None:
    """The two have the same requests on the same replicas, and the same steps there."""
    assert one.cluster is not None
    assert other.cluster is not None
    assert one.cluster.last.tolist() == other.cluster.last.tolist()
    for name in ("request", "sent", "admitted", "first_token", "last_token", "left", "preemptions"):
        assert getattr(one.timeline, name).tolist() == getattr(other.timeline, name).tolist(), name
    for number, (mine, yours) in enumerate(zip(one.cluster.records, other.cluster.records, strict=True)):
        assert mine.ends.tolist() == yours.ends.tolist(), f"ends of replica {number}"
        assert mine.used.tolist() == yours.used.tolist(), f"blocks of replica {number}"
        for name in ("sent", "stays", "cancelled"):
            assert getattr(mine, name).tolist() == getattr(yours, name).tolist(), f"{name} of replica {number}"
    assert one.record.refused.tolist() == other.record.refused.tolist()
    assert one.outcomes.status.tolist() == other.outcomes.status.tolist()


@given(scenarios())
@settings(max_examples=int(os.environ.get("EXAMPLES", "60")), deadline=None)
def test_fast_equals_exact(scenario: Scenario) -> None:
    fast = run(scenario)
    event(f"{scenario.router}, {scenario.overflow}")
    same(fast, run(scenario.but(exact=True)))
    summary = fast.summary()
    assert summary["num_prompts"] == sum(fast.outcomes.count(status) for status in (
        "finished", "rejected", "failed", "aborted", "skipped"))
    tokens = fast.record.tokens_of(fast.record.last_spans)
    answered = np.bincount(fast.record.last_spans[:, 0], tokens, len(fast.setup.output))[fast.timeline.request]
    assert answered.tolist() == fast.timeline.output.tolist()
    assert fast.slot_ledger.total == fast.slots.count * sum(each.lasts for each in fast.served)
    assert fast.kv_ledger.share("holding") is None or 0 <= fast.kv_ledger.share("holding") <= 1
    for name in ("slots", "tokens", "kv"):
        assert fast.ledger_over_time(name, 7).parts
    assert fast.to_json(detailed=True) == run(scenario).to_json(detailed=True)
    start, end = fast.record.bounds
    assert summary["gpu_seconds"] == pytest.approx(scenario.replicas * (end - start) / 1e9)


@given(scenarios().filter(lambda scenario: scenario.queue_limit))
@settings(max_examples=int(os.environ.get("EXAMPLES", "60")), deadline=None)
def test_who_waits_at_the_router_does_so_while_its_door_is_shut(scenario: Scenario) -> None:
    """All of a wait lies in intervals in which no replica takes a request, and nobody is handed on inside of one."""
    found = run(scenario)
    assert found.cluster is not None
    assert scenario.queue_limit is not None
    door = shut(zip(found.served, found.cluster.served, strict=True), found.setup.most_outstanding)
    handed = np.concatenate([record.sent for record in found.cluster.records])
    came = dict(found.record.sent.tolist())    # of several tries the last one
    for row, at in handed.tolist():
        event("waited" if came[row] < at else "at once")
        if found.outcomes.tries[row] == 1:
            assert door.within(np.array([came[row]]), np.array([at])) == at - came[row]
        assert not ((door.start < at) & (at < door.end)).any()
    shares = found.limits
    if shares is not None:
        assert min(shares.values()) >= 0
        assert sum(shares.values()) == pytest.approx(1)
