"""A comparison in tables and prose. The numbers and the words come from the study; nothing is computed here."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from simulator.cli.grids import INDENT, parts
from simulator.studies.compare import Comparison
from simulator.studies.facts import facts
from simulator.tables import Table


def print_comparison(console: Console, found: Comparison) -> None:
    """Everything that a comparison found, section by section."""
    for fact in facts(found):
        console.print(Text(fact, style="dim"))
    for table in found.tables():
        print_table(console, table)
    console.print()
    console.print(Text(f"What happened at the end of one short sequence ({found.equal})", style="bold"))
    for label, story in found.story().items():
        console.print(Padding(Text.assemble((f"{label}: ", "bold"), story), (0, 0, 0, 2), expand=False))


def print_table(console: Console, table: Table) -> None:
    """One table under its title."""
    console.print()
    console.print(Text(table.title, style="bold"))
    for part in parts(table, console.width - INDENT):
        console.print(Padding(part, (0, 0, 0, INDENT), expand=False))
    if table.note:
        console.print(Padding(Text(table.note, style="dim"), (0, 0, 0, 2), expand=False))
