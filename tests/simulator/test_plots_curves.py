"""Curves over time: bins whose means can be worked out by hand, and areas that must equal the record's own sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_plots_bars import MIXED, POLICIES, ROWS, result_of
from worlds import play, trace_of

from cost_models import Constant
from simulator import simulate
from simulator.areas import area_of_counts, area_of_intervals
from simulator.plots import batch_frame
from simulator.plots.curves import mean
from simulator.policies import StaticBatching, Vllm


def column(frame, name) -> list[float]:
    return frame[name].tolist()


def area(frame, name) -> float:
    """The integral of a column over the run, in ns."""
    return float((frame[name] * (frame["end_s"] - frame["start_s"])).sum()) * 1e9


def test_static_bins_of_a_step_each():
    frame = batch_frame(result_of(play(MIXED, StaticBatching(max_batch_size=2), capacity=20)), bins=5)
    assert column(frame, "start_s") == [0, 10e-9, 20e-9, 30e-9, 40e-9]
    assert column(frame, "end_s") == [10e-9, 20e-9, 30e-9, 40e-9, 50e-9]
    assert column(frame, "useful") == [2, 1, 1, 1, 1]
    assert column(frame, "running") == [2, 2, 2, 1, 1]
    assert column(frame, "waiting") == [1, 1, 1, 0, 0]
    assert column(frame, "kv_share") == [0.7, 0.7, 0.7, 0.35, 0.35]    # 6 + 8 of 20 tokens reserved, then 7


def test_a_bin_that_cuts_a_step_has_the_time_weighted_mean():
    frame = batch_frame(result_of(play(MIXED, Vllm(max_num_seqs=2))), bins=4)    # bins of 7, 8, 7, 8 ns
    assert (frame["start_s"] * 1e9).round().tolist() == [0, 7, 15, 22]
    assert column(frame, "useful") == [2, 2, 2, 2]
    assert column(frame, "waiting") == [1, 3 / 8, 0, 0]
    assert frame["kv_share"].isna().all()
    assert mean(frame, "useful") == pytest.approx(2)


def test_nothing_is_useful_and_nobody_waits_while_the_replica_sleeps():
    frame = batch_frame(result_of(play([(0, 1, 1), (30, 1, 1)], Vllm(max_num_seqs=1), capacity=160)), bins=4)
    assert column(frame, "useful") == column(frame, "running") == [1, 0, 0, 1]
    assert column(frame, "waiting") == [0, 0, 0, 0]
    assert column(frame, "kv_share") == [1 / 9, 0, 0, 1 / 9]    # one block of the ten is the engine's own


def test_a_preempted_request_is_back_in_the_queue_and_its_second_computation_not_useful():
    world = play([(0, 4, 6), (0, 4, 6)], Vllm(max_num_seqs=2, block_size=1), capacity=15)
    assert any(tick.preempted for tick in world.ticks)
    steps = world.record.steps
    frame = batch_frame(result_of(world), bins=len(world.record.ends))
    assert column(frame, "waiting") == steps["waiting"].tolist()
    assert column(frame, "useful") == (steps["decodes"] + steps["chunks"] - steps["redoing"]).tolist()
    assert max(column(frame, "waiting")) == 1
    assert steps["redoing"].max() == 1


def test_a_rejected_request_never_counts():
    rows = trace_of([(0, 5, 2), (0, 500, 5), (0, 5, 2)])
    result = simulate(rows, "vllm", knobs={"max_num_seqs": 1}, max_model_len=100, cost_model=Constant(1000))
    frame = batch_frame(result, bins=4)
    assert column(frame, "waiting") == [1, 1, 0, 0]
    assert column(frame, "running") == [1, 1, 1, 1]


def test_a_run_shorter_than_its_bins_has_fewer_of_them():
    frame = batch_frame(result_of(play([(0, 1, 1)], Vllm(max_num_seqs=1))), bins=400)
    assert len(frame) == 10    # of a nanosecond each
    assert column(frame, "running") == [1] * 10


def test_areas_are_exact_even_where_they_exceed_64_bits():
    day = 86_400 * 10 ** 9
    edges = np.array([0, day, day + 5])
    amounts = np.array([300_000, 7])
    assert int(amounts[0]) * day > 1 << 64
    area = area_of_intervals(np.array([0, day]), np.array([day, day + 3]), amounts, edges)
    assert np.diff(area)[1] == 21
    many = area_of_counts(np.full(300_000, 1), edges)
    assert np.diff(many)[1] == 5 * 300_000


def test_area_of_intervals_inside_between_and_after_them():
    edges = np.array([0, 5, 12, 20, 25, 40])
    area = area_of_intervals(np.array([2, 20]), np.array([10, 30]), np.array([3, 1]), edges)
    assert area.tolist() == [0, 9, 24, 24, 29, 34]


@given(ROWS, POLICIES, st.integers(1, 50))
def test_areas_equal_the_sums_of_the_record(rows, chosen, bins):
    policy, capacity = chosen
    world = play(sorted(rows), policy, capacity=capacity, keep=False, verify=False)
    frame = batch_frame(result_of(world), bins)
    record, steps = world.record, world.record.steps
    stays = int((record.stays[:, 2] - record.stays[:, 1]).sum())
    there = sum(world.left_at[index] - at for index, at in world.sent().items())
    lasts = record.ends - steps["start"]
    useful = int(((steps["decodes"] + steps["chunks"] - steps["redoing"]) * lasts).sum())
    assert area(frame, "running") == pytest.approx(stays, rel=1e-9)
    assert area(frame, "waiting") == pytest.approx(there - stays, rel=1e-9, abs=1e-6)
    assert area(frame, "useful") == pytest.approx(useful, rel=1e-9)
    assert (frame["useful"] <= frame["running"] + 1e-9).all()
    if capacity < 1000:
        held = int((steps["used"] * lasts).sum()) / world.memory.capacity
        assert area(frame, "kv_share") == pytest.approx(held, rel=1e-9)


def test_a_steady_run_shows_no_dip_anywhere():
    trace = trace_of([(0, 1, 700), (0, 1, 700)])
    result = simulate(trace, "vllm", cost_model=Constant(1000), kv_capacity_tokens=10_000)
    frame = batch_frame(result, 97)    # edges of bins fall inside steps, at the end of the warm-up, too
    assert len(frame) == 97
    assert frame["useful"].to_numpy() == pytest.approx(2)
