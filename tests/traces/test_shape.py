import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces import Shape, Trace, TraceError, shape_of, shaped
from traces.shape import Burst, Piece

SECOND = 10**9


def even(n: int, gap_s: float = 1) -> Trace:
    """`n` requests, one every `gap_s` seconds."""
    return Trace("even", np.arange(n) * round(gap_s * SECOND), np.full(n, 8), np.arange(1, n + 1))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def seconds(trace: Trace) -> list[float]:
    return (trace.arrival / SECOND).tolist()


def test_the_forms_and_their_units():
    assert shape_of("ramp:1-10/300s") == Shape((Piece(300, 1, 10),))
    assert shape_of("stage:5/60s,10/1m") == Shape((Piece(60, 5, 5), Piece(60, 10, 10)))
    assert shape_of("stage:0.5/1h + burst:x5/500ms@2m") == Shape((Piece(3600, 0.5, 0.5),), (Burst(5, 0.5, 120),))
    assert shape_of("ramp:0-2/10+stage:2/1d").requests == 10 + 2 * 86400


@pytest.mark.parametrize("wrong", ["", "ramp", "ramp:1/60s", "stage:5", "stage:5/60s,", "burst:5/10s@3s",
                                   "burst:x5/10s", "stage:-1/60s", "stage:nan/60s", "ramp:1-2/60y", "wave:3",
                                   "stage:1e3/60s", "+",
                                   "stage:٣/60s", "stage:1/60s burst:x2/1s@1s"])
def test_what_is_no_shape_is_refused_with_the_forms(wrong):
    with pytest.raises(TraceError, match=r"shape .*there are ramp:1-10/300s") as error:
        shape_of(wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("wrong", "words"), [
    ("stage:0/60s", "no request in it"), ("stage:5/0s", "longer than 0 s"), ("burst:x0/1s@1s", "more than 0"),
    ("stage:1/60s+burst:x2/5s@60s", "a burst at 60 s comes when the shape has ended"),
    ("stage:1/999999999d", "longer than 146 years"), ("burst:x2/1s@999999999d", "longer than 146 years")])
def test_a_shape_without_sense_is_refused(wrong, words):
    with pytest.raises(TraceError, match=words):
        shape_of(wrong)


def test_stages_have_their_rates_for_their_durations():
    trace = shaped(even(100), "stage:2/5s,0/3s,10/4s", math.inf, rng())
    assert len(trace) == 10 + 40
    assert seconds(trace)[:11] == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 8]
    assert seconds(trace)[-1] == pytest.approx(11.9)
    assert trace.output.tolist() == list(range(1, 51))


def test_a_ramp_comes_to_the_integral_of_its_rates():
    """At t the rate is t / 10, so request i comes when t^2 / 20 = i."""
    trace = shaped(even(501), "ramp:0-10/100s", math.inf, rng())
    assert trace.report.notes == ("the shape ends after 500 of 501 requests: the others are left out",)
    assert len(trace) == 500
    assert seconds(trace) == pytest.approx(np.sqrt(20 * np.arange(500)).tolist())
    down = shaped(even(500), "ramp:10-0/100s", math.inf, rng())
    assert seconds(down)[1:] == pytest.approx((100 - np.sqrt(20 * np.arange(499, 0, -1))).tolist(), rel=1e-6)


def test_a_burst_speeds_up_the_traces_own_times_and_keeps_the_others_gaps():
    trace = shaped(even(12, 10), "burst:x5/10s@60s", 1, rng())
    assert seconds(trace) == [0, 10, 20, 30, 40, 50, 60, 62, 64, 66, 68, 70]


def test_times_before_a_burst_stay_to_the_nanosecond():
    arrival = np.sort(np.random.default_rng(1).integers(0, 3600 * SECOND, 1000))
    trace = Trace("t", arrival - arrival[0], np.ones(1000, int), np.ones(1000, int))
    late = shaped(trace, "burst:x3/1s@2h", 1, rng())
    assert late.arrival.tolist() == trace.arrival.tolist()


def test_bursts_in_a_stage_add_requests_and_overlapping_ones_multiply():
    assert shape_of("stage:2/60s+burst:x5/10s@20s").requests == 2 * 50 + 10 * 10
    both = shape_of("stage:1/30s+burst:x2/20s@0s+burst:x3/20s@10s")
    assert [piece[:2] for piece in both.curve] == [(10, 2), (10, 6), (10, 3)]
    assert shape_of("ramp:0-10/10s+burst:x2/5s@5s").requests == pytest.approx(12.5 + 2 * 37.5)


def test_a_process_follows_the_shape_on_average():
    trace = shaped(even(9000), "ramp:1-9/600s+stage:9/600s", 1, rng())
    counts = np.bincount(trace.arrival // (300 * SECOND))
    assert counts == pytest.approx([300 * 3, 300 * 7, 2700, 2700], rel=0.07)
    gaps = np.diff(trace.arrival[trace.arrival > 600 * SECOND])
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.05)


def test_a_trace_too_short_for_its_shape_says_how_often_to_repeat_it():
    with pytest.raises(TraceError, match=r"comes to 3,000 requests, and even has 700: repeat the trace 5 times"):
        shaped(even(700), "stage:10/300s", 1, rng())
    assert len(shaped(even(700), "stage:10/300s", 1, rng(), cut=True)) == 700
    assert len(shaped(even(3000), "stage:10/300s", math.inf, rng())) == 3000


def test_only_the_generator_decides():
    one, two, three = (shaped(even(99), "stage:1/50s", 1, np.random.default_rng(seed)).digest for seed in (3, 3, 4))
    assert one == two != three


PIECES = st.tuples(st.sampled_from(["ramp", "stage"]), st.integers(0, 9), st.integers(0, 9), st.integers(1, 40))


@given(st.lists(PIECES, min_size=1, max_size=4), st.lists(st.tuples(st.integers(1, 5), st.integers(1, 20),
                                                                    st.integers(0, 39)), max_size=2))
def test_counts_up_to_any_time_are_the_integral_up_to_there(pieces, bursts):
    """Events at 0, 1, 2, ... have come by t as often as the integral of the rates up to t says, to within one."""
    parts = [f"ramp:{a}-{b}/{s}s" if kind == "ramp" else f"stage:{a}/{s}s" for kind, a, b, s in pieces]
    shape = "+".join(parts + [f"burst:x{factor}/{long}s@{at}s" for factor, long, at in bursts])
    try:
        found = shape_of(shape)
    except TraceError:
        return
    times = found.times(np.arange(math.ceil(found.requests), dtype=float))
    assert (np.diff(times) >= 0).all()
    elapsed = amount = 0.0
    for piece in found.curve:
        elapsed, amount = elapsed + piece.seconds, amount + piece.amount
        assert abs((times < elapsed - 1e-9).sum() - amount) <= 1
