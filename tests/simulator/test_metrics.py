"""Latencies, throughputs and their statistics: published cases, closed forms, and brute force on drawn worlds."""

from __future__ import annotations

from itertools import chain, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import Affine, World, play, trace_of

from simulator.distribution import PERCENTILE_METHOD, Distribution
from simulator.gaps import coverage, gap_lists, spans_of, token_gaps, tokens_per_step
from simulator.metrics import METRICS, MS, PER_REQUEST, glossary, json_keys, meets, tpot
from simulator.policies import StaticBatching, Vllm
from simulator.recorder import PLAN_COLUMNS, Recorder
from simulator.throughput import (
    before_tail,
    most_requests_in_a_second,
    most_tokens_in_a_second,
    offered_rate,
    steady_window,
    tail_requests,
    whole_run,
)
from simulator.timeline import Timeline, timeline

SECOND = 10 ** 9


def line_of(sent, first, last, output, *, streams=True, prompt=None) -> Timeline:
    """A timeline in which everybody is admitted when sent and delivered when emitted; a whole answer at `last`."""
    sent, first, last, output = (np.array(column, np.int64) for column in (sent, first, last, output))
    prompt = np.ones_like(output) if prompt is None else np.array(prompt, np.int64)
    return Timeline(np.arange(len(sent)), prompt, output, sent, sent, sent, first, last,
                    first if streams else last, last, last, np.zeros_like(sent), streams)


def completions(*ends: float) -> Timeline:
    """Requests of one token, all sent at 0, that complete at these seconds."""
    at = [int(end * SECOND) for end in ends]
    return line_of([0] * len(at), at, at, [1] * len(at))


def record_of(ends, spans, paused=()):
    """A record of steps with these ends, one a plan; the decoding set pauses in the `paused` ones."""
    recorder = Recorder()
    for step, (start, end) in enumerate(pairwise((0, *ends))):
        row = dict.fromkeys(PLAN_COLUMNS, 0) | {"start": start, "steps": 1, "paused": int(step in paused)}
        recorder.plans.append(tuple(row.values()))
        recorder.ends.append(end)
    for span in spans:
        recorder.span(*span)
    return recorder.freeze()


def line_in(world: World) -> Timeline:
    rows = np.array(world.rows, np.int64)
    setup = SimpleNamespace(prompt=rows[:, 1], output=rows[:, 2], policy=world.policy, request_overhead=0)
    return timeline(setup, world.record)


def drawn_worlds():
    """A crowded vllm: chunks, preemptions and recomputation all happen."""
    rows = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=10)
    return st.builds(lambda rows: play(sorted(rows), Vllm(max_num_seqs=4, max_num_batched_tokens=8, block_size=4),
                                       capacity=32, cost=Affine(), max_model_len=32), rows)


# --- statistics -----------------------------------------------------------------------------------------------------

@given(st.lists(st.tuples(st.integers(0, 10 ** 13), st.integers(0, 5)), max_size=12), st.floats(0, 100))
def test_a_weighted_distribution_equals_numpy_on_the_expanded_array(pairs, percent):
    values, weights = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    expanded = np.repeat(values, weights)
    found = Distribution.of(values, weights)
    assert found.count == len(expanded)
    if not len(expanded):
        assert (found.mean(), found.std(), found.percentile(percent)) == (None, None, None)
        return
    assert found.percentile(percent) == np.percentile(expanded, percent)
    assert found.mean() == pytest.approx(expanded.mean(), rel=1e-12)
    assert found.std() == pytest.approx(expanded.std(), rel=1e-9, abs=1e-3)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=12), st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_without_weights_each_value_counts_once(values, percent):
    found = Distribution.of(np.array(values))
    assert found.percentile(percent) == np.percentile(np.array(values), percent)
    assert found.mean() == pytest.approx(np.mean(values), rel=1e-12)


