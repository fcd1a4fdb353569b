"""Bars of the timeline: hand-made worlds with every bar written down, and sums that must hold in any world."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import UNLIMITED, World, play, trace_of

from cost_models import Constant
from simulator import simulate
from simulator.plots import KINDS, timeline_frame
from simulator.plots.bars import tokens_until, window_of
from simulator.policies import StaticBatching, Vllm
from simulator.recorder import PLAN_COLUMNS, Record, Recorder

MIXED = [(0, 5, 1), (0, 5, 3), (0, 5, 2)]
"""Answers of 1, 3 and 2 tokens, all there from the start; a step lasts 10 ns."""


def result_of(world: World) -> SimpleNamespace:
    capacity = UNLIMITED if world.memory.capacity > 10 ** 6 else world.memory.capacity * world.memory.block_size
    setup = SimpleNamespace(policy=world.policy, deployment=SimpleNamespace(kv_capacity_tokens=capacity))
    return SimpleNamespace(only=SimpleNamespace(record=world.record), setup=setup, memory=world.memory)


def record_of(spans, stays, *, steps: int = 6, start: int = 0, paused=()) -> Record:
    """A record of steps of 10 ns from `start`, each with a chunk; the decoding set pauses in the `paused` ones."""
    recorder = Recorder()
    for step in range(steps):
        row = dict.fromkeys(PLAN_COLUMNS, 0) | {"start": start + 10 * step, "steps": 1, "chunks": 1,
                                                "paused": int(step in paused)}
        recorder.plans.append(tuple(row.values()))
        recorder.ends.append(start + 10 * step + 10)
    for span in spans:
        recorder.span(*span)
    for stay in stays:
        recorder.stay(*stay)
    return recorder.freeze()


def bars(result, until: float | None = None) -> list[tuple]:
    """(slot, start, end, kind, request) of each bar, in ns."""
    frame = timeline_frame(result, until)
    return [(slot, round(start * 1e9), round(end * 1e9), kind, request)
            for slot, start, end, kind, request in frame.itertuples(index=False)]


def bars_in(spans, stays, **options) -> list[tuple]:
    return bars(SimpleNamespace(only=SimpleNamespace(record=record_of(spans, stays, **options))))


def test_static_holds_a_finished_request_until_its_batch_is_done():
    assert bars(result_of(play(MIXED, StaticBatching(max_batch_size=2)))) == [
        (1, 0, 10, "prefill", 0), (1, 10, 30, "held", 0),
        (2, 0, 10, "prefill", 1), (2, 10, 30, "decode", 1),
        (1, 30, 40, "prefill", 2), (1, 40, 50, "decode", 2)]


def test_continuous_gives_the_slot_to_the_next_request_at_once():
    assert bars(result_of(play(MIXED, Vllm(max_num_seqs=2)))) == [
        (1, 0, 10, "prefill", 0),
        (2, 0, 10, "prefill", 1), (2, 10, 30, "decode", 1),
        (1, 10, 20, "prefill", 2), (1, 20, 30, "decode", 2)]


def test_a_prompt_in_chunks_is_prefill_until_the_first_token():
    assert bars(result_of(play([(0, 25, 2)], Vllm(max_num_seqs=1, max_num_batched_tokens=10)))) == [
        (1, 0, 30, "prefill", 0), (1, 30, 40, "decode", 0)]


def test_a_request_takes_the_lowest_free_slot():
    stays = [(1, 0, 20), (0, 0, 30), (2, 10, 30), (3, 20, 50), (4, 40, 60)]
    spans = [(0, 0, 2), (1, 0, 1), (2, 1, 2), (3, 2, 4), (4, 4, 5)]
    slots = {request: slot for slot, _, _, _, request in bars_in(spans, stays)}
    assert slots == {0: 1, 1: 2, 2: 3, 3: 2, 4: 1}


def test_a_preempted_request_computes_again_in_its_next_stay():
    assert bars_in([(0, 0, 1), (0, 3, 5)], [(0, 0, 20), (0, 30, 60)]) == [
        (1, 0, 10, "prefill", 0), (1, 10, 20, "decode", 0),
        (1, 30, 40, "recompute", 0), (1, 40, 60, "decode", 0)]


def test_a_request_preempted_before_its_first_token_was_reading_its_prompt():
    assert bars_in([(0, 4, 4)], [(0, 0, 20), (0, 30, 50)]) == [(1, 0, 20, "prefill", 0), (1, 30, 50, "recompute", 0)]


def test_a_request_preempted_right_after_its_first_token_goes_on_in_its_next_stay():
    assert bars_in([(0, 1, 1), (0, 4, 5)], [(0, 0, 20), (0, 30, 60)]) == [
        (1, 0, 20, "prefill", 0), (1, 30, 50, "recompute", 0), (1, 50, 60, "decode", 0)]


def test_a_decode_that_misses_steps_is_stalled():
    assert bars_in([(0, 0, 1), (0, 4, 5)], [(0, 0, 60)]) == [
        (1, 0, 10, "prefill", 0), (1, 10, 20, "decode", 0), (1, 20, 40, "stalled", 0), (1, 40, 60, "decode", 0)]


def test_a_decode_left_out_and_then_preempted_is_stalled_to_the_end_of_its_stay():
    assert bars_in([(0, 0, 0), (0, 5, 5)], [(0, 0, 30), (0, 50, 60)]) == [
        (1, 0, 10, "prefill", 0), (1, 10, 30, "stalled", 0), (1, 50, 60, "recompute", 0)]


def test_a_decode_is_stalled_while_the_set_pauses():
    # A prompt ends in step 0. The set pauses in 0, 2, 3 and 5; a span's first token needs no turn of the set.
    assert bars_in([(0, 0, 6), (1, 2, 6)], [(0, 0, 70), (1, 20, 70)], steps=7, paused=(0, 2, 3, 5)) == [
        (1, 0, 10, "prefill", 0), (1, 10, 20, "decode", 0), (1, 20, 40, "stalled", 0), (1, 40, 50, "decode", 0),
        (1, 50, 60, "stalled", 0), (1, 60, 70, "decode", 0),
        (2, 20, 30, "prefill", 1), (2, 30, 40, "stalled", 1), (2, 40, 50, "decode", 1), (2, 50, 60, "stalled", 1),
        (2, 60, 70, "decode", 1)]


def test_who_is_preempted_in_a_pause_was_stalled_till_then():
    assert bars_in([(0, 0, 1), (0, 5, 5)], [(0, 0, 40), (0, 50, 60)], paused=(0, 2, 3)) == [
        (1, 0, 10, "prefill", 0), (1, 10, 20, "decode", 0), (1, 20, 40, "stalled", 0), (1, 50, 60, "recompute", 0)]


def test_who_comes_back_with_its_kv_decodes_at_once():
    """No chunk in step 3: the token comes from a decode, and nothing was computed again."""
    record = record_of([(0, 0, 1), (0, 3, 4)], [(0, 0, 20), (0, 30, 50)])
    record.plans.flags.writeable = True
    record.plans["chunks"][3:] = 0
    assert bars(SimpleNamespace(only=SimpleNamespace(record=record))) == [
        (1, 0, 10, "prefill", 0), (1, 10, 20, "decode", 0), (1, 30, 50, "decode", 0)]


def test_tokens_are_not_counted_in_a_pause():
    record = record_of([(0, 0, 5), (1, 2, 5)], [(0, 0, 60), (1, 20, 60)], paused=(0, 2, 3))
    assert [tokens_until(record, at * 1e-9) for at in (9, 10, 20, 30, 40, 50, 60)] == [0, 1, 2, 3, 3, 5, 7]


def test_a_window_cuts_the_bars_and_leaves_out_what_comes_later():
    assert bars(result_of(play(MIXED, StaticBatching(max_batch_size=2))), 25e-9) == [
        (1, 0, 10, "prefill", 0), (1, 10, 25, "held", 0),
        (2, 0, 10, "prefill", 1), (2, 10, 25, "decode", 1)]


def test_a_window_that_ends_before_a_preemption_changes_no_bar():
    record = record_of([(0, 0, 1), (0, 4, 5)], [(0, 0, 30), (0, 40, 60)])
    assert bars(SimpleNamespace(only=SimpleNamespace(record=record)), 25e-9)[-1] == (1, 20, 25, "stalled", 0)


def test_a_run_of_nobody_has_no_bars_but_all_columns():
    frame = timeline_frame(SimpleNamespace(only=SimpleNamespace(record=record_of([], []))))
    assert frame.empty
    assert list(frame) == ["slot", "start_s", "end_s", "kind", "request"]
    assert window_of(record_of([], []), 3) == 0


def test_the_window_shows_so_many_full_batches():
    record = play([(0, 1, 1 + row % 3) for row in range(8)], StaticBatching(max_batch_size=2)).record
    assert record.stays[:, 2].tolist() == [20, 20, 50, 50, 80, 80, 100, 100]
    assert [window_of(record, turns) for turns in (1, 2, 3, 9)] == [20e-9, 50e-9, 80e-9, 100e-9]


def test_tokens_count_from_the_end_of_their_step():
    record = play(MIXED, StaticBatching(max_batch_size=2)).record
    assert [tokens_until(record, at * 1e-9) for at in (0, 9, 10, 29, 30, 50, 1000)] == [0, 0, 2, 3, 4, 6, 6]


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=14)
POLICIES = st.sampled_from([
    (StaticBatching(max_batch_size=3), UNLIMITED),
    (StaticBatching(max_batch_size=4, padded=True, run_to=14), UNLIMITED),
    (Vllm(max_num_seqs=3, max_num_batched_tokens=8), UNLIMITED), (Vllm(max_num_seqs=6, max_num_batched_tokens=12), 80)])


@given(ROWS, POLICIES)
def test_bars_fill_the_stays_and_nothing_else(rows, chosen):
    policy, capacity = chosen
    world = play(sorted(rows), policy, capacity=capacity, keep=False, verify=False)
    drawn = bars(result_of(world))
    stays = world.record.stays
    for request in range(len(rows)):
        taken = sum(end - start for _, start, end, _, who in drawn if who == request)
        assert taken == sum(until - since for since, until in world.stays(request))
    assert max(slot for slot, *_ in drawn) == world.record.plan("running").max()
    for slot in {slot for slot, *_ in drawn}:
        times = sorted((start, end) for at, start, end, _, _ in drawn if at == slot)
        assert all(before[1] <= after[0] for before, after in pairwise(times))
    assert {kind for *_, kind, _ in drawn} <= set(KINDS)
    cut = bars(result_of(world), 45e-9)
    inside = np.clip(45 - stays[:, 1], 0, stays[:, 2] - stays[:, 1])
    assert sum(end - start for _, start, end, _, _ in cut) == inside.sum()


@pytest.mark.parametrize(("policy", "knobs", "capacity"), [
    ("static", {"max_batch_size": 4}, 4000),
    ("vllm", {"max_num_seqs": 8, "max_num_batched_tokens": 4096}, 4000),
    ("vllm-0", {"max_num_seqs": 8}, 600), ("vllm-0", {"max_num_seqs": 8, "preemption_mode": "swap"}, 600)])
def test_bars_of_each_kind_add_up_to_the_slot_ledger(policy, knobs, capacity):
    rows = [(0, 40 + row * 7 % 90, 1 + row * 31 % 60) for row in range(40)]
    result = simulate(trace_of(rows), policy, knobs=knobs, kv_capacity_tokens=capacity, cost_model=Constant(1000))
    taken = dict.fromkeys(KINDS, 0)
    for _, start, end, kind, _ in bars(result):
        taken[kind] += end - start
    parts = result.slot_ledger.parts
    stalled = parts["stalled"] + parts["behind_prefill"]    # a bar does not say for whom it waits
    assert taken == {kind: parts[kind] for kind in KINDS} | {"stalled": stalled}
    assert taken["held" if policy == "static" else "decode"] > 0
    assert (taken["stalled"] > 0) is (policy == "vllm-0")
    assert policy != "vllm-0" or result.summary()["preemptions"] > 0
