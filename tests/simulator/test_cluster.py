"""Several replicas behind a router: whole runs, against what one replica does and against sums over all."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simulator as sim
from cost_models import Constant
from simulator.errors import InputError, StalledError
from simulator.remarks import remarks
from simulator.routing import ROUTERS
from simulator.scenario import Scenario
from simulator.simulation import run
from traces import Trace, TraceError


def trace_of(*rows: tuple[int, int, int], **columns) -> Trace:
    """Requests of (arrival in ns, prompt, output)."""
    arrival, prompt, output = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    one = [str(row) for row in range(len(rows))]
    known = {"session": one, "tenant": one, "hash_ids": [[row] for row in range(len(rows))], "hash_block": 16}
    return Trace("made", arrival, prompt, output, **(known | columns))


def scenario(trace: Trace, **fields) -> Scenario:
    return Scenario(**{"trace": trace, "policy": "vllm", "cost_model": Constant(10), "request_overhead": 0.0} | fields)


@pytest.mark.parametrize("router", ROUTERS)
def test_two_requests_of_very_different_length_both_finish(router: str) -> None:
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 500)), replicas=2, router=router))
    assert result.summary()["completed"] == 2
    assert result.requests["left"].max() * 1e9 == 10 * 500


def test_each_replica_does_what_it_does_alone() -> None:
    rows = [(0, 4, 3), (3, 9, 5), (5, 4, 2), (12, 30, 7), (25, 4, 40), (26, 4, 1)]
    both = run(scenario(trace_of(*rows), replicas=2)).requests
    for first in (0, 1):
        start = rows[first][0]
        own = [(at - start, prompt, output) for at, prompt, output in rows[first::2]]
        alone = run(scenario(trace_of(*own))).requests
        mine = both.iloc[first::2].reset_index(drop=True)
        for column in ("ttft", "e2el", "queue_time", "tpot"):
            assert np.allclose(mine[column], alone[column], rtol=0, atol=1e-15, equal_nan=True), column


def test_one_replica_behind_a_router_is_one_replica() -> None:
    rows = [(0, 4, 3), (3, 9, 5), (5, 4, 2), (12, 30, 7), (25, 4, 40), (26, 4, 1)]
    alone, routed = (run(scenario(trace_of(*rows), **fields)) for fields in ({}, {"queue_limit": 7}))
    assert (alone.cluster is None, routed.cluster is None) == (True, False)
    told = ("stopped_by_queue_limit_share", "filling_request_rate", "router", "queue_limit", "overflow", "shed",
            "peak_replicas", "busiest_replica", "slots_counted", "date")
    one, other = ({name: value for name, value in result.summary().items() if name not in told}
                  for result in (alone, routed))
    assert one == other
    assert alone.slot_ledger.parts == routed.slot_ledger.parts
    assert list(alone.trace_events()) == [event for event in routed.trace_events() if event["pid"] == 1]


@pytest.mark.parametrize("exact", [False, True])
def test_an_answer_brings_a_request_that_another_replica_plans_at_the_same_instant(exact: bool) -> None:
    # Steps of both end at 20, with the answer of replica 2; replica 1 gets the request that follows, and plans then.
    made = trace_of((0, 4, 5), (0, 4, 2), (0, 4, 1))
    result = run(scenario(made, replicas=2, max_concurrency=2, exact=exact))
    assert result.requests["replica"].tolist() == [1, 2, 1]
    assert result.timeline.admitted.tolist() == [0, 0, 20]


def test_idle_replicas_count_as_idle_slots_and_are_paid_for() -> None:
    # Replica 1 has one step of 10 ns, replica 2 runs for 500: its slots are idle for the other 490.
    result = run(scenario(trace_of((0, 4, 1), (0, 4, 50)), replicas=2, tensor_parallel_size=2))
    ledger = result.slot_ledger
    assert ledger.total == 2 * 500 * result.slots.count
    assert ledger.parts["idle"] == 490 * result.slots.count
    summary = result.summary()
    assert summary["gpu_seconds"] == pytest.approx(2 * 2 * 500e-9)
    assert summary["busiest_replica"] == pytest.approx(500 / 255)
    assert result.kv_ledger.parts["free"] > 490 * result.memory.capacity * result.block_size


def test_whom_no_replica_takes_is_shed_and_may_try_again() -> None:
    rows = [(0, 4, 5)] * 4
    result = run(scenario(trace_of(*rows), replicas=2, queue_limit=1))
    assert result.requests["status"].tolist() == ["finished", "finished", "failed", "failed"]
    assert set(result.requests["reason"][2:]) == {"shed: every replica had as many requests as it takes (429)"}
    assert result.summary()["shed"] == 2
    again = run(scenario(trace_of(*rows), replicas=2, queue_limit=1, max_retries=3, retry_backoff=20e-9))
    summary = again.summary()
    # The others come again at 20 and at 60 ns: at 20 the replicas are busy until 50, at 60 they are free.
    assert (summary["completed"], summary["failed"], summary["shed"], summary["retried"]) == (4, 0, 4, 4)
    assert again.requests["tries"].tolist() == [1, 1, 3, 3]
    assert again.timeline.sent.tolist() == [0, 0, 60, 60]


def test_a_router_with_one_replica_says_that_it_chooses_nothing() -> None:
    def told(**fields) -> bool:
        return any("nothing to choose" in line for line in remarks(run(scenario(trace_of((0, 4, 2)), **fields))))

    assert told(router="power-of-two")
    assert told(router="power-of-two", queue_limit=3)
    assert not told(router="power-of-two", replicas=2)
    assert not told(router="power-of-two", autoscale="queue:3", max_replicas=2)
    assert not told()


@pytest.mark.parametrize("fields", [{"replicas": 2, "max_concurrency": 4}, {"queue_limit": 2, "overflow": "fcfs"}])
def test_batches_that_no_replica_can_fill_stall_with_a_next_move(fields: dict[str, object]) -> None:
    waiting = {"policy": "static", "knobs": {"max_batch_size": 4, "max_wait": float("inf")}}
    with pytest.raises(StalledError, match="raise max_concurrency or queue_limit, or lower max_wait"):
        run(scenario(trace_of(*[(0, 4, 2)] * 12), **waiting, **fields))


def test_whoever_waits_at_the_router_is_sent_when_it_was_sent() -> None:
    result = run(scenario(trace_of((0, 4, 5), (0, 4, 5), (10, 4, 2)), replicas=2, queue_limit=1, overflow="fcfs"))
    assert result.timeline.sent.tolist() == [0, 0, 10]
    assert result.timeline.admitted.tolist() == [0, 0, 50]
    assert result.timeline.queue_time.tolist() == [0, 0, 40]
    assert result.requests["replica"].tolist() == [1, 2, 1]


def test_a_client_may_hang_up_on_the_router_or_on_a_replica() -> None:
    rows = [(0, 4, 30), (0, 4, 3), (0, 4, 3)]
    result = run(scenario(trace_of(*rows), queue_limit=1, overflow="fcfs", request_timeout=100e-9))
    # The first is cut after 100 ns at the end of a step; by then the other two, who waited, have hung up, too.
    assert result.requests["status"].tolist() == ["aborted"] * 3
    assert [each.tolist() for each in result.record.cancelled.T[:2]] == [[1, 2, 0], [100, 100, 100]]
    assert result.requests["replica"].tolist()[0] == 1
    assert result.requests["replica"].isna().tolist() == [False, True, True]


def test_a_try_on_another_replica_counts_there_alone() -> None:
    # The first try of request 1 goes to replica 2, times out after 100 ns; the second goes to replica 1, which is free.
    made = trace_of((0, 4, 2), (0, 4, 30), (5, 4, 12))
    result = run(scenario(made, replicas=2, request_timeout=250e-9, max_retries=1, retry_backoff=0.0,
                          cost_model=Constant(10), router="round-robin"))
    assert result.requests["status"].tolist() == ["finished", "aborted", "finished"]
    assert result.outcomes.tries.tolist() == [1, 2, 1]
    spans = result.record.last_spans
    assert result.record.tokens_of(spans[spans[:, 0] == 2]).sum() == 12


def test_the_last_batch_of_each_replica_starts_when_nobody_follows() -> None:
    knobs = {"max_batch_size": 4, "max_wait": float("inf")}
    result = run(scenario(trace_of(*[(0, 4, 3)] * 6), policy="static", knobs=knobs, replicas=3))
    assert result.summary()["completed"] == 6


def test_what_needs_more_than_the_trace_tells_is_refused() -> None:
    bare = trace_of((0, 4, 2), session=None, tenant=None, hash_ids=None, hash_block=None)
    with pytest.raises(InputError, match="router session-affinity needs conversations, and made has none"):
        run(scenario(bare, replicas=2, router="session-affinity"))
    with pytest.raises(TraceError, match="does not tell which prompts begin alike"):
        run(scenario(bare, replicas=2, router="prefix-affinity"))


def test_conversations_stay_where_they_are() -> None:
    rows = [(at * 1000, 4, 2) for at in range(12)]
    names = tuple("abcd" * 3)
    result = run(scenario(trace_of(*rows, session=names), replicas=3, router="session-affinity"))
    homes = result.requests.groupby(list(names))["replica"].nunique()
    assert homes.tolist() == [1, 1, 1, 1]


def test_alike_prompts_meet_their_kv() -> None:
    rows = [(at * 1000, 64, 2) for at in range(12)]
    ids = [[at % 3 * 10 + block for block in range(4)] for at in range(12)]
    hits = {router: run(scenario(trace_of(*rows, hash_ids=ids), replicas=2, router=router)).record.found
            for router in ("prefix-affinity", "round-robin")}
    # Three prompts of 64 tokens, each asked for four times; a whole prompt is never found, its last block is computed.
    assert hits["prefix-affinity"] == 9 * 48
    assert hits["round-robin"] < hits["prefix-affinity"]


@pytest.mark.parametrize(("fields", "told"), [
    ({"router": "round-robbin"}, "unknown router 'round-robbin': did you mean 'round-robin'"),
    ({"overflow": "fifo", "queue_limit": 1}, "unknown overflow 'fifo'"),
    ({"overflow": "fcfs"}, "overflow fcfs needs queue_limit"),
    ({"replicas": 0}, "replicas must be a whole number of at least 1, not 0"),
    ({"replicas": 20_000}, "replicas must be at most 10,000, not 20,000"),
    ({"autoscale": "queue:4"}, "autoscale needs max_replicas"),
    ({"autoscale": "queue", "max_replicas": 2}, "autoscale takes queue:N"),
    ({"autoscale": "utilization:1.5", "max_replicas": 2}, "autoscale takes queue:N"),
    ({"autoscale": "latency:1", "max_replicas": 2}, "unknown measure to autoscale by 'latency'"),
    ({"autoscale": "queue:4", "max_replicas": 2, "replicas": 3}, "must lie between min_replicas and max_replicas"),
    ({"autoscale": "queue:4", "max_replicas": 2, "load": "saturated"}, "autoscale follows a load over time"),
    ({"startup_delay": -1.0}, "startup_delay must be a number of at least 0"),
    ({"isolation": "yes"}, "isolation must be true or false, not 'yes'"),
])
def test_what_cannot_be_is_refused(fields: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Scenario(**fields)


def test_studies_that_look_into_one_replica_say_so() -> None:
    for study in (sim.compare, sim.explain, sim.attribute):
        with pytest.raises(InputError, match="looks into one replica: leave out replicas, queue_limit and autoscale"):
            study(trace_of((0, 4, 2)), replicas=2)
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 2)), replicas=2))
    with pytest.raises(InputError, match="this shows one replica, and 2 ran: give replicas=1"):
        sim.plots.timeline_figure({"two": result})
    with pytest.raises(InputError, match="this shows one replica, and 2 ran"):
        sim.plots.batch_figure({"two": result})


def test_a_note_does_not_take_the_name_of_a_table() -> None:
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 2)), replicas=2))
    assert [each["requests"] for each in json.loads(result.to_json())["replica_stats"]] == [1, 1]
    with pytest.raises(InputError, match="metadata 'replica_stats' is a name of the result itself"):
        result.to_json(metadata={"replica_stats": "mine"})


def test_each_replica_is_a_process_in_the_trace_events() -> None:
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 3), (1, 4, 1)), replicas=2))
    events = list(result.trace_events())
    names = [(event["pid"], event["args"]["name"]) for event in events if event["name"] == "process_name"]
    assert names == [(1, "replica 1: vllm"), (2, "replica 2: vllm"), (0, "router: round-robin")]
    requests = [(event["pid"], event["name"]) for event in events if event.get("cat") == "request"]
    assert requests == [(1, "request 0"), (1, "request 2"), (2, "request 1")]


def test_where_nobody_is_served_there_is_nothing_to_tell() -> None:
    made = trace_of((0, 500, 5), (0, 500, 5))
    result = run(scenario(made, replicas=3, max_model_len=100))
    summary = result.summary()
    assert (summary["completed"], summary["rejected"], summary["gpu_seconds"]) == (0, 2, 0)
    assert summary["busiest_replica"] is None
    assert (len(result.steps), len(result.requests)) == (0, 2)
    assert {event["ph"] for event in result.trace_events()} == {"M"}
    assert len(result.ledger_over_time("kv").edges) == 1


def test_an_idle_replica_has_a_process_without_slices() -> None:
    result = run(scenario(trace_of((0, 4, 2)), replicas=2))
    assert {event["pid"] for event in result.trace_events() if event["ph"] == "X"} == {1}
    assert result.ledger_over_time("slots", 2).parts["idle"] == [10 * result.slots.count] * 2


def test_the_router_counts_who_waits_there_and_who_is_ready() -> None:
    # Four come at 0 and two have room; at 20 one answer is there, at 25 the last one hangs up, at 30 the other answer.
    rows = [(0, 4, 2), (0, 4, 3), (0, 4, 1), (5, 4, 50)]
    result = run(scenario(trace_of(*rows), replicas=2, queue_limit=1, overflow="fcfs", ttft_timeout=22e-9))
    counted = [(event["name"], event["ts"] * 1000, event["args"]) for event in result.trace_events()
               if event["ph"] == "C" and event["pid"] == 0]
    assert counted == [("router", 0, {"waiting": 1}), ("router", 5, {"waiting": 2}), ("router", 20, {"waiting": 1}),
                       ("router", 27, {"waiting": 0}), ("replicas", 0, {"ready": 2}), ("replicas", 30, {"ready": 0})]


def test_the_steps_frame_has_the_steps_of_all_replicas() -> None:
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 3)), replicas=2))
    assert result.steps["replica"].tolist() == [1, 1, 2, 2, 2]
    assert result.steps["running"].tolist() == [1] * 5