def test_percentiles_are_linear_and_say_so():
    found = Distribution.of(np.arange(1, 101))
    assert found.percentile(99) == pytest.approx(99.01, abs=1e-12)
    assert PERCENTILE_METHOD == "linear"


def test_high_percentiles_of_ten_samples_are_defined():
    found = Distribution.of(np.arange(10, 110, 10))
    assert found.percentile(95) == pytest.approx(95.5)
    assert found.percentile(99) == pytest.approx(99.1)
    assert found.percentile(100) == 100


# --- gaps between tokens --------------------------------------------------------------------------------------------

def test_tpot_counts_requests_and_itl_counts_tokens():
    ends = np.cumsum([1, 100, 1] + [10] * 100) * MS
    record = record_of(ends.tolist(), [(0, 0, 1), (1, 2, 102)])
    line = line_of([0, 0], ends[[0, 2]], ends[[1, 102]], [2, 101])
    gaps = token_gaps(record, spans_of(record, line.request))
    assert tpot(line).mean() / MS == 55
    assert gaps.count == 101
    assert gaps.mean() / MS == pytest.approx(1100 / 101)
    assert round(gaps.mean() / MS, 2) == 10.89


def test_tpot_leaves_the_first_token_out_and_says_so():
    line = line_of([0], [SECOND], [1_400_000_000], [5])
    assert tpot(line).tolist() == [100_000_000]
    assert line.e2el[0] / line.output[0] == 280_000_000    # what it would be with the first token
    assert "first excluded" in METRICS["tpot"].definition


def test_an_answer_of_one_token_has_no_tpot():
    assert tpot(line_of([0, 0], [5, 5], [5, 9], [1, 3])).tolist() == [2]


def test_coverage_counts_spans_and_takes_empty_ones():
    first, last = np.array([0, 2, 3]), np.array([2, 2, 2])    # the third is empty
    assert coverage(first, last, 4).tolist() == [1, 1, 2, 0]


@given(drawn_worlds())
def test_gaps_equal_the_expanded_ones(world):
    line, record = line_in(world), world.record
    spans = spans_of(record, line.request)
    times = [world.token_times(index) for index in range(len(world.rows))]
    lists = [np.diff(tokens).tolist() for tokens in times]
    assert list(gap_lists(record, spans, line.request)) == lists
    found = token_gaps(record, spans)
    assert np.repeat(found.values, found.weights).tolist() == sorted(gap for gaps in lists for gap in gaps)
    emitted = [sum(tokens.count(end) for tokens in times) for end in record.ends.tolist()]
    assert tokens_per_step(record, spans).tolist() == emitted


def test_a_stall_is_one_large_gap():
    record = record_of([10, 20, 30, 40], [(0, 0, 0), (1, 0, 3), (0, 3, 3)])
    assert list(gap_lists(record, spans_of(record, np.array([0])), np.array([0]))) == [[30]]
    both = token_gaps(record, spans_of(record, np.array([0, 1])))
    assert np.repeat(both.values, both.weights).tolist() == [10, 10, 10, 30]


def test_no_gap_ends_in_a_pause():
    # The first request waits in steps 1 and 2; the second has its first token in step 2, while the set pauses.
    record = record_of([10, 25, 45, 70, 100], [(0, 0, 4), (1, 2, 4)], paused=(1, 2))
    spans = spans_of(record, np.array([0, 1]))
    assert record.tokens_of(spans).tolist() == [3, 3]
    assert tokens_per_step(record, spans).tolist() == [1, 0, 1, 2, 2]
    assert list(gap_lists(record, spans, np.array([0, 1]))) == [[60, 30], [25, 30]]
    both = token_gaps(record, spans)
    assert np.repeat(both.values, both.weights).tolist() == [25, 30, 30, 60]


def test_the_set_may_never_take_part():
    record = record_of([10, 25, 45], [(0, 0, 0), (1, 2, 2), (0, 2, 2)], paused=(0, 1, 2))
    spans = spans_of(record, np.array([0, 1]))
    assert (token_gaps(record, spans).count, token_gaps(record, spans).mean()) == (1, 35)
    assert tokens_per_step(record, spans).tolist() == [1, 0, 2]


