from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces import (
    Trace,
    TraceError,
    capped,
    convert,
    load,
    mixed,
    of_tenants,
    repeated,
    sampled,
    split,
    spread,
    stretched,
    truncated,
)
from traces.profile import slot_utilization

SECOND = 10**9


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def made(seconds: list[float], **columns: object) -> Trace:
    n = len(seconds)
    given = {"prompt": [10] * n, "output": list(range(1, n + 1))} | columns
    return Trace("made", np.rint(np.array(seconds) * SECOND).astype(int), **given)


def test_a_sample_keeps_the_minute_profile_the_lengths_and_their_joint_law():
    trace = load("azure-conv-2023")
    trace = replace(trace, max_tokens=np.arange(1, len(trace) + 1))    # which row it is
    tenth = sampled(trace, 0.1, rng())
    assert len(tenth) == round(0.1 * len(trace))
    minute = trace.arrival // (60 * SECOND)
    minutes, of_tenth = np.bincount(minute), np.bincount(minute[tenth.max_tokens - 1])
    assert np.abs(of_tenth - 0.1 * minutes).max() <= 2
    for column in ("prompt", "output"):
        all_, some = (np.percentile(getattr(one, column), [10, 50, 90]) for one in (trace, tenth))
        assert some == pytest.approx(all_, rel=0.06)
    whole, part = (np.corrcoef(np.log(one.prompt), np.log(one.output))[0, 1] for one in (trace, tenth))
    assert part == pytest.approx(whole, abs=0.05)
    for batch in (8, 32):
        assert slot_utilization(tenth)[batch] == pytest.approx(slot_utilization(trace)[batch], rel=0.06)
    assert tenth.report.notes[-1] == "a sample of 0.1 of the requests"


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 50)), min_size=1, max_size=80), st.floats(0.01, 1))
def test_a_sample_takes_each_row_at_most_once_and_as_many_as_it_says(rows, share):
    rows.sort()
    trace = made([at for at, _ in rows], output=[output for _, output in rows], prompt=range(1, len(rows) + 1))
    some = sampled(trace, share, rng())
    assert len(some) == max(1, round(share * len(trace)))
    assert (np.diff(some.prompt) > 0).all()    # rows in their order, none of them twice
    if share == 1:
        assert some.digest == trace.digest or trace.arrival[0]


