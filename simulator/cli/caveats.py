"""`batchsim caveats`: where continuous batching does not pay. In a notebook: `simulator.studies.caveats.caveats()`."""

from __future__ import annotations

from typing import Annotated

from rich.padding import Padding
from rich.text import Text
from typer import Option

from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, Common, Force
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.tables import print_table
from simulator.studies.caveats import SETTING, Caveat, caveat_frame, caveat_table, records
from simulator.studies.caveats import caveats as study

FINDINGS, FIGURE = "caveats.json", "caveats.svg"


@with_flags
def caveats(common: Common,
            result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
                f"Write {FINDINGS} and {FIGURE} there. Replaces only what an earlier run wrote."))] = None,
            force: Force = False) -> None:
    """Show where continuous batching does not pay: five small studies, each with its ratio and its reason."""
    directory = None if result_dir is None else ResultDirectory(result_dir, force=force)
    if directory:
        directory.check([FINDINGS, FIGURE])
        check_drawing()
    with Bar("caveats", unit="studies", quiet=common.quiet) as bar:
        found = study(common.seed_number, bar.many)
    if directory:
        directory.write(_files(found))
    if common.json:
        print(as_json(records(found)), end="")
        return
    _print(found)
    if directory and not common.quiet:
        note(f"written to {directory.path}/: {FINDINGS} and {FIGURE}")


def _print(found: tuple[Caveat, ...]) -> None:
    """The table, then what was compared and why it came out so."""
    console = answers()
    print_table(console, caveat_table(found))
    for each in found:
        console.print()
        console.print(Text(f"{each.name}: {each.what}", style="bold"))
        console.print(Padding(Text(each.reason), (0, 0, 0, 2), expand=False))


def _files(found: tuple[Caveat, ...]) -> dict[str, bytes]:
    from simulator.plots import caveats_figure
    figure = caveats_figure(caveat_frame(found), SETTING)
    return {FINDINGS: as_json(records(found)).encode()} | as_files({FIGURE: figure})