@st.composite
def paused_records(draw):
    """Steps of drawn lengths, some of them pauses, and spans of four requests with the steps of their tokens."""
    lasts = draw(st.lists(st.integers(1, 9), min_size=1, max_size=14))
    paused = draw(st.lists(st.booleans(), min_size=len(lasts), max_size=len(lasts)))
    spans, tokens = [], [[] for _ in range(4)]
    for request in range(4):
        edges = sorted(draw(st.sets(st.integers(0, len(lasts) - 1), max_size=6)))
        for first, end in zip(edges[::2], edges[1::2], strict=False):    # a span ends before the next begins
            own = [first, *(step for step in range(first + 1, end + 1) if not paused[step])]
            spans.append((request, own[0], own[-1]))
            tokens[request] += own
    record = record_of(np.cumsum(lasts).tolist(), spans, [step for step, is_paused in enumerate(paused) if is_paused])
    return record, tokens


@given(paused_records())
def test_gaps_with_pauses_equal_the_expanded_ones(drawn):
    record, tokens = drawn
    requests = np.array([request for request in range(4) if tokens[request]], np.int64)
    spans = spans_of(record, requests)
    times = [record.ends[tokens[request]] for request in requests]
    lists = [np.diff(each).tolist() for each in times]
    assert list(gap_lists(record, spans, requests)) == lists
    found = token_gaps(record, spans)
    assert np.repeat(found.values, found.weights).tolist() == sorted(gap for gaps in lists for gap in gaps)
    emitted = np.bincount(np.array([*chain.from_iterable(tokens)], np.int64), minlength=len(record.ends))
    assert tokens_per_step(record, spans).tolist() == emitted.tolist()
    assert int(record.tokens_of(spans).sum()) == sum(map(len, tokens))


# --- instants and latencies -----------------------------------------------------------------------------------------

def test_one_request_alone():
    line = line_in(play([(5, 4, 3)], Vllm(max_num_seqs=1, max_num_batched_tokens=64)))
    assert {name: values_of(line).tolist() for name, values_of in PER_REQUEST.items()} == {
        "ttft": [10], "tpot": [10], "e2el": [30], "queue_time": [0], "ttft_preemption": [0], "ttft_prefill": [10],
        "ttft_delivery": [0]}
    assert (line.sent.tolist(), line.admitted.tolist(), line.left.tolist()) == ([5], [5], [35])


def test_a_policy_that_returns_whole_answers_has_a_ttft_and_no_tpot():
    line = line_in(play([(0, 4, 1), (0, 4, 3), (0, 4, 2)], StaticBatching(max_batch_size=2)))
    assert line.ttft.tolist() == line.e2el.tolist() == [30, 30, 50]
    assert line.queue_time.tolist() == [0, 0, 30]
    assert line.ttft_parts["delivery"].tolist() == [20, 20, 10]
    assert tpot(line).tolist() == []


@given(drawn_worlds())
def test_instants_are_those_of_the_log(world):
    line = line_in(world)
    rows = range(len(world.rows))
    assert line.request.tolist() == list(rows)
    assert line.first_token.tolist() == [world.token_times(row)[0] for row in rows]
    assert line.last_token.tolist() == [world.token_times(row)[-1] for row in rows]
    assert line.admitted.tolist() == [world.stays(row)[0][0] for row in rows]
    assert line.left.tolist() == [world.left_at[row] for row in rows]
    assert line.preemptions.tolist() == [len(world.stays(row)) - 1 for row in rows]
    assert line.served.tolist() == [max(since for since, _ in world.stays(row) if since < world.token_times(row)[0])
                                    for row in rows]
    assert (sum(line.ttft_parts.values()) == line.ttft).all()
    assert all((part >= 0).all() for part in line.ttft_parts.values())


