"""`batchsim trace`: describe as a figure, convert, slice; flags that say how a file is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from traces import load

ROWS = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2024-05-10 {hour:02}:30:00,{hour + 1},{hour + 2}\n" for hour in range(24))


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """A file of 24 requests, one an hour."""
    path = tmp_path / "day.csv"
    path.write_text(ROWS)
    return path


def test_convert_writes_by_the_ending_and_keeps_every_row(batchsim: Callable, day: Path) -> None:
    for suffix in (".jsonl", ".csv"):
        status, out, err = batchsim("trace", "convert", "day.csv", f"out{suffix}")
        assert (status, out, err) == (0, "", f"out{suffix}: 24 requests over 82,800.0 s\n")
        assert load(Path(f"out{suffix}")).digest == load(day).digest


def test_slice_cuts_by_time_and_by_rows(batchsim: Callable, day: Path) -> None:
    assert batchsim("trace", "slice", "day.csv", "a.csv", "--window", "10:00-13:00", "--quiet") == (0, "", "")
    assert load(Path("a.csv")).prompt.tolist() == [11, 12, 13]
    cut = ("--window", "10:00-20:00", "--rows", "2:4", "--json")
    status, out, _ = batchsim("trace", "slice", "day.csv", "b.csv", *cut)
    assert (status, json.loads(out)["rows"]) == (0, 2)
    assert load(Path("b.csv")).prompt.tolist() == [13, 14]
    assert batchsim("trace", "slice", "azure-conv-2023", "c.jsonl", "--rows", "19000:", "--quiet")[0] == 0
    assert len(load(Path("c.jsonl"))) == 366


@pytest.mark.parametrize(("line", "message"), [
    ("slice day.csv o.csv", "say which part: --window 10:00-11:00, --rows 0:1000 or --limit 1000"),
    ("slice day.csv o.csv --rows 5", "--rows takes FROM:TO, such as 0:1000, not '5'"),
    ("slice day.csv o.csv --rows 50:60", "no rows 50:60 in day.csv"),
    ("slice day.csv o.csv --window 10-11", "a window is FROM-TO, such as 10:00-11:00 or 10:00:30-10:05:00"),
    ("convert day.csv o.txt", "'o.txt': a trace is written as .jsonl, .csv, .parquet"),
    ("convert day.csv day.csv", "day.csv exists: give --force to replace it, or another OUT"),
    ("convert day.csv no/o.csv", "OUT must name a file in a directory that exists, not 'no/o.csv'"),
    ("convert day.csv o.csv --limit 0", "limit must be 1 or more rows, not 0"),
    ("convert day.csv o.csv --limit x", "--limit must be a whole number, not 'x'"),
    ("convert day.csv o.csv --prompts both", "unknown kind of prompts 'both'"),
    ("describe day.csv -o o.gif", "o.gif: a figure is written as .svg or .png, not as '.gif'"),
    ("describe day.csv -o day.csv", "day.csv: a figure is written as .svg or .png"),
])
def test_what_cannot_be_is_refused_and_writes_nothing(refused: Callable, day: Path, line: str, message: str) -> None:
    assert message in refused("trace", *line.split())
    assert [path.name for path in day.parent.iterdir()] == ["day.csv"]


def test_describe_shows_arrivals_and_slots(batchsim: Callable, day: Path) -> None:
    status, out, err = batchsim("trace", "describe", "day.csv", "--limit", "20", "--window", "02:00-24:00")
    assert (status, err) == (0, "")
    facts = dict(line.split(maxsplit=1) for line in out.splitlines()[1:10])
    assert (facts["rows"], facts["outside"]) == ("20", "2 (not in the window)")
    assert "none told: nothing is shared between requests" in out
    Path("told.jsonl").write_text("".join(json.dumps({
        "timestamp": at, "input_length": 1024, "output_length": 5, "hash_ids": [0, at]}) + "\n" for at in range(1, 4)))
    status, told, err = batchsim("trace", "describe", "told.jsonl")
    assert (status, err) == (0, "")
    assert "none told" not in told
    assert "slots in use, request-level   100.0%" in out
    assert out.count("━") >= 20


def test_describe_draws_the_same_bytes_twice(batchsim: Callable, day: Path) -> None:
    table = batchsim("trace", "describe", "day.csv")[1]
    assert batchsim("trace", "describe", "day.csv", "-o", "one.svg") == (0, table, "written: one.svg\n")
    assert batchsim("trace", "describe", "day.csv", "-o", "two.svg")[0] == 0
    assert Path("one.svg").read_bytes() == Path("two.svg").read_bytes()
    for title in (b"Arrivals", b"Lengths", b"Slot utilisation"):
        assert title in Path("one.svg").read_bytes()


def test_a_run_reads_a_part_of_a_file(batchsim: Callable, day: Path) -> None:
    status, out, _ = batchsim("run", "--trace", "day.csv", "--window", "10:00-13:00", "--json", "--quiet")
    result = json.loads(out)
    assert (status, result["completed"], result["total_output_tokens"]) == (0, 3, 12 + 13 + 14)
