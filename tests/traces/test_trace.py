import copy
import dataclasses
import pickle

import numpy as np
import pytest

from traces import ReadReport, Trace, TraceError

COLUMNS = ("arrival", "prompt", "output", "max_tokens")


def small(**changed: object) -> Trace:
    columns: dict = {"arrival": [0, 5], "prompt": [1, 2], "output": [3, 4]}
    return Trace("small", **(columns | changed))


def test_columns_are_int64_and_read_only(tiny):
    for column in COLUMNS:
        values = getattr(tiny, column)
        assert values.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny.name = "other"


def test_the_trace_keeps_a_copy_of_what_it_was_given():
    prompt = np.array([1, 2])
    trace = small(prompt=prompt)
    prompt[0] = 99
    assert trace.prompt.tolist() == [1, 2]


def test_a_column_that_nobody_can_write_to_is_shared(tiny):
    faster = tiny.scale_rate(2)
    assert faster.prompt is tiny.prompt
    assert faster.arrival is not tiny.arrival
    view = np.arange(1, 5)[:2]
    view.setflags(write=False)    # whoever has the whole array may still write to it
    assert small(prompt=view).prompt is not view


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda trace: pickle.loads(pickle.dumps(trace))])
def test_a_copy_is_equal_and_as_read_only(tiny, clone):
    twin = clone(tiny)
    assert twin.digest == tiny.digest
    assert not any(getattr(twin, column).flags.writeable for column in COLUMNS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": [1]}, "columns differ in length: {'arrival': 2, 'prompt': 1, 'output': 2}"),
        ({"tenant": ("a",)}, "'tenant': 1"),
        ({"prompt": [1, 0]}, "column prompt, row 1: 0 is outside 1 to 2^62"),
        ({"output": [0, 1]}, "column output, row 0: 0 is outside 1"),
        ({"max_tokens": [1, 0]}, "column max_tokens, row 1: 0 is outside 1"),
        ({"arrival": [-1, 5]}, "column arrival, row 0: -1 is outside 0"),
        ({"arrival": [0, (1 << 62) + 1]}, "column arrival, row 1: 4611686018427387905 is outside 0 to 2^62"),
        ({"arrival": [5, 4]}, "arrivals must be sorted"),
        ({"prompt": [1.0, 2.0]}, "column prompt must be a list of integers, not float64(2,)"),
        ({"prompt": [[1, 2], [3, 4]]}, "column prompt must be a list of integers, not int64(2, 2)"),
        ({"prompt": [True, True]}, "column prompt must be a list of integers, not bool(2,)"),
        ({"hash_ids": ((1,), (1,))}, "hash_ids and hash_block go together"),
    ],
)
def test_wrong_columns_are_refused(changed, message):
    with pytest.raises(TraceError) as refusal:
        small(**changed)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_slice_moves_the_first_arrival_to_0_and_keeps_every_column(tiny):
    part = tiny.slice(1, 3)
    assert part.arrival.tolist() == [0, 2 * 10**9]
    assert (part.prompt.tolist(), part.output.tolist(), part.max_tokens.tolist()) == ([20, 30], [2, 3], [5, 5])
    assert (part.tenant, part.hash_ids, part.hash_block) == (("b", "a"), ((1,), (2,)), 512)


def test_all_rows_are_the_trace_itself_unless_its_first_arrival_must_move():
    assert (trace := small()).head(2) is trace.head(9) is trace.slice(0, None) is trace
    assert (late := small(arrival=[3, 5])).head(9) is not late
    assert late.head(9).arrival.tolist() == [0, 2]


def test_head_takes_the_first_rows_or_all_there_are(tiny):
    assert tiny.head(2).prompt.tolist() == [10, 20]
    assert tiny.head(99).digest == tiny.digest
    assert len(tiny.head(0)) == 0
    with pytest.raises(TraceError, match="0 or more rows, not -1"):
        tiny.head(-1)


