"""`batchsim report`: a result directory as one page. In a notebook: `simulator.report.report(directory)`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from simulator.cli.drawing import check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, RESULT_DIR, Common
from simulator.cli.output import ResultDirectory, free_path
from simulator.saved import write_whole

PAGE = "report.html"


@with_flags
def report(common: Common,
           directory: Annotated[str, Argument(metavar="DIR", help=(
               "What `batchsim run -o`, compare, sweep or plan wrote."))] = RESULT_DIR,
           output: Annotated[str | None, Option("--output", "-o", metavar="FILE.html", rich_help_panel=FILES, help=(
               f"Where the page goes; DIR/{PAGE} if not given."))] = None,
           force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES,
                                         help="Replace any file.")] = False) -> None:
    """Put all of a result directory on one page: question, answer, figures, tables, inputs, definitions, warnings.

    The page needs no network and, to be read, no script.
    """
    from simulator.report import report as page
    path = None if output is None else free_path("--output", output, force=force)
    target = ResultDirectory(directory, force=force)
    if path is None and Path(directory).is_dir():
        target.check([PAGE])
    check_drawing()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)    # it talks of font caches and home directories
    text = page(directory)
    if path is None:
        target.write({PAGE: text.encode()})
    else:
        write_whole(path, text)
    if not common.quiet:
        note(f"written to {path or Path(directory) / PAGE}")
