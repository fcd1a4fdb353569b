"""`batchsim cost show`: what a step costs. In a notebook: `simulator.studies.costs.cost_sheet(name).tables()`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.text import Text
from typer import Argument, Option

from simulator.cli import complete, values
from simulator.cli.console import answers, print_json
from simulator.cli.drawing import check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import ENGINE, FILES, Told
from simulator.cli.output import free_path
from simulator.cli.tables import print_table
from simulator.studies.costs import CostSheet, cost_sheet


@with_flags
def show(told: Told,
         name: Annotated[str, Argument(metavar="NAME|FILE", autocompletion=complete.cost_models, help=(
             "A cost model (see `batchsim list cost-models`) or the file of a profile."))] = "auto",
         model: Annotated[str | None, Option(metavar="NAME|FILE", autocompletion=complete.models,
                                             rich_help_panel=ENGINE, help=(
             "A model; the profile's if not given."))] = None,
         gpu: Annotated[str | None, Option(metavar="NAME", autocompletion=complete.gpus, rich_help_panel=ENGINE,
                                           help="A GPU; the profile's if not given.")] = None,
         tensor_parallel_size: Annotated[str | None, Option(metavar="N", rich_help_panel=ENGINE, help=(
             "GPUs that share the model; the profile's if not given."))] = None,
         dtype: Annotated[str | None, Option(metavar="bf16|fp8", rich_help_panel=ENGINE, help="Weights.")] = None,
         kv_dtype: Annotated[str | None, Option(metavar="bf16|fp8", rich_help_panel=ENGINE, help="KV cache.")] = None,
         output: Annotated[str | None, Option("--output", "-o", metavar="FILE.svg", rich_help_panel=FILES, help=(
             "Also draw it."))] = None,
         force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help=(
             "Replace that file."))] = False) -> None:
    """Show step times over batch and context, with the floors beside them."""
    path = None if output is None else free_path("--output", output, force=force)
    if path is not None:
        check_drawing()
    sheet = cost_sheet(name, model=model, gpu=gpu, dtype=dtype, kv_dtype=kv_dtype,
                       tensor_parallel_size=values.count("--tensor-parallel-size", tensor_parallel_size))
    if path is not None:
        _draw(sheet, path)
    if told.json:
        print_json(sheet.records())
        return
    console = answers()
    for fact, words in sheet.facts().items():
        console.print(Text(f"{fact}: {words}", style="dim"))
    for table in sheet.tables():
        print_table(console, table)
    if path is not None and not told.quiet:
        note(f"written to {path}")


def _draw(sheet: CostSheet, path: Path) -> None:
    from simulator.plots import costs_figure, save_figure
    save_figure(costs_figure(sheet.frame(), f"{sheet.cost.name}: {sheet.facts()['model']}"), path)
