"""`batchsim report`: a result directory as one page. In a notebook: `simulator.report.report(directory)`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from simulator.cli.console import print_json
from simulator.cli.drawing import check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, RESULT_DIR, Told
from simulator.cli.output import ResultDirectory, free_path
from simulator.errors import InputError
from simulator.saved import write_whole

PAGE = "report.html"
ENDINGS = (".html", ".htm")


@with_flags
def report(told: Told,
           directory: Annotated[str, Argument(metavar="DIR", help=(
               "What `batchsim run -o`, compare, sweep or plan wrote."))] = RESULT_DIR,
           output: Annotated[str | None, Option("--output", "-o", metavar="FILE.html", rich_help_panel=FILES, help=(
               f"Where the page goes; DIR/{PAGE} if not given. Replaces only a page that batchsim wrote."))] = None,
           force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES,
                                         help="Replace any file.")] = False) -> None:
    """Put all of a result directory on one page: question, answer, figures, tables, inputs, definitions, warnings.

    The page needs no network and, to be read, no script.
    """
    from simulator.report import chapters, page_of
    path = None if output is None else _page_path(output, force=force)
    target = ResultDirectory(directory, force=force)
    if path is None and Path(directory).is_dir():
        target.check([PAGE])
    check_drawing()
    found = chapters(Path(directory))
    text = page_of(found)
    if path is None:
        target.write({PAGE: text.encode()})
    else:
        write_whole(path, text)
    place = path or Path(directory) / PAGE
    if told.json:
        print_json({"page": str(place), "chapters": [chapter.plain() for chapter in found]})
    elif not told.quiet:
        note(f"written to {place}")


def _page_path(text: str, *, force: bool) -> Path:
    """Where a page may be written: where nothing is, or over one that nobody has changed since it was written."""
    from simulator.report.seal import is_intact
    if Path(text).suffix.lower() not in ENDINGS:
        raise InputError(f"--output is a page, which ends in {ENDINGS[0]}, not {text!r}")
    return free_path("--output", text, force=force or is_intact(Path(text)))
