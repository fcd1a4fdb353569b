"""A ranked line against a plain sorted list, whatever comes and goes; and what it costs, in comparisons."""

from __future__ import annotations

from bisect import insort

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import ranked
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
    before, ranked.LONGEST = ranked.LONGEST, 4    # so that a few entries already fill several parts
    try:
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
            assert len(line) == len(plain)
            assert [line[at] for at in range(len(plain))] == plain
    finally:
        ranked.LONGEST = before


def test_who_is_not_there_cannot_leave_or_be_looked_at() -> None:
    line = Ranked(rank)
    line.extend([Entry(1), Entry(1)])
    with pytest.raises(ValueError, match="it is not in the line"):
        line.remove(Entry(1))
    with pytest.raises(IndexError, match="not that long"):
        line[2]
    line.clear()
    assert not line


@pytest.mark.parametrize("descending", [False, True])
def test_a_long_line_moves_no_more_than_a_part_for_each(descending: bool) -> None:
    """100,000 entries lie in parts of at most 1,024."""
    line = Ranked(rank)
    line.extend(Entry(at) for at in (range(100_000, 0, -1) if descending else range(100_000)))
    assert max(map(len, line._parts)) <= ranked.LONGEST
    assert len(line._parts) <= 2 * 100_000 // ranked.LONGEST + 1
