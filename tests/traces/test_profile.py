"""The curves of `trace describe`, by hand."""

import pytest

from traces import Trace, load
from traces.profile import arrivals_over_time, reused_share, slot_utilization

SECOND = 10**9


def trace(arrival: list[int], output: list[int] | None = None, **columns: object) -> Trace:
    n = len(arrival)
    return Trace("t", **({"arrival": arrival, "prompt": [10] * n, "output": output or [1] * n} | columns))


def test_windows_are_round_and_count_everybody():
    found = arrivals_over_time(trace([0, SECOND, 61 * SECOND, 3500 * SECOND]), 24)
    assert (found.window_s, len(found.counts)) == (300, 12)
    assert (found.counts[0], found.counts[11], sum(found.counts)) == (3, 1, 4)


def test_short_and_empty_traces_have_windows_too():
    assert arrivals_over_time(trace([0, 10])) == (1e-9, [1, *[0] * 9, 1])
    assert arrivals_over_time(trace([0, 0, 0])).counts == [3]
    assert arrivals_over_time(trace([])).counts == [0]
    assert arrivals_over_time(trace([0, 1 << 62])).counts[-1] == 1


def test_slots_wait_for_the_longest_answer_of_their_batch():
    # Batches of two: 1 and 3 of 2 x 3, then 4 and 4 of 2 x 4; of four: 12 of 4 x 4.
    assert slot_utilization(trace([0] * 4, [1, 3, 4, 4])) == {1: 1.0, 2: 12 / 14, 4: 12 / 16}
    assert slot_utilization(trace([0] * 3, [1, 3, 4]), [2]) == {2: 8 / 14}
    assert slot_utilization(trace([])) == {}


def test_reused_tokens_by_ids_and_by_turns():
    ids = trace([0, 1, 2], prompt=[10, 10, 6], hash_ids=((1, 2, 3), (1, 2, 4), (1, 5)), hash_block=4)
    assert reused_share(ids) == pytest.approx((4 + 4 + 4) / 26)
    partial = trace([0, 1], prompt=[10, 10], hash_ids=((1, 2, 3), (1, 2, 3)), hash_block=4)
    assert reused_share(partial) == pytest.approx(10 / 20)
    turns = trace([0, 1], parent=[-1, 0], shared=[0, 7])
    assert reused_share(turns) == 7 / 20
    assert (reused_share(trace([0])), reused_share(trace([]))) == (None, None)


def test_describe_tells_of_conversations_and_of_what_was_left_out(write):
    text = "arrival,prompt,output,session,wait\n0,1,1,a,0\n1,2,1,a,2\n2,3,1,a,4\n3,1,1,b,0\n"
    path = write(text)
    facts = load(path, unit="s", columns={"think": "wait"}, window="00:00-00:01", prompts="increments").describe()
    assert (facts["conversations"], facts["later_turns"], facts["think_s_median"]) == (1, 2, 3.0)
    assert (facts["prompts"], facts["outside"], facts["failed"]) == ("increments", 0, 0)
    assert facts["columns"] == "arrival=arrival, prompt=prompt, output=output, session=session, think=wait"
    assert facts["reused_share"] == pytest.approx((0 + 2 + 5) / (1 + 4 + 8 + 1))