def test_scaling_divides_the_intervals_from_the_first_stamp():
    trace = Trace("epoch", arrival=[1000 * 10**9, 1001 * 10**9, 1003 * 10**9], prompt=[1, 1, 1], output=[1, 1, 1])
    assert trace.scale_rate(2).arrival.tolist() == [0, 500_000_000, 1_500_000_000]
    assert trace.scale_rate(0.5).arrival.tolist() == [0, 2 * 10**9, 6 * 10**9]


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), True, "2", None])
def test_a_rate_scale_is_a_finite_number_above_0(tiny, factor):
    with pytest.raises(TraceError, match="rate scale must be a finite number above 0"):
        tiny.scale_rate(factor)


def test_a_rate_scale_of_1_moves_no_arrival_by_a_nanosecond():
    """Ten years in nanoseconds are more than a float can count one by one."""
    odd = [0, 2 ** 53 + 1, 10 * 365 * 86_400 * 10 ** 9 + 1]
    assert Trace("long", odd, [1] * 3, [1] * 3).scale_rate(1.0).arrival.tolist() == odd


def test_a_rate_scale_that_stretches_beyond_the_clock_is_refused(tiny):
    with pytest.raises(TraceError, match="beyond 146 years"):
        tiny.scale_rate(1e-300)


def test_a_new_rate_changes_arrivals_only(tiny):
    steady = tiny.at_rate(2, float("inf"), np.random.default_rng(0))
    assert steady.arrival.tolist() == [0, 500_000_000, 10**9, 1_500_000_000]
    assert steady.prompt.tolist() == tiny.prompt.tolist()
    assert steady.tenant == tiny.tenant


def test_saturated_puts_everyone_at_0_in_the_same_order(tiny):
    queued = tiny.saturated()
    assert queued.arrival.tolist() == [0, 0, 0, 0]
    assert queued.output.tolist() == [1, 2, 3, 4]
    assert tiny.at_rate(float("inf"), 1, np.random.default_rng(0)).digest == queued.digest


def test_the_digest_sees_every_column_and_no_name(tiny):
    changes = {
        "arrival": [0, 1, 2, 3],
        "prompt": [10, 20, 30, 41],
        "output": [1, 2, 3, 5],
        "max_tokens": None,
        "tenant": ("a", "b", "a", "c"),
        "hash_ids": ((1,), (1,), (2,), (4,)),
        "hash_block": 64,
    }
    digests = {dataclasses.replace(tiny, **{column: value}).digest for column, value in changes.items()}
    assert len(digests | {tiny.digest}) == len(changes) + 1
    assert dataclasses.replace(tiny, name="other", source="elsewhere").digest == tiny.digest
    assert len(tiny.digest) == 16


def test_a_trace_made_in_memory_reports_its_own_rows(tiny):
    assert tiny.report == ReadReport("memory", 4)
    assert tiny.head(1).report == tiny.report


def test_describe_states_size_rate_variation_and_lengths(tiny):
    facts = tiny.describe()
    assert (facts["rows"], facts["rejects"], facts["out_of_order"]) == (4, 0, 0)
    assert facts["span_s"] == 7.0
    assert facts["rate"] == 3 / 7
    assert facts["gap_cv"] == pytest.approx(np.std([1, 2, 4]) / np.mean([1, 2, 4]))
    assert facts["prompt"]["p50"] == 25.0
    assert facts["prompt"] | {"min": 10, "max": 40, "mean": 25.0, "total": 100} == facts["prompt"]
    assert facts["output"]["p99"] == pytest.approx(3.97)
    assert (facts["tenants"], facts["prefix_blocks"], facts["licence"]) == (2, 4, None)


def test_describe_leaves_out_what_cannot_be_measured(tiny):
    assert tiny.head(1).describe()["rate"] is None
    assert tiny.saturated().describe()["gap_cv"] is None
    assert tiny.head(0).describe()["prompt"] is None
    assert small().describe()["prefix_blocks"] is None


def test_the_repr_reads_as_a_sentence(tiny):
    assert repr(tiny) == "<Trace tiny: 4 requests over 7.0 s, median prompt 25 and output 2 tokens>"
    assert repr(tiny.head(0)) == "<Trace tiny: no requests>"
