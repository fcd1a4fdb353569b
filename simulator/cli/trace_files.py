"""`batchsim trace convert` and `batchsim trace slice`: a trace, or a part of it, to a file. In a notebook:
`traces.convert(trace, ".jsonl")`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import traces
from simulator.cli import complete
from simulator.cli.console import print_json
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, Common, Reading
from simulator.cli.output import free_path
from simulator.cli.shaping import TRAFFIC
from simulator.counting import counted
from simulator.errors import InputError
from simulator.saved import write_whole
from traces import Trace

Source = Annotated[str, Argument(metavar="NAME|FILE", autocompletion=complete.traces,
                                 help="A bundled trace or a file.")]
Target = Annotated[str, Argument(metavar="OUT", help=(
    "File to write: .jsonl (Mooncake, as vLLM and guidellm replay it), .csv or .parquet."))]
Force = Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help="Replace any file.")]


@with_flags
def convert(name: Source, out: Target, reading: Reading, common: Common, force: Force = False) -> None:
    """Write a trace in the format of OUT's ending, with every row and every column."""
    path = target_of("OUT", out, force=force)
    write_trace(reading.load(name, common), path, common)


@with_flags
def slice_(name: Source, out: Target, reading: Reading, common: Common, force: Force = False,
           rows: Annotated[str | None, Option(metavar="FROM:TO", rich_help_panel=TRAFFIC, help=(
               "Only these rows in order of arrival, counted from 0, TO excluded; either may be left out."))] = None,
           ) -> None:
    """Write a part of a trace: a window of time, some rows, or these rows of that window."""
    path = target_of("OUT", out, force=force)
    if rows is None and reading.window is None and reading.limit is None:
        raise InputError("say which part: --window 10:00-11:00, --rows 0:1000 or --limit 1000")
    start, stop = _rows(rows)
    trace = reading.load(name, common).slice(start, stop)
    if not len(trace):
        raise InputError(f"no rows {rows} in {name}")
    write_trace(trace, path, common)


def target_of(flag: str, out: str, *, force: bool) -> Path:
    """The file to write a trace to; refuses other endings, and what stands in the way."""
    path = Path(out)
    if path.suffix not in traces.WRITERS:
        raise InputError(f"{path.name or out!r}: a trace is written as {', '.join(traces.WRITERS)}")
    return free_path(flag, out, force=force)


def _rows(text: str | None) -> tuple[int, int | None]:
    """Start and stop of FROM:TO."""
    match = re.fullmatch(r"(\d{0,18}):(\d{0,18})", ":" if text is None else text, re.ASCII)
    if match is None:
        raise InputError(f"--rows takes FROM:TO, such as 0:1000, not {text!r}")
    return int(match[1] or 0), int(match[2]) if match[2] else None


def write_trace(trace: Trace, path: Path, common: Common) -> None:
    """Write the file whole or not at all, and say so."""
    write_whole(path, traces.convert(trace, path.suffix))
    if common.json:
        print_json({"file": str(path), "rows": len(trace), "digest": trace.digest})
    elif not common.quiet:
        note(f"{path}: {counted(len(trace), 'request')} over {trace.span_s:,.1f} s")