def test_preemption_before_the_first_token_is_told_apart():
    # Request 1 computes a token of its prompt at 0, loses it at 10, comes back at 60 and emits at 70.
    policy = Vllm(max_num_seqs=2, max_num_batched_tokens=9, block_size=4, scheduler_reserve_full_isl=False)
    line = line_in(play([(0, 8, 6), (0, 8, 1)], policy, capacity=20))
    assert line.preemptions.tolist() == [0, 1]
    assert {name: values.tolist() for name, values in line.ttft_parts.items()} == {
        "queue": [0, 0], "preemption": [0, 60], "prefill": [10, 10], "delivery": [0, 0]}


def test_who_has_not_finished_is_not_in_the_timeline():
    recorder = Recorder()
    recorder.plans.append((0, 2, *[0] * (len(PLAN_COLUMNS) - 2)))
    recorder.ends.extend([10, 20])
    recorder.span(0, 0, 1)
    recorder.span(1, 0, 0)    # one token of three
    recorder.stay(0, 0, 20)
    recorder.stay(1, 0, 15)
    recorder.sent.extend([0, 0, 1, 0])
    setup = SimpleNamespace(request_overhead=0, prompt=np.array([1, 1]), output=np.array([2, 3]), policy=Vllm())
    assert timeline(setup, recorder.freeze()).request.tolist() == [0]


def test_nothing_happened():
    setup = SimpleNamespace(request_overhead=0, prompt=np.array([9]), output=np.array([1]), policy=Vllm())
    record = Recorder().freeze()
    line = timeline(setup, record)
    assert len(line) == 0
    assert whole_run(line).request_rate is None
    assert tail_requests(line) is most_tokens_in_a_second(record, line) is most_requests_in_a_second(line) is None
    assert token_gaps(record, spans_of(record, line.request)).mean() is None


# --- throughput -----------------------------------------------------------------------------------------------------

def test_the_whole_run_and_the_steady_window_differ():
    line = completions(*range(10, 20))
    assert whole_run(line).request_rate == 10 / 19
    assert steady_window(line).request_rate == 1.0
    assert "whole" in METRICS["request_throughput"].definition
    assert "steady window" in METRICS["steady_request_throughput"].definition


def test_one_straggler_is_flagged():
    line = completions(*np.linspace(0.1, 30, 299), 40)
    assert whole_run(line).request_rate == 7.5
    assert before_tail(line).request_rate == 299 / 30
    assert tail_requests(line) == 1


def test_bulk_completions_do_not_inflate_the_steady_window():
    line = completions(10, 10, 10, 20, 20, 20)
    assert whole_run(line).request_rate == 6 / 20
    assert steady_window(line).request_rate == 3 / 10
    assert steady_window(completions(10, 10)).request_rate is None


def test_tokens_are_counted_with_the_request_that_completes():
    line = line_of([0, 0], [SECOND, SECOND], [2 * SECOND, 4 * SECOND], [10, 30], prompt=[100, 300])
    whole, steady = whole_run(line), steady_window(line)
    assert (whole.output_rate, whole.total_rate) == (10, 110)
    assert (steady.output_rate, steady.total_rate) == (15, 165)


def test_the_tail_of_a_run_of_a_century_is_told_too():
    line = line_of([0] * 4, [1] * 4, [1 << 60, 1 << 61, 3 << 60, 1 << 62], [2] * 4)
    assert (before_tail(line).requests, tail_requests(line)) == (3, 1)


