"""The bound on replicas: by hand, and never above what a replica does at its best."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Affine, trace_of

import simulator as sim
from simulator.scenario import Scenario
from simulator.setup import prepare
from simulator.studies.capacity.bound import Bound, throughput_bound
from simulator.studies.capacity.objectives import Objective

TIGHT = [Objective({"e2el": 1e-6}, 0.9)]


def bound_of(rows: list[tuple[int, ...]], cost: Affine, **fields: object) -> Bound:
    scenario = Scenario(trace_of(rows), cost_model=cost, max_model_len=4096, **fields)    # type: ignore[arg-type]
    return throughput_bound(prepare(scenario), TIGHT)


@pytest.mark.parametrize(("pool", "at_once", "limit"), [(100_000, 10, "cap"), (510, 5, "KV")])
def test_full_steps_and_what_prompts_add(pool: int, at_once: int, limit: str) -> None:
    """50 requests of 100 and 5 tokens, contexts of 102 on the mean: 200 decodes beside 5,000 prompt tokens of 1 ns."""
    bound = bound_of([(at * 200, 100, 5) for at in range(50)], Affine(), kv_capacity_tokens=pool,
                     knobs={"max_num_seqs": 10})
    step = 7 + 2 * at_once + at_once * 102 // 8
    assert (bound.at_once, bound.limit, bound.context, bound.steps) == (at_once, limit, 102, 250 / at_once)
    assert (bound.decode, bound.prefill) == (pytest.approx(200 / at_once * step * 1e-9), pytest.approx(5000e-9))
    longest = 5 * (7 + 2 + 105 // 8)
    assert bound.available == pytest.approx((49 * 200 + longest) * 1e-9)
    assert bound.replicas == 1
    assert "prompts add" in bound.told()


def test_what_is_worked_off_at_the_end_is_told_apart_from_traffic_that_goes_on() -> None:
    """A us of work each, one at a time, and a us to answer the last one: 3 us in 1.8 us, and 2.5 a us if it goes on."""
    asked = {"kv_capacity_tokens": 100_000, "knobs": {"max_num_seqs": 1}}
    cost = Affine(base=10, per_row=0, per_token=0, context_div=1 << 40)
    few = bound_of([(at * 400, 1, 100) for at in range(3)], cost, **asked)
    assert (few.replicas, few.lasting) == (2, 3)
    assert few.told().startswith("Throughput alone asks for 3 or more if traffic goes on at this rate, and for 2 or "
                                 "more if these requests are all, whose backlog may be worked off at the end: at most")
    many = bound_of([(at * 500, 1, 100) for at in range(11)], cost, **asked)
    assert (many.replicas, many.lasting) == (2, 2)
    assert many.told().startswith("Throughput alone asks for 2 or more: at most 1 sequence runs at once")
    assert bound_of([(0, 1, 100)] * 3, cost, **asked).lasting == 3


def test_few_requests_bound_themselves() -> None:
    bound = bound_of([(0, 100, 5), (10, 100, 5)], Affine())
    assert (bound.at_once, bound.limit) == (2, "requests")


LENGTHS = st.lists(st.tuples(st.integers(1, 200), st.integers(1, 30)), min_size=2, max_size=30)


@given(lengths=LENGTHS, cap=st.sampled_from([1, 2, 5, 40]), base=st.sampled_from([0, 7, 100]),
       policy=st.sampled_from(["vllm", "static", "orca", "sglang"]))
@settings(max_examples=60)
def test_no_replica_is_done_sooner(lengths: list[tuple[int, int]], cap: int, base: int, policy: str) -> None:
    """All at once: the work that the bound counts is at most what the run took, whatever the rule."""
    knob = {"vllm": "max_num_seqs", "static": "max_batch_size", "orca": "max_bs",
            "sglang": "max_running_requests"}[policy]
    cost = Affine(base=base, context_div=1 << 40)
    asked = {"policy": policy, "knobs": {knob: cap}, "kv_capacity_tokens": 100_000}
    rows = [(0, prompt, output) for prompt, output in lengths]
    bound = bound_of(rows, cost, **asked)
    result = sim.run(Scenario(trace_of(rows), cost_model=cost, max_model_len=4096, load="saturated", **asked))
    assert bound.decode + bound.prefill <= result.record.ends[-1] * 1e-9 * (1 + 1e-9)


def test_a_pool_without_bound_bounds_nothing() -> None:
    bound = bound_of([(at * 200, 100, 5) for at in range(50)], Affine(), kv_capacity_tokens=float("inf"),
                     knobs={"max_num_seqs": 20})
    assert (bound.at_once, bound.limit) == (20, "cap")


def test_prompts_that_may_be_found_in_a_cache_add_nothing_for_certain() -> None:
    rows = [(at * 200, 100, 5) for at in range(50)]
    trace = replace(trace_of(rows), hash_ids=tuple((0,) for _ in rows), hash_block=100)
    scenario = Scenario(trace, cost_model=Affine(), max_model_len=4096, kv_capacity_tokens=100_000)
    cached, fresh = (throughput_bound(prepare(each), TIGHT) for each in (
        scenario, scenario.but(knobs={"enable_prefix_caching": False})))
    assert cached.prefill == 0 < fresh.prefill
