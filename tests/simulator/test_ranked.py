"""A ranked line against a plain sorted list, whatever comes and goes."""

from __future__ import annotations

from bisect import insort

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.ranked import Ranked


class Entry:
    """Has a rank; two with the same are not the same."""

    def __init__(self, rank: int) -> None:
        self.rank = rank


def rank(entry: Entry) -> int:
    return entry.rank


@given(st.lists(st.one_of(st.integers(0, 9).map(lambda rank: ("come", rank)), st.tuples(st.just("leave"),
                st.integers(0, 99)), st.just(("head", 0))), max_size=120))
def test_it_is_a_sorted_list(acts: list[tuple[str, int]]) -> None:
    line, plain = Ranked(rank), list[Entry]()
    for act, value in acts:
        if act == "come":
            entry = Entry(value)
            line.append(entry)
            insort(plain, entry, key=rank)
        elif plain and act == "leave":
            gone = plain.pop(value % len(plain))
            assert gone in line
            line.remove(gone)
            assert gone not in line
        elif plain:
            assert line.popleft() is plain.pop(0)
        assert list(line) == plain
        assert [line[at] for at in range(len(plain))] == plain


def test_of_the_same_rank_who_came_first_is_ahead() -> None:
    line, entries = Ranked(rank), [Entry(at % 2) for at in range(6)]
    line.extend(entries[:3])
    line.extend(entries[3:])
    assert list(line) == entries[::2] + entries[1::2]


def test_who_is_not_there_cannot_leave() -> None:
    line = Ranked(rank)
    line.extend([Entry(1), Entry(1)])
    with pytest.raises(ValueError, match="not in list"):
        line.remove(Entry(1))
    line.clear()
    assert not line
