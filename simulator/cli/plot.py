"""`batchsim plot`: draw the pictures of a sweep anew. In a notebook: `plots.pareto_figure(pareto_frame(records))`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from simulator.cli.console import print_json
from simulator.cli.drawing import check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import MEASURES, Force, Told
from simulator.cli.output import ResultDirectory, bearable
from simulator.cli.sweep import FIGURES, HEAT_MAP, RECORDS, drawn
from simulator.cli.varied import spelled
from simulator.documents import document_of
from simulator.errors import InputError
from simulator.kinds import SUMMARY, meant_as
from simulator.studies.sweep.records import checked, varied


@with_flags
def plot(told: Told,
         directory: Annotated[str, Argument(metavar="DIR", help="What `batchsim sweep` or `vllm bench sweep` wrote.")],
         x: Annotated[str | None, Option(metavar="NAME", rich_help_panel=MEASURES, help=(
             "What the columns of the heat map are; the first that was varied if not given."))] = None,
         y: Annotated[str | None, Option(metavar="NAME", rich_help_panel=MEASURES, help=(
             "What its rows are; the second."))] = None,
         metric: Annotated[str | None, Option(metavar="METRIC", rich_help_panel=MEASURES, help=(
             "What its numbers are, such as p99_ttft_ms; goodput, else output throughput, if not given."))] = None,
         force: Force = False,
         ) -> None:
    """Draw the heat map and the Pareto set of a sweep again, over other axes or of another metric.

    Such a heat map has a file of its own, named by what is asked for.
    """
    for flag, name in (("--x", x), ("--y", y), ("--metric", metric)):
        if name == "":
            raise InputError(f"{flag} must be a name, not ''")
    check_drawing()
    target, records = ResultDirectory(directory, force=force), _records(Path(directory))
    x, y = (name if name in varied(records) else name and spelled(name) for name in (x, y))
    figures = drawn(records, x=x, y=y, metric=metric)
    if not figures:
        raise InputError(f"{directory}: nothing to draw: no point served anything")
    own = _name(metric, x, y)
    figures = {own if name == HEAT_MAP else name: picture for name, picture in figures.items()}
    target.write(figures, outdated=FIGURES if own == HEAT_MAP else [])
    if told.json:
        print_json({"directory": directory, "figures": list(figures)})
    elif not told.quiet:
        note(f"written to {directory}/: {' and '.join(figures)}")


def _name(metric: str | None, x: str | None, y: str | None) -> str:
    """The file of a heat map: of what was asked for, beside that of the sweep itself."""
    asked = [metric, x and f"x-{x}", y and f"y-{y}"]
    return "-".join([HEAT_MAP.removesuffix(".svg"), *(bearable(name) for name in asked if name)]) + ".svg"


def _records(directory: Path) -> list[dict[str, Any]]:
    """The records in the directory, else in all those below it, as vLLM lays them out."""
    own = directory / RECORDS
    paths = [own] if own.exists() else sorted(directory.rglob(RECORDS))
    if not paths:
        raise InputError(f"{directory} has no {RECORDS}: give a directory that `batchsim sweep` wrote")
    return [record for path in paths for record in _read(path)]


def _read(path: Path) -> list[dict[str, Any]]:
    with meant_as(SUMMARY, path):
        return _checked(path, document_of(path))


def _checked(path: Path, records: Any) -> list[dict[str, Any]]:
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InputError(f"{path}: is no summary of a sweep: it must be a list of records")
    return [checked(record, f"{path}, record {number}") for number, record in enumerate(records, 1)]
