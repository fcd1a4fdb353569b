"""`batchsim trace generate` and `batchsim trace fit`: from a spec to a trace, and from a trace to a spec.

In a notebook: `traces.generate(traces.read_spec(path))` and `traces.fit(trace, name)`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.box import SIMPLE_HEAD
from rich.table import Table
from typer import Argument, Option

import traces
from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, Common, Reading
from simulator.cli.output import free_path
from simulator.cli.trace_files import Force, Source, target_of, write_trace
from simulator.counting import counted
from simulator.documents import readable
from simulator.errors import InputError
from simulator.saved import write_whole
from traces import Kept
from traces.fitting import written

SPECS = (".yaml", ".yml")


@with_flags
def generate(spec: Annotated[str, Argument(metavar="NAME|SPEC", autocompletion=complete.traces, help=(
                 "A bundled trace, or a YAML file that says what to draw."))],
             output: Annotated[str, Option("--output", "-o", metavar="FILE", rich_help_panel=FILES, help=(
                 "File to write: .jsonl (Mooncake), .csv or .parquet."))],
             common: Common, force: Force = False) -> None:
    """Draw a trace from a spec, by --seed, and write it. `--trace gen:SPEC` uses one without a file."""
    path = target_of("--output", output, force=force)
    name = spec if spec in traces.standins.names() else f"gen:{spec}"
    write_trace(traces.load(name, seed=common.seed_number), path, common)


@with_flags
def fit(name: Source, reading: Reading, common: Common,
        output: Annotated[str, Option("--output", "-o", metavar="SPEC", rich_help_panel=FILES, help=(
            "YAML file to write."))], force: Force = False) -> None:
    """Turn a trace into a spec without its rows, and tell how well what is drawn from it stands in for the trace."""
    path = Path(output)
    if path.suffix not in SPECS:
        raise InputError(f"{path.name or output!r}: a spec is written as {' or '.join(SPECS)}")
    free_path("--output", output, force=force)
    trace = reading.load(name, common)
    spec = traces.fit(trace, readable(path.stem))
    found = traces.kept(trace, spec, common.seed_number)
    write_whole(path, written(spec))
    if common.json:
        print_json({"file": str(path), "kept": [{**each._asdict(), "error": each.error} for each in found]})
        return
    answers().print(_table(found))
    if not common.quiet:
        note(f"{path}: a spec of {counted(len(trace), 'request')}; use it with --trace gen:{path}")


def _table(found: list[Kept]) -> Table:
    """What is kept, a row a property."""
    table = Table("kept", "original", "stand-in", "difference", box=SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for each in found:
        numbers = ("-" if value is None else f"{value:,.4g}" for value in (each.original, each.stand_in))
        off = "-" if each.error is None else f"{each.error:+.3f}" if each.around_zero else f"{each.error:+.1%}"
        table.add_row(each.what, *numbers, off)
    return table
