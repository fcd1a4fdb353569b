"""Grids: a table as the console has room for it, with no name and no value cut.

Cells wrap between words. Where not even single words fit beside each other, what names a row has a line of its own.
Widths are settled here: left to itself, rich narrows columns below their longest word, and drops the last ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from simulator.tables import Table

INDENT = 2
GAP = 3
"""Blanks between columns."""


def parts(table: Table, width: int) -> Iterator[RenderableType]:
    """What to print below the title, one thing after the other, in so many columns."""
    columns = list(zip(table.header, *table.rows, strict=True))
    least = [max(cell_len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    if _sum(least) <= width:
        yield _grid(table, _widths(columns, least, width))
    else:
        yield from _stacked(table, columns, width)


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], width: int) -> list[int]:
    """Of each column: that of its longest cell, or less where a wider one can wrap, the widest first."""
    widths = [max(map(cell_len, column)) for column in columns]
    while _sum(widths) > width:
        widest = max((at for at, each in enumerate(widths) if each > least[at]), key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _grid(table: Table, widths: Sequence[int]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at, (name, width) in enumerate(zip(table.header, widths, strict=True)):
        grid.add_column(Text(name), justify="left" if at == 0 or name in table.words else "right", width=width)
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return grid


def _stacked(table: Table, columns: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """The names of a row in a line of their own, its numbers below: in columns if they fit, else in a sentence."""
    names = 1 + len(list(takewhile(lambda name: name in table.words, table.header[1:])))
    widths = [max(map(len, column)) for column in columns[names:]]
    fit = bool(widths) and INDENT + _sum(widths) <= width
    if fit:
        yield Text(_line(table.header[names:], widths), style="bold")
    for row in table.rows:
        yield Text(", ".join(f"{name}: {cell}" for name, cell in zip(table.header, row[:names], strict=False)),
                   overflow="fold")
        if widths:
            yield Text(_line(row[names:], widths) if fit else _sentence(table.header[names:], row[names:]),
                       overflow="fold")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return " " * INDENT + (" " * GAP).join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _sentence(names: Sequence[str], cells: Sequence[str]) -> str:
    told = (f"{name}: {cell}".removeprefix(": ") for name, cell in zip(names, cells, strict=True) if cell)
    return " " * INDENT + "; ".join(told)


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
