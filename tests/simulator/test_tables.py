"""A table of finished cells: as text, as a frame, and from its own JSON."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.tables import Table

TABLE = Table("Two", ("", "a", "b"), (("x", "1", "2"), ("y", "30", "4")), "a note")


def test_a_frame_has_the_cells_by_row_and_column() -> None:
    frame = TABLE.to_frame()
    assert (frame.loc["y", "a"], list(frame.columns), list(frame.index)) == ("30", ["a", "b"], ["x", "y"])


def test_a_table_comes_back_from_its_json_and_nothing_else_does() -> None:
    assert Table.of(TABLE.plain()) == TABLE
    with pytest.raises(InputError, match="the rows of the table 'Two' do not fit its header"):
        Table.of({**TABLE.plain(), "rows": [["x", "1"]]})
    with pytest.raises(InputError, match="a table is not as batchsim writes it"):
        Table.of({"title": "Two"})