@given(st.lists(st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 2 * SECOND)), min_size=1, max_size=12))
def test_peak_concurrency_is_counted_by_the_second(lives):
    sent, lasts = zip(*lives, strict=True)
    ends = [start + last for start, last in lives]
    active = np.zeros(12)
    for start, end in zip(sent, ends, strict=True):
        active[(start - min(sent)) // SECOND:(end - min(sent)) // SECOND + 1] += 1
    assert most_requests_in_a_second(line_of(sent, ends, ends, [1] * len(lasts))) == active.max()


def test_two_who_never_meet_count_in_one_second_and_the_label_says_so():
    """One leaves before the other comes: as vLLM's benchmark counts, there were two within that second."""
    line = line_of([0, SECOND // 2], [SECOND // 4, 3 * SECOND // 4], [SECOND // 4, 3 * SECOND // 4], [1, 1])
    assert most_requests_in_a_second(line) == 2
    assert METRICS["max_concurrent_requests"].label == "peak concurrency (within 1 s)"


@given(drawn_worlds())
def test_peak_tokens_are_counted_by_the_second(world):
    slower = SECOND // 40    # forty ticks of the drawn world make a second
    line = line_in(world)
    at = np.concatenate([world.token_times(row) for row in line.request.tolist()]) - line.sent.min()
    record = record_of((world.record.ends * slower).tolist(), world.record.spans.tolist())
    stretched = line_of(line.sent * slower, line.first_token * slower, line.last_token * slower, line.output)
    assert most_tokens_in_a_second(record, stretched) == np.bincount(at // 40).max()


def test_whole_answers_are_tokens_at_their_delivery():
    line = line_of([0, 0, 0], [1, 1, 1], [SECOND // 2, SECOND - 1, SECOND], [7, 5, 11], streams=False)
    assert most_tokens_in_a_second(record_of([], []), line) == 12


# --- objectives -----------------------------------------------------------------------------------------------------

def test_goodput_asks_for_every_objective():
    line = line_of([0, 0, 0], [2 * MS, 6 * MS, 2 * MS], [12 * MS, 8 * MS, 22 * MS], [3, 3, 3])
    assert meets(line, {"ttft": 5}).tolist() == [True, False, True]
    assert meets(line, {"tpot": 5}).tolist() == [True, True, False]    # exactly 5 ms is met
    assert meets(line, {"ttft": 5, "tpot": 5}).tolist() == [True, False, False]
    assert meets(line, {"e2el": 11.9}).tolist() == [False, True, False]


def test_an_answer_of_one_token_meets_any_tpot_objective():
    for streams in (True, False):
        assert meets(line_of([0], [9 * MS], [9 * MS], [1], streams=streams), {"tpot": 0.001}).tolist() == [True]


def test_a_whole_answer_meets_tpot_if_a_stream_could_have():
    line = line_of([0, 0], [0, 0], [600 * MS, 601 * MS], [3, 3], streams=False)
    assert meets(line, {"ttft": 700, "tpot": 50}).tolist() == [True, True]
    assert meets(line, {"ttft": 500, "tpot": 50}).tolist() == [False, False]    # it comes as a whole: TTFT is E2EL
    assert meets(line, {"tpot": 300}).tolist() == [True, False]


# --- the table ------------------------------------------------------------------------------------------------------

def test_names_are_those_of_vllm_bench_serve():
    assert json_keys("ttft", (50, 99, 99.9)) == ["mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "p50_ttft_ms",
                                                 "p99_ttft_ms", "p99.9_ttft_ms"]
    assert json_keys("duration") == ["duration"]


def test_the_glossary_has_a_row_for_each_metric():
    rows = glossary()
    assert [row["metric"] for row in rows] == [metric.label for metric in METRICS.values()]
    assert len({row["metric"] for row in rows}) == len(METRICS)
    assert all(row["definition"].endswith(".") and row["unit"] for row in rows)
    assert {row["better"] for row in rows} == {"higher", "lower", ""}


def test_the_offered_rate_is_counted_in_gaps_as_that_of_the_trace_is() -> None:
    """Three requests in two seconds come one a second."""
    arrival = np.array([5, 5 + SECOND, 5 + 2 * SECOND])
    assert offered_rate(arrival) == 1
    assert offered_rate(arrival[:1]) is None
    assert trace_of([(int(at), 4, 2) for at in arrival]).describe()["rate"] == 1
