"""Parquet tables: the same rows as in text give the same trace."""

import sys
from datetime import UTC, datetime
from unittest import mock

import pytest

from traces import TraceError, load


@pytest.fixture
def table(tmp_path):
    """A function that writes a Parquet table and gives its path."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(**columns):
        parquet.write_table(arrow.table(columns), tmp_path / "t.bin", row_group_size=2)
        return tmp_path / "t.bin"

    return write


def test_mooncake_rows_in_parquet(table):
    trace = load(table(timestamp=[3000, 3000, 6000], input_length=[600, 512, 1], output_length=[7, 1, 2],
                       hash_ids=[[0, 1], [0], [9]]))
    assert (trace.report.format, trace.arrival.tolist()) == ("mooncake", [0, 0, 3 * 10**9])
    assert trace.hash_ids == ((0, 1), (0,), (9,))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_keep_their_instants(table, unit, zone):
    arrow = pytest.importorskip("pyarrow")
    stamps = [datetime(2024, 5, 10, tzinfo=UTC), datetime(2024, 5, 10, 0, 0, 2, tzinfo=UTC)]
    column = arrow.array(stamps, arrow.timestamp(unit, zone))
    trace = load(table(TIMESTAMP=column, ContextTokens=[1, 2], GeneratedTokens=[3, 4]))
    assert (trace.report.format, trace.arrival.tolist()) == ("azure", [0, 2 * 10**9])


def test_numbers_with_a_point_are_exact(table):
    trace = load(table(arrival=[0.1, 0.3], prompt=[1.0, 2.0], output=[3, 4]), unit="s")
    assert (trace.arrival.tolist(), trace.prompt.tolist()) == ([0, 200_000_000], [1, 2])


def test_a_bad_row_is_named_by_its_number(table):
    path = table(arrival=[0, 1, 2], prompt=[1, None, 3], output=[1, 1, 0])
    with pytest.raises(TraceError, match="row 2, column prompt: None is empty"):
        load(path, unit="s")
    assert len(load(path, unit="s", lenient=True)) == 1


def test_what_is_no_parquet_is_named(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(TraceError, match="damaged Parquet table"):
        load(write(b"PAR1 and nothing else"))


def test_without_pyarrow_the_next_move_is_told(write):
    with (mock.patch.dict(sys.modules, {"pyarrow": None}),
          pytest.raises(TraceError, match=r"a Parquet table; pip install 'batchsim\[parquet\]' reads it")):
        load(write(b"PAR1"))


def test_more_rows_than_its_size_tells_of_are_refused(table, monkeypatch):
    path = table(arrival=[0, 1, 2], prompt=[1, 2, 3], output=[1, 1, 1])
    monkeypatch.setattr("traces.readers.parquet.MOST_ROWS", 0)
    assert len(load(path, unit="s")) == 3, "few rows may be in any file"
    monkeypatch.setattr("traces.readers.parquet.FREE_ROWS", 2)
    with pytest.raises(TraceError, match=r"t\.bin: expands to 3 rows, as no trace of its size does$"):
        load(path, unit="s")