def test_a_sample_keeps_conversations_whole():
    turns = 4
    parent = [-1 if row % turns == 0 else row - 1 for row in range(400)]
    trace = made(list(range(400)), parent=parent, session=tuple(str(row // turns) for row in range(400)))
    some = sampled(trace, 0.25, rng())
    assert len(some) == 100
    assert [some.session.count(name) for name in set(some.session)] == [turns] * 25


@pytest.mark.parametrize("wrong", [0, -1, 1.01, float("nan"), True, "x"])
def test_a_sample_that_is_no_share_is_refused(wrong):
    with pytest.raises(TraceError, match="a share above 0 and at most 1"):
        sampled(made([0, 1]), wrong, rng())


def test_rounds_follow_each_other_a_mean_gap_apart_and_share_no_prefix():
    trace = made([0, 1, 4], hash_ids=((7, 8), (7,), (9,)), hash_block=5, parent=[-1, 0, -1], session=("a", "a", ""))
    twice = repeated(trace, 2)
    assert (twice.arrival / SECOND).tolist() == [0, 1, 4, 6, 7, 10]
    assert twice.output.tolist() == [1, 2, 3] * 2
    assert twice.hash_ids == ((0, 1), (0,), (2,), (3, 4), (3,), (5,))
    assert twice.parent.tolist() == [-1, 0, -1, -1, 3, -1]
    assert twice.session == ("a", "a", "", "a (2)", "a (2)", "")
    assert repeated(trace, 1) is trace
    assert len(repeated(made([0]), 3)) == 3
    with pytest.raises(TraceError, match="more than 146 years"):
        repeated(trace, 10**10)


def test_rounds_of_requests_that_come_at_once_have_an_end_too():
    with pytest.raises(TraceError, match=r"come to 3,000,000,000 requests: .* 100,000,000 requests are the most"):
        repeated(made([0, 0, 0]), 10**9)


def test_tenants_are_split_in_the_order_in_which_they_came():
    trace = made([0, 1, 2, 5], tenant=("b", "a", "b", "a"))
    parts = split(trace)
    assert list(parts) == ["b", "a"]
    assert (parts["a"].arrival / SECOND).tolist() == [0, 4]
    assert parts["b"].output.tolist() == [1, 3]


def test_only_the_tenants_asked_for_come_each_at_its_own_rate():
    trace = made([0, 2, 3, 6, 8], tenant=("a", "b", "a", "c", "b"), hash_ids=((1,), (1,), (2,), (3,), (2,)),
                 hash_block=512)
    assert of_tenants(trace, {"b": 1}).arrival.tolist() == [0, 6 * SECOND]
    fast = of_tenants(trace, {"a": 1, "b": 2})
    assert fast.tenant == ("a", "b", "a", "b")
    assert (fast.arrival / SECOND).tolist() == [0, 1, 3, 4]
    assert fast.hash_ids == ((1,), (1,), (2,), (2,))    # of one trace, so what was shared still is
    assert fast.report.notes == ("tenants: a at 1 times its rate, b at 2 times its rate",)


def test_requests_that_a_faster_tenant_leaves_behind_are_counted():
    trace = made([0, 1, 4, 6, 8], tenant=("a", "b", "a", "a", "b"))
    found = of_tenants(trace, {"a": 1, "b": 2})
    assert (found.arrival / SECOND).tolist() == [0, 0.5, 4, 4]
    assert found.report.notes == ("tenants: a at 1 times its rate, b at 2 times its rate; 1 of 5 requests come after "
                                  "the first of them has ended, and are left out",)


def test_equal_weights_of_all_tenants_give_the_trace_back():
    trace = made([0, 2, 2, 6], tenant=("a", "b", "a", "c"), parent=[-1, -1, 0, -1], priority=[0, 1, 2, 3])
    again = of_tenants(trace, dict.fromkeys(split(trace), 1.0))
    assert (again.arrival.tolist(), sorted(again.output.tolist())) == (trace.arrival.tolist(), [1, 2, 3, 4])
    assert again.parent[again.output.tolist().index(3)] == again.output.tolist().index(1)


def test_an_unknown_tenant_and_a_trace_without_any_are_refused():
    with pytest.raises(TraceError, match=r"unknown tenant 'chta': did you mean 'chat'\?"):
        of_tenants(made([0], tenant=("chat",)), {"chta": 1})
    with pytest.raises(TraceError, match=r"made names no tenants; --columns tenant=NAME"):
        split(made([0]))
    with pytest.raises(TraceError, match="beyond 146 years"):
        of_tenants(made([0, 10], tenant=("a", "a")), {"a": 1e-12})
    for weights, words in (({"a": 0}, "the rate of a must be a number above 0, not 0"),
                           ({"a": float("nan")}, "not nan"), ({}, "name a tenant of made: it has a")):
        with pytest.raises(TraceError, match=words):
            of_tenants(made([0, 10], tenant=("a", "a")), weights)


def test_a_mix_ends_with_the_trace_that_ends_first_and_keeps_prefixes_apart():
    one = made([0, 2, 4, 6], hash_ids=((5,), (5,), (6,), (6,)), hash_block=16)
    two = Trace("two", [0, SECOND, 2 * SECOND], [3, 3, 3], [9, 9, 9], hash_ids=((5,), (5,), (5,)), hash_block=16,
                licence="MIT")
    both = mixed([(one, 1.0), (two, 0.5)])
    assert both.name == "made+two"
    assert (both.arrival / SECOND).tolist() == [0, 0, 2, 2, 4, 4]
    assert both.tenant == ("made", "two") * 3
    assert both.hash_ids == ((0,), (2,), (0,), (2,), (1,), (2,))
    assert both.licence == "MIT"
    assert both.report.notes == ("a mix: made at 1 times its rate, two at 0.5 times its rate; 1 of 7 requests come "
                                 "after the first of them has ended, and are left out",)


def test_columns_that_only_some_have_are_filled_or_left_out():
    one = made([0, 1], max_tokens=[5, 5], priority=[3, 4])
    two = made([0, 1], parent=[-1, 0], shared=[0, 2], hash_ids=((1,), (1,)), hash_block=512)
    both = mixed([(one, 1.0), (two, 1.0)])
    assert both.max_tokens is None
    assert both.priority.tolist() == [3, 0, 4, 0]
    assert both.parent.tolist() == [-1, -1, -1, 1]
    assert both.shared.tolist() == [0, 0, 0, 2]
    assert both.hash_ids == ((), (0,), (), (0,))
    assert mixed([(two, 1.0), (made([0], hash_ids=((1,),), hash_block=64), 1.0)]).hash_ids is None


def test_a_longest_request_cuts_prompts_at_their_end():
    """The rows of a public trace: totals of 4300, 12500 and 8193 tokens where the model holds 8192."""
    trace = made([0, 1, 2, 3], prompt=[4000, 12000, 8192, 5], output=[300, 500, 1, 9000],
                 hash_ids=(tuple(range(8)), tuple(range(24)), tuple(range(16)), (0,)), hash_block=512)
    cut, count = truncated(trace, 8192)
    assert cut.prompt.tolist() == [4000, 7692, 8191, 1]
    assert cut.output.tolist() == [300, 500, 1, 8191]
    assert cut.hash_ids.lengths.tolist() == [8, 16, 16, 1]
    assert count == 3
    assert truncated(trace, 20_000) == (trace, 0)


def test_the_cap_counts_only_what_is_wanted():
    """100 rows, of which 85 are too long: asked for 100, 15 come; asked for 5, the rows up to the fifth good one."""
    trace = made(list(range(100)), prompt=[9000] * 85 + [10] * 15)
    good = trace.prompt < 8192
    assert len(capped(trace, 100, good)) == 100
    assert len(capped(trace, 5, good)) == 90
    assert len(capped(trace, 15, good)) == 100
    assert len(capped(trace, 3, ~good)) == 3


def test_rounds_lengths_and_caps_that_are_none_are_refused():
    trace = made([0, 1])
    for asked, words in ((lambda: repeated(trace, 0), "rounds must be a whole number of at least 1, not 0"),
                         (lambda: truncated(trace, 1), "longest must be a whole number of at least 2, not 1"),
                         (lambda: capped(trace, 0, trace.prompt > 0), "most must be a whole number of at least 1")):
        with pytest.raises(TraceError, match=words):
            asked()


def test_lengths_are_scaled_rounded_and_at_least_a_token():
    trace = made([0, 1, 2], prompt=[1, 10, 101], output=[1, 2, 5], max_tokens=[4, 4, 4])
    longer = stretched(trace, 2, 0.5)
    assert longer.prompt.tolist() == [2, 20, 202]
    assert longer.output.tolist() == [1, 1, 2]    # halves to the even neighbour, and none away
    assert longer.max_tokens.tolist() == [2, 2, 2]
    assert longer.arrival.tolist() == trace.arrival.tolist()
    assert longer.report.notes == ("prompts x 2, outputs x 0.5",)
    assert stretched(trace, 1, 1) is trace
    assert stretched(trace, 1, 3).prompt is not None
    assert stretched(made([0, 1]), 1, 3).max_tokens is None


@given(st.lists(st.integers(1, 70), min_size=1, max_size=8), st.sampled_from([0.25, 0.5, 1.5, 2, 3]))
def test_who_began_alike_still_does_where_prompts_are_scaled(prompts, factor):
    """Blocks grow with the prompts: as many ids as blocks, and as large a share of the prompt in each."""
    ids = [list(range(-(-prompt // 8))) for prompt in prompts]
    trace = made([float(at) for at in range(len(prompts))], prompt=prompts, hash_ids=ids, hash_block=8)
    longer = stretched(trace, factor, 1)
    assert longer.hash_block == 8 * factor
    for row, prompt in enumerate(longer.prompt.tolist()):
        own = list(longer.hash_ids[row])
        assert own == ids[row][:len(own)]
        assert len(own) == -(-prompt // longer.hash_block)


@pytest.mark.parametrize("block", [8, 100, 512, 1000])
def test_a_block_is_whole_where_its_scale_as_it_is_written_makes_it_so(block: int) -> None:
    trace = made([0.0], prompt=[block], hash_ids=((1,),), hash_block=block)
    for hundredths in range(1, 400):
        if block * hundredths % 100:
            with pytest.raises(TraceError, match="take a scale that leaves whole tokens"):
                stretched(trace, hundredths / 100, 1)
        else:
            assert stretched(trace, hundredths / 100, 1).hash_block == block * hundredths // 100
    with pytest.raises(TraceError, match=r"would make \d+\.000\d+: take a scale"):
        stretched(trace, 1.0000001, 1)


def test_lengths_that_cannot_be_scaled_are_refused():
    blocks = made([0], prompt=[10], hash_ids=[[1, 2]], hash_block=8)
    with pytest.raises(TraceError, match=r"blocks of 8 tokens, which prompts x 0.3 would make 2.4: take a scale that"):
        stretched(blocks, 0.3, 1)
    assert stretched(blocks, 1, 0.3).hash_block == 8
    with pytest.raises(TraceError, match=r"has conversations, and later prompts hold the answers"):
        stretched(made([0, 1], parent=[-1, 0]), 2, 2)
    with pytest.raises(TraceError, match=r"lengths x 1e\+16 come to more than 9,007,199,254,740,992 tokens"):
        stretched(blocks, 1e16, 1)
    for wrong in (0, -1, float("nan"), float("inf"), True, "2"):
        with pytest.raises(TraceError, match="a scale of outputs must be a finite number above 0"):
            stretched(blocks, 1, wrong)


def test_a_spread_of_two_squares_the_lengths_and_keeps_their_mean():
    trace = made([0, 1, 2, 3], output=[10, 10, 20, 40])
    assert spread(trace, 0).output.tolist() == [20] * 4
    assert spread(trace, 1) is trace
    # squares 1 1 4 16 of the tens, 22 in all, for 80 tokens
    assert spread(trace, 2).output.tolist() == [round(80 * square / 22) for square in (1, 1, 4, 16)]
    assert spread(trace, 2).prompt is trace.prompt
    assert spread(trace, 2).report.notes[-1] == "outputs spread: to the power of 2, at the same mean"


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.floats(0, 4))
def test_a_spread_keeps_order_and_mean(outputs, power):
    trace = made(list(range(len(outputs))), output=outputs)
    found = spread(trace, power).output
    assert found.min() >= 1
    assert (np.diff(found[np.argsort(outputs, kind="stable")]) >= 0).all()
    assert abs(found.sum() - sum(outputs)) <= len(outputs)    # a token a row: rounding, and none below 1


@pytest.mark.parametrize("power", [-0.1, 4.5, float("nan"), "wide", True])
def test_a_spread_that_is_none_is_refused(power):
    with pytest.raises(TraceError, match="a spread must be a number from 0 to 4, not"):
        spread(made([0, 1]), power)


def test_outputs_of_conversations_are_not_spread():
    talk = made([0, 1], prompt=[10, 20], session=["a", "a"], parent=[-1, 0])
    with pytest.raises(TraceError, match="has conversations"):
        spread(talk, 2)


def test_copies_are_known_through_all_that_is_done_to_a_trace():
    trace = made([0, 1, 3], tenant=("a", "b", "a"))
    twice = repeated(trace, 2)
    assert (twice.original.tolist(), twice.distinct) == ([0, 1, 2] * 2, 3)
    assert repeated(twice, 2).original.tolist() == [0, 1, 2] * 4
    assert twice.slice(1, 5).scale_rate(2).saturated().original.tolist() == [1, 2, 0, 1]
    assert of_tenants(twice, {"a": 1}).original.tolist() == [0, 2, 0, 2]
    both = mixed([(twice, 1), (trace, 0.5)])
    assert both.distinct == len(set(both.original.tolist())) == 6
    assert trace.original is None
    assert trace.distinct == 3
    assert mixed([(trace, 1), (trace, 1)]).original is None
    assert convert(twice, ".csv") == convert(replace(twice, original=None), ".csv")
    assert twice.digest != replace(twice, original=None).digest
