"""Trace events: they parse, their slices nest, nobody is missing, and the same run gives the same bytes."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_ledger import drawn_rows
from worlds import Affine, trace_of

import simulator as sim
from simulator.result import Result

TIGHT = {"max_num_seqs": 3, "max_num_batched_tokens": 24, "block_size": 4}


def run(rows: list[tuple[int, ...]], policy: str = "vllm", capacity: float = 10_000, **knobs: Any) -> Result:
    return sim.simulate(trace_of(sorted(rows)), policy, knobs=knobs, cost_model=Affine(), kv_capacity_tokens=capacity)


def events(result: Result, phase: str) -> list[dict[str, Any]]:
    return [event for event in result.trace_events() if event["ph"] == phase]


def brief(event: dict[str, Any]) -> tuple[Any, ...]:
    return event["tid"], event["ts"], event["dur"], event["name"]


def test_a_small_run_event_by_event() -> None:
    # A step costs 7 ns, 2 a decode, 1 a prompt token, 1 a full eight of context: 17 for both prompts, then 10 and 10.
    result = run([(0, 8, 3), (1, 2, 1)], max_num_batched_tokens=24, max_num_seqs=3, block_size=4)
    assert [brief(event) for event in events(result, "X")] == [
        (2, 0, 0.037, "request 0"), (2, 0, 0.015, "prefill"), (2, 0.015, 0.022, "decode"),
        (3, 0.015, 0.012, "request 1"), (3, 0.015, 0.012, "prefill"),
        (1, 0, 0.015, "prefill"), (1, 0.015, 0.012, "mixed"), (1, 0.027, 0.01, "decode")]
    names = [event["args"]["name"] for event in events(result, "M") if "name" in event["args"]]
    assert names == ["replica 1: vllm", "steps", "slot 1", "slot 2"]
    counted = [(event["ts"], event["args"]) for event in events(result, "C")]
    assert counted == [(0.001, {"waiting": 1}), (0.015, {"waiting": 0}),
                       (0, {"running": 1}), (0.015, {"running": 2}), (0.027, {"running": 1}), (0.037, {"running": 0}),
                       (0, {"used tokens": 8}), (0.015, {"used tokens": 16}), (0.027, {"used tokens": 12}),
                       (0.037, {"used tokens": 0})]
    about = events(result, "X")[0]["args"]
    assert (about["prompt_tokens"], about["output_tokens"], about["ttft_ms"], about["stay"]) == (8, 3, 15e-6, 1)


def test_the_queue_is_counted_and_preemptions_are_marked() -> None:
    result = run([(0, 8, 9), (0, 8, 9), (3, 8, 2)], capacity=32, **TIGHT)
    assert result.summary()["preemptions"] > 0
    marks = events(result, "i")
    assert len(marks) == result.summary()["preemptions"]
    assert {event["s"] for event in marks} == {"t"}
    lost = {event["args"]["request"] for event in marks}
    assert lost == {request for request, count in zip(result.timeline.request, result.timeline.preemptions,
                                                      strict=True) if count}
    queue = [(event["ts"], event["args"]["waiting"]) for event in events(result, "C") if "waiting" in event["args"]]
    assert queue[0] == (0.003, 1)    # two are let in at once; the third finds no room
    assert queue[-1][1] == 0


def test_the_file_is_one_json_document_and_the_same_each_time(tmp_path: Path) -> None:
    result = run([(0, 8, 9), (0, 8, 9), (3, 8, 2)], capacity=32, **TIGHT)
    once, again = (result.save_trace_events(tmp_path / name).read_bytes() for name in ("one.json", "two.json"))
    assert once == again
    found = json.loads(once)
    assert found["traceEvents"] == list(result.trace_events())
    assert found["displayTimeUnit"] == "ms"
    assert found["otherData"]["trace"] == "made"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


KINDS = [("vllm", TIGHT), ("static", {"max_batch_size": 3}), ("sglang", {"max_running_requests": 3}),
         ("vllm-0", {"max_num_seqs": 3, "preemption_mode": "swap"}), ("orca", {"max_bs": 3, "pipeline_stages": 2})]


@given(drawn_rows(), st.sampled_from(KINDS))
def test_slices_of_a_thread_lie_side_by_side_or_inside_one_another(rows, kind) -> None:
    policy, knobs = kind
    result = run(rows, policy, capacity=64, **knobs)
    threads: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in events(result, "X"):
        start, lasts = (round(event[name] * 1000) for name in ("ts", "dur"))
        assert lasts > 0
        threads[event["tid"]].append((start, start + lasts))
    for slices in threads.values():
        within: list[tuple[int, int]] = []
        for start, end in sorted(slices, key=lambda each: (each[0], -each[1])):
            while within and within[-1][1] <= start:
                within.pop()
            assert not within or end <= within[-1][1]
            within.append((start, end))


@given(drawn_rows(), st.sampled_from(KINDS))
def test_everybody_is_there_and_the_counters_end_at_0(rows, kind) -> None:
    policy, knobs = kind
    result = run(rows, policy, capacity=64, **knobs)
    seen = {event["args"]["request"] for event in events(result, "X") if event["cat"] == "request"}
    assert seen == set(result.timeline.request.tolist())
    threads = {event["tid"] for event in events(result, "M")}
    assert {event["tid"] for event in events(result, "X")} == threads
    latest: dict[str, int] = {}
    for event in events(result, "C"):
        latest |= event["args"]
        assert min(event["args"].values()) >= 0
    assert set(latest.values()) <= {0}
    busy = sum(event["dur"] for event in events(result, "X") if event["cat"] == "request")
    assert round(busy * 1000) == int((result.record.stays[:, 2] - result.record.stays[:, 1]).sum())
