"""Grids: a table as wide as there is room, with every column and every value, or in lines of another form."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from simulator.cli.listing import KINDS, _shown
from simulator.cli.tables import print_table
from simulator.tables import Table

Call = Callable[..., tuple[int, str, str]]
SWEPT = Table("2 points", ("max_num_seqs", "rate_scale", "goodput/s", "tok/s", "TTFT p99, ms", "TPOT p99, ms",
                           "preempted", "tok/s/user", "tok/s/GPU", "limit", ""),
              (("16", "2", "0.2543", "1,526", "74,527", "12.5", "0", "98.78", "1,526", "cap 95%", "*"),
               ("512", "8", "1.296", "4,920", "26,448", "83.71", "61", "16.28", "4,920", "memory 62%", "*")),
              "a note", ("rate_scale",))
NAMES = Table("Layouts", ("a replica", "an hour", "cost model"),
              (("8 x h100-80 (tp8)", "$1,234.5", "of my own making"), ("量化模型", "-", "-")), words=("cost model",))


def printed(table: Table, width: int) -> str:
    console = Console(file=StringIO(), width=width)
    print_table(console, table)
    return console.file.getvalue()    # type: ignore[attr-defined]


@pytest.mark.parametrize("width", range(20, 140))
@pytest.mark.parametrize("table", [SWEPT, NAMES])
def test_at_no_width_is_a_column_or_a_word_lost(table: Table, width: int) -> None:
    out = printed(table, width)
    words = [word for row in (table.header, *table.rows) for cell in row for word in cell.split()]
    assert {word: out.count(word) >= words.count(word) for word in words} == dict.fromkeys(words, True)
    assert max(map(cell_len, out.splitlines())) <= width


def test_with_room_for_all_nothing_wraps_and_with_less_the_widest_that_can_does() -> None:
    assert printed(NAMES, 60).splitlines()[2:] == [
        "  a replica            an hour   cost model      ",
        "  ───────────────────────────────────────────────",
        "  8 x h100-80 (tp8)   $1,234.5   of my own making",
        "  量化模型                   -   -               "]
    assert printed(NAMES, 44).splitlines()[2:] == [
        "  a replica         an hour   cost model    ",
        "  ──────────────────────────────────────────",
        "  8 x h100-80      $1,234.5   of my own     ",
        "  (tp8)                       making        ",
        "  量化模型                -   -             "]


def test_where_all_columns_are_words_a_row_is_a_line_without_numbers() -> None:
    table = Table("", ("name", "mirrors"), (("static", "textbook request-level batching"), ("ft", "another")),
                  words=("mirrors",))
    assert printed(table, 18).splitlines()[2:] == [
        "  name: static,   ", "  mirrors:        ", "  textbook        ", "  request-level   ", "  batching        ",
        "  name: ft,       ", "  mirrors: another"]


@pytest.mark.parametrize("kind", ["policies", "models", "gpus", "traces", "cost-models"])
@pytest.mark.parametrize("width", ["30", "46", "120"])
def test_a_list_tells_all_columns_at_any_width(kind: str, width: str, batchsim: Call,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = " ".join(batchsim("list", kind)[1].split())
    rows, columns = KINDS[kind]
    words = [word for name in columns for word in name.split("_")]
    words += [word for row in rows() for name in columns for word in _shown(row[name], name).split()
              if len(word) < int(width)]
    assert not [word for word in words if word not in out]
