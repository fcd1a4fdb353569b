"""Conversations inside of a Trace: its columns, and what cutting it does to them."""

import copy

import numpy as np
import pytest

from traces import Trace, TraceError
from traces.ragged import Ragged

SECOND = 10**9


def talk(**changed: object) -> Trace:
    """Two conversations: rows 0, 2, 3 and rows 1, 4."""
    columns: dict = {
        "arrival": [0, 1, 2, 3, 4], "prompt": [10, 20, 30, 50, 60], "output": [5, 5, 5, 5, 5],
        "session": ("a", "b", "a", "a", "b"), "parent": [-1, -1, 0, 2, 1], "think": [0, 0, 7, 8, 9],
        "shared": [0, 0, 15, 35, 25]}
    return Trace("talk", **(columns | changed))


@pytest.mark.parametrize(("changed", "message"), [
    ({"parent": [-1, -1, 0, 3, 1]}, "column parent must name an earlier row, or -1"),
    ({"parent": [-2, -1, 0, 2, 1]}, "column parent, row 0: -2 is outside -1"),
    ({"think": [0, 0, -1, 0, 0]}, "column think, row 2: -1 is outside 0"),
    ({"shared": [0, 0, 31, 0, 0]}, "column shared must not exceed the prompt"),
    ({"parent": None}, "think needs parent, the turn before each row"),
    ({"session": ("a",)}, "'session': 1"),
    ({"hash_ids": ((), (), (), (), ()), "hash_block": 0}, "hash_block must be 1 token or more, not 0"),
])
def test_turns_that_cannot_be_are_refused(changed, message):
    with pytest.raises(TraceError) as refusal:
        talk(**changed)
    assert message in str(refusal.value)


def test_columns_of_turns_are_read_only_and_copied():
    trace = copy.deepcopy(talk())
    for column in ("parent", "think", "shared"):
        assert not getattr(trace, column).flags.writeable
    assert trace.digest == talk().digest


def test_the_digest_sees_the_columns_of_turns():
    others = [talk(think=[0, 0, 7, 8, 8]), talk(shared=[0, 0, 15, 35, 24]), talk(session=("a", "b", "a", "a", "c")),
              talk(parent=[-1, -1, 0, 0, 1]), talk(think=None), talk()]
    assert len({trace.digest for trace in others}) == 6


def test_a_cut_keeps_the_turns_whose_predecessor_stays():
    part = talk().slice(1, 5)
    assert part.parent.tolist() == [-1, -1, 1, 0]
    assert part.think.tolist() == [0, 0, 8, 9]
    assert part.shared.tolist() == [0, 0, 35, 25]
    assert part.session == ("b", "a", "a", "b")
    some = talk().take(np.array([0, 3, 4]))
    assert (some.arrival.tolist(), some.parent.tolist(), some.shared.tolist()) == ([0, 3, 4], [-1, -1, -1], [0, 0, 0])


def test_a_window_of_the_traces_own_clock():
    assert talk().between(2, 4).prompt.tolist() == [30, 50]
    assert len(talk().between(9, 10)) == 0


def test_gaps_are_capped_on_the_clock_that_the_trace_has():
    trace = Trace("gap", arrival=[0, 1000 * SECOND, 1001 * SECOND], prompt=[1] * 3, output=[1] * 3)
    replayed = trace.scale_rate(10).cap_gaps(60)
    assert replayed.arrival.tolist() == [0, 60 * SECOND, 60 * SECOND + SECOND // 10]
    recorded = trace.cap_gaps(60).scale_rate(10)
    assert recorded.arrival.tolist() == [0, 6 * SECOND, 6 * SECOND + SECOND // 10]
    assert talk().cap_gaps(8e-9).think.tolist() == [0, 0, 7, 8, 8]
    with pytest.raises(TraceError, match="the longest gap must be 0 s or more, not -1"):
        trace.cap_gaps(-1)


def test_what_is_not_told_is_not_made_up():
    talk().require_prefixes()
    assert talk().knows_prefixes
    silent = talk(shared=None)
    assert not silent.knows_prefixes
    with pytest.raises(TraceError, match="'talk' does not tell which prompts begin alike") as refusal:
        silent.require_prefixes()
    assert "\n" not in str(refusal.value)


def test_ragged_rows_read_like_tuples():
    rows = Ragged.of([(1, 2), (), (3,)])
    assert list(rows) == [(1, 2), (), (3,)]
    assert repr(rows) == "<Ragged: 3 integers in 3 rows>"
    assert (rows[0], rows[-1], len(rows), rows.lengths.tolist()) == ((1, 2), (3,), 3, [2, 0, 1])
    assert rows == ((1, 2), (), (3,))
    assert rows != ((1, 2), (), (4,))
    assert rows != "ab"
    assert rows.take(np.array([2, 0, 0])) == [(3,), (1, 2), (1, 2)]
    assert rows.take(np.array([], dtype=np.int64)) == []
    with pytest.raises(IndexError):
        rows[3]
    with pytest.raises(ValueError, match="read-only"):
        copy.deepcopy(rows).values[0] = 9
