"""What limits a run: why the queue stands still, what held up the slowest first tokens, and the load that fills it."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Affine, trace_of

from cost_models import Constant
from simulator.filling import sustained_slots
from simulator.fullness import BINS, Fullness
from simulator.ledger import Ledger
from simulator.limits import waited
from simulator.memory import UNLIMITED
from simulator.policies import POLICIES
from simulator.result import Result
from simulator.simulation import simulate
from simulator.tail import CAUSES

STEP = 1000    # ns


def ran(rows: list[tuple[int, ...]], policy: str = "vllm", pool: float = float("inf"), load: str = "trace",
        **knobs: object) -> Result:
    return simulate(trace_of(rows), policy, knobs=knobs, load=load, cost_model=Constant(STEP), max_tokens="exact",
                    kv_capacity_tokens=pool)


def test_a_cap_of_one_stops_the_second_until_the_first_leaves() -> None:
    """Steps 0 to 2 for the first, 3 to 5 for the second, which waits three of six."""
    found = ran([(0, 4, 3), (0, 4, 3)], max_num_seqs=1)
    assert found.limits == {"nothing": 0.5, "cap": 0.5, "budget": 0, "memory": 0, "batch": 0, "step": 0}


def test_a_spent_token_budget_stops_it_for_a_step() -> None:
    """Two prompts of 4 and a budget of 4: the second waits the first step; a chunk and two decodes follow."""
    found = ran([(0, 4, 2), (0, 4, 2)], max_num_batched_tokens=4)
    assert found.limits is not None
    assert found.limits["budget"] == pytest.approx(1 / len(found.record.ends))
    assert found.summary()["stopped_by_budget_share"] == found.limits["budget"]


def test_full_memory_stops_it_until_the_first_leaves() -> None:
    """A pool of three blocks, of which vLLM keeps one to itself; each request needs the other two."""
    found = ran([(0, 20, 5), (0, 20, 5)], pool=48)
    assert found.limits is not None
    assert (found.limits["memory"], found.limits["nothing"]) == (0.5, 0.5)


def test_who_comes_within_a_step_waits_for_its_end() -> None:
    """The first runs alone from 0 to 2000; the second arrives at 400 and is looked at at 1000."""
    found = ran([(0, 4, 2), (400, 4, 1)])
    assert found.limits == {"nothing": 1, "cap": 0, "budget": 0, "memory": 0, "batch": 0, "step": 0}
    assert found.timeline.queue_time.tolist() == [0, 600]
    tail = found.ttft_tail
    assert tail is not None
    assert (tail.requests, tail.counts["prefill"]) == (1, 1)    # 1600 = 600 in the queue + 1000 for its prompt
    assert (tail.shares["step"], tail.shares["prefill"]) == (600 / 1600, 1000 / 1600)


def test_a_static_batch_lets_nobody_in() -> None:
    found = ran([(0, 4, 2), (100, 4, 2)], "static", max_batch_size=2)
    tail = found.ttft_tail
    assert tail is not None
    assert tail.counts["batch"] == 1
    assert tail.shares["delivery"] == pytest.approx(1000 / 3900)    # the whole answer comes with its last token
    assert found.filling_rate is None


def test_the_slowest_of_a_long_queue_waited_for_the_cap() -> None:
    found = ran([(0, 4, 3)] * 300, max_num_seqs=1)
    tail = found.ttft_tail
    assert tail is not None
    assert (tail.requests, tail.counts["cap"]) == (3, 3)
    assert tail.shares["cap"] > 0.99
    assert sum(tail.counts.values()) == tail.requests


def test_the_document_has_it_with_names() -> None:
    document = json.loads(ran([(0, 4, 3), (0, 4, 3)], max_num_seqs=1).to_json())
    assert document["ttft_tail"]["requests"] == 1
    assert document["ttft_tail"]["causes"].keys() == CAUSES.keys()
    assert document["no_queue_share"] == document["stopped_by_cap_share"] == 0.5


def test_the_batch_over_time_is_what_computes_new_tokens() -> None:
    """Two at once for three steps, then nobody until 6000, then one for three steps: thirds of 9000 ns."""
    found = ran([(0, 4, 3), (0, 4, 3), (6000, 4, 3)])
    whole = Fullness.of([found.record], np.array([0, 3000, 6000, 9000]))
    assert (whole.ends, whole.sequences) == ((3e-6, 6e-6, 9e-6), (2, 0, 1))
    assert whole.drawn() == "█ ▄"
    assert found.fullness is not None
    assert len(found.fullness.sequences) == BINS
    assert np.mean(found.fullness.sequences) == pytest.approx((2 * 3 + 3) / 9)


def test_the_batch_over_time_is_that_of_the_slot_ledger() -> None:
    found = simulate("azure-conv-2023", num_prompts=300, rate_scale=8, replicas=2, knobs={"max_num_seqs": 16})
    parts = found.ledger_over_time("slots", BINS).frame()
    assert found.fullness is not None
    assert found.fullness.sequences == pytest.approx((parts["decode"] + parts["prefill"]).tolist())


def test_without_a_slot_there_is_no_load_that_fills_them() -> None:
    """Nothing bounds the slots, and nobody is patient enough to take one."""
    found = simulate(trace_of([(0, 4, 3)]), knobs={"max_num_seqs": UNLIMITED}, kv_capacity_tokens=inf,
                     cost_model=Constant(STEP), request_overhead=1.0, request_timeout=0.0005)
    assert (found.slots.count, found.filling_rate, found.summary()["aborted"]) == (0, None, 1)


def test_where_nothing_ran_nothing_is_said() -> None:
    found = simulate(trace_of([(0, 5000, 1)]), max_model_len=100, cost_model=Constant(STEP))
    assert (found.limits, found.ttft_tail, found.filling_rate, found.fullness) == (None, None, None, None)
    assert found.summary()["stopped_by_cap_share"] is None
    assert json.loads(found.to_json())["ttft_tail"] is None


ROWS = st.lists(st.tuples(st.sampled_from([0, 300, 1000, 9000]), st.integers(1, 40), st.integers(1, 12)), min_size=1,
                max_size=12)


@pytest.mark.parametrize("policy", POLICIES)
@given(gaps=ROWS, pool=st.sampled_from([96, 4000]))
@settings(max_examples=15)
def test_shares_add_up_and_no_wait_is_lost(policy: str, gaps: list[tuple[int, int, int]], pool: int) -> None:
    at = np.cumsum([gap for gap, _, _ in gaps]).tolist()
    found = ran([(when, *lengths) for when, (_, *lengths) in zip(at, gaps, strict=True)], policy, pool)
    line = found.timeline
    if found.limits is not None:
        assert sum(found.limits.values()) == pytest.approx(1)
        assert min(found.limits.values()) >= 0
    reasons = waited(found.record, line.sent, line.admitted)
    rest = line.queue_time - sum(reasons.values())
    assert (rest >= 0).all()
    if tail := found.ttft_tail:
        assert sum(tail.shares.values()) == pytest.approx(1 if line.ttft.max() else 0)
        assert sum(tail.counts.values()) == tail.requests


def test_the_load_that_fills_it_by_hand_and_by_simulation() -> None:
    """4 slots of 10 tokens at 1 us a step: 0.4 requests leave in each, whatever the prompts cost: nothing here."""
    found = ran([(0, 4, 10)] * 400, load="saturated", max_num_seqs=4)
    assert found.filling_rate == pytest.approx(0.4e6)
    assert found.summary()["steady_request_throughput"] == pytest.approx(found.filling_rate, rel=0.02)


@pytest.mark.parametrize("knobs", [{"max_num_seqs": 32}, {}])
def test_it_is_near_what_a_saturated_replica_serves(knobs: dict[str, int]) -> None:
    found = simulate("azure-conv-2023", "vllm", num_prompts=2000, load="saturated", knobs=knobs)
    assert found.filling_rate == pytest.approx(found.summary()["steady_request_throughput"], rel=0.15)


@pytest.mark.parametrize("tight", [{"model": "llama-3.1-70b", "tensor_parallel_size": 2}, {"gpu": "rtx-4090"}])
def test_a_tight_memory_is_not_promised_more_than_it_sustains(tight: dict[str, object]) -> None:
    """The most that ever ran at once were there while their answers were short: so many slots are never kept busy."""
    found = simulate("azure-conv-2023", num_prompts=1000, load="saturated", **tight)
    assert found.slots.meaning == "the most that ever ran at once"
    assert found.filling_rate == pytest.approx(found.summary()["steady_request_throughput"], rel=0.1)


def test_the_slots_that_a_memory_sustains_by_hand() -> None:
    """Prompt 1, 7 tokens, blocks of 1: a slot holds 1 to 7 tokens, 4 on average, so 12 blocks sustain three."""
    slots = Ledger("slot-ns", "", 7, {"decode": 6, "prefill": 1, "recompute": 0, "held": 0, "behind_prefill": 0,
                                      "stalled": 0}, {})
    kv = Ledger("token-ns", "", 28, {"holding": 28, "reserved": 0, "internal": 0}, {})
    assert [sustained_slots(most, 12, slots, kv) for most in (2, 3, 9)] == [2, 3, 3]
    assert sustained_slots(9, 2, slots, kv) == 1, "whoever fits at all is served"
    nothing = replace(kv, total=0, parts=dict.fromkeys(kv.parts, 0))
    assert sustained_slots(9, 12, slots, nothing) == 9


def test_prompts_that_a_cache_holds_leave_room_for_more() -> None:
    plain = simulate("mooncake-conversation-turns", num_prompts=200)
    hits = plain.prefix_hits
    assert hits is not None
    assert hits[0] > 0
    without = simulate("mooncake-conversation-turns", num_prompts=200, knobs={"enable_prefix_caching": False})
    assert plain.filling_rate is not None
    assert without.filling_rate is not None
    assert plain.filling_rate > without.filling_rate


def test_several_replicas_are_taken_together() -> None:
    """Each of two replicas with one slot has two requests of three steps; the later one waits three."""
    found = simulate(trace_of([(0, 4, 3)] * 4), knobs={"max_num_seqs": 1}, replicas=2, cost_model=Constant(STEP),
                     kv_capacity_tokens=float("inf"))
    tail = found.ttft_tail
    assert tail is not None
    assert found.limits == {"nothing": 0.5, "cap": 0.5, "budget": 0, "memory": 0, "batch": 0, "step": 0}
    assert (tail.requests, tail.counts["cap"], tail.shares["cap"]) == (2, 2, 0.75)    # 3 steps, and 1 for the prompt
    assert found.filling_rate == pytest.approx(2 * 1e6 / 3)


def test_whoever_tries_again_elsewhere_is_counted_once() -> None:
    found = simulate("azure-conv-2023", num_prompts=600, rate_scale=20, replicas=3, router="random", ttft_timeout=0.5,
                     max_retries=3, retry_backoff=0.1, knobs={"max_num_seqs": 32})
    tail = found.ttft_tail
    assert tail is not None
    assert found.summary()["retried"] > 10
    assert sum(tail.counts.values()) == tail.requests > 1
    assert sum(tail.shares.values()) == pytest.approx(1)


def routed(rows: list[tuple[int, ...]], **fields: object) -> Result:
    """One request at a time at each replica, of one step a token."""
    options = {"cost_model": Constant(STEP), "kv_capacity_tokens": float("inf"), "queue_limit": 1}
    return simulate(trace_of(rows), **(options | fields))


def test_who_waits_at_the_router_is_no_nobody() -> None:
    """The first runs from 0 to 2000 and the second from 2000 to 5000: the limit of one is never left free."""
    found = routed([(0, 4, 2), (500, 4, 3)], overflow="fcfs")
    assert found.limits is not None
    assert (found.limits["nothing"], found.limits["queue_limit"]) == (0, 1)
    assert found.summary()["stopped_by_queue_limit_share"] == 1


def test_who_comes_to_a_full_replica_and_is_refused_is_no_nobody() -> None:
    """Two places: one is free until 1000, none until 3000, when both leave. The third request is refused."""
    found = routed([(0, 4, 3), (900, 4, 2), (1500, 4, 1)], queue_limit=2)
    assert found.summary()["shed"] == 1
    assert found.limits is not None
    assert (found.limits["nothing"], found.limits["queue_limit"]) == (0.3, 0.7)


def test_the_door_is_open_while_one_of_two_replicas_takes_a_request() -> None:
    """Both have one from 500 to 2000; the other is busy for 3000 in all: shut for 1500 of 2000 and of 3000."""
    found = routed([(0, 4, 2), (500, 4, 3)], replicas=2)
    assert found.limits is not None
    assert found.limits["queue_limit"] == pytest.approx((1500 + 1500) / (2000 + 3000))


def test_who_hangs_up_leaves_a_place() -> None:
    """The first hangs up at 3900 and is gone at 4000; the second comes at 3500 and runs alone until 7000."""
    found = routed([(0, 4, 9), (3500, 4, 3)], queue_limit=2, request_timeout=3.9e-6)
    assert found.summary()["aborted"] == 1
    assert found.limits is not None
    assert found.limits["queue_limit"] == 500 / 7000


def test_the_front_end_of_an_engine_shuts_its_door_too() -> None:
    found = simulate(trace_of([(0, 4, 3), (0, 4, 3)]), "tgi", knobs={"max_concurrent_requests": 1},
                     cost_model=Constant(STEP), kv_capacity_tokens=1000)
    assert found.cluster is None
    assert found.summary()["failed"] == 1
    assert found.summary()["stopped_by_queue_limit_share"] == 1


def test_a_drained_replica_has_no_place() -> None:
    """Two replicas from 5 s on; the second is drained at 16 s, and from 30 to 32 s the first one is full."""
    second = 10 ** 9
    rows = [(0, 4, 13), (0, 4, 8), (30 * second, 4, 2)]
    found = routed(rows, cost_model=Constant(second), overflow="fcfs", autoscale="queue:1", max_replicas=3,
                   startup_delay=4.0, cooldown=3.0)
    assert found.limits is not None
    # Steps run from 0 to 13 s, from 5 to 13 s, and from 30 to 32 s: all the while nobody else would be taken.
    assert found.limits["queue_limit"] == 1


def test_a_fleet_that_may_grow_is_filled_when_it_has_grown() -> None:
    """Each slot has three steps a request; of 256 slots the limit leaves two."""
    fields = {"autoscale": "queue:2", "max_replicas": 5, "queue_limit": 2}
    assert routed([(0, 4, 3)], **fields).filling_rate == pytest.approx(5 * 2 / 3 * 1e6)


def test_nobody_fills_slots_beyond_counting() -> None:
    """A step of so many could not be priced."""
    found = simulate(trace_of([(0, 4, 3)]), "orca", knobs={"max_bs": 10**12}, cost_model=Affine(1, per_row=10**9),
                     kv_capacity_tokens=float("inf"))
    assert found.filling_rate is None
