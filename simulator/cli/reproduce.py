"""`batchsim reproduce`: published figures, run again. In a notebook: `simulator.studies.reproduce.reproduce(names)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer import Argument, Exit, Option

from simulator.cli import complete
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, Common, Force
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.tables import print_table
from simulator.studies.reproduce import NAMES, Answer, Reproduction, Verdict
from simulator.studies.reproduce import reproduce as study
from simulator.studies.reproduce.answers import asked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINDINGS = "reproduce.json"


@with_flags
def reproduce(common: Common,
              names: Annotated[list[str] | None, Argument(metavar="NAME", autocompletion=complete.reproductions,
                                                          show_default=False, help=(
                  f"{', '.join(NAMES)}, or all; all if not given."))] = None,
              result_dir: Annotated[str | None, Option(
                  "--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
                      f"Write {FINDINGS} and a figure each there. Replaces only what an earlier run wrote."))] = None,
              force: Force = False) -> None:
    """Run published figures again, with every assumption beside them; exit status 1 where a tolerance is missed."""
    chosen = asked(names or ["all"])
    directory = None if result_dir is None else ResultDirectory(result_dir, force=force)
    if directory:
        directory.check([FINDINGS, *(f"{name}.svg" for name in chosen)])
        check_drawing()
    found = tuple(_one(name, common) for name in chosen)
    if directory:
        directory.write({FINDINGS: as_json(_records(found)).encode()}
                        | as_files({f"{answer.name}.svg": _figure(answer) for answer in found}))
    if common.json:
        print(as_json(_records(found)), end="")
    else:
        _print_end(answers(), found)
    if directory and not common.quiet:
        note(f"written to {directory.path}/: {FINDINGS} and a figure of each")
    if any(answer.missed for answer in found):
        raise Exit(1)


def _records(found: Sequence[Answer]) -> dict[str, object]:
    return {"reproductions": [answer.record() for answer in found], "missed": sum(answer.missed for answer in found)}


def _one(name: str, common: Common) -> Answer:
    """Run it, and show it at once: all of them take about a minute."""
    with Bar("reproduce", unit="runs", quiet=common.quiet) as bar:
        [answer] = study([name], seed=common.seed_number, progress=bar.many)
    if not common.json:
        print_answer(answers(), answer)
    return answer


def print_answer(console: Console, answer: Answer, *, facts: bool = True) -> None:
    """What comes out, then the tables, then what had to be assumed."""
    console.print()
    console.print(Text.assemble((f"{answer.name}: ", "bold"), answer.told))
    for table in answer.tables():
        print_table(console, table)
    for fact in answer.facts if facts else ():
        console.print(Padding(Text(fact, style="dim"), (0, 0, 0, 2), expand=False))


def _print_end(console: Console, found: Sequence[Answer]) -> None:
    """How many tolerances were missed, and how many rows have none."""
    missed = {answer.name: answer.missed for answer in found if answer.missed}
    told = ", ".join(f"{count} in {name}" for name, count in missed.items())
    untested = sum(answer.untested for answer in found)
    rest = f" Rows without a stated tolerance: {untested}." if untested else ""
    console.print()
    console.print(Text(f"Stated tolerances missed: {told or 'none'}.{rest}", style="bold"))


def _figure(answer: Answer) -> Figure:
    from simulator.plots import findings_figure, verdict_figure
    if isinstance(answer, Verdict):
        return verdict_figure(answer.frame(), *answer.spec.range)
    assert isinstance(answer, Reproduction)
    return findings_figure(answer.frame(), answer.name, answer.orders(), answer.spec.beside)
