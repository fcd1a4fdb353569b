"""Columns lose nothing by lying in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import columns
from simulator.columns import PackedRows, narrowest, packed


@pytest.mark.parametrize(("values", "size"), [
    ([], 1), ([0], 1), ([127], 1), ([128], 2), ([-128], 1), ([-129], 2), ([-1, 32767], 2), ([32768], 4),
    ([2 ** 31 - 1], 4), ([2 ** 31], 8), ([-2 ** 31 - 1, 5], 8), ([2 ** 62], 8), ([2 ** 63 - 1], 8), ([-2 ** 63], 8),
])
def test_the_narrowest_kind_holds_all_values(values: list[int], size: int) -> None:
    assert narrowest(np.array(values, np.int64)) == np.dtype(f"i{size}")


@given(st.lists(st.integers(-2 ** 62, 2 ** 62), max_size=20))
def test_packed_values_are_the_same(values: list[int]) -> None:
    found = packed(np.array(values, np.int64))
    assert found.tolist() == values
    assert not found.flags.writeable


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(-1, 2 ** 40)), max_size=12))
def test_rows_are_the_same_however_often_they_were_packed(rows: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "LOOSE", 3)
        found = PackedRows(("few", "many"))
        for count, row in enumerate(rows):
            assert len(found) == count
            found.append(row)
    table = found.table()
    assert table.tolist() == rows
    assert table["few"].tolist() == [few for few, _ in rows]
    assert not table.flags.writeable


def test_each_column_takes_what_its_own_values_need() -> None:
    rows = PackedRows(("flag", "start"))
    rows.append((1, 10 ** 12))
    assert rows.table().dtype == np.dtype([("flag", "i1"), ("start", "i8")])
