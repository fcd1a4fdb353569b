"""The commands of `batchsim` and what they are called. Errors are not its business: see `main`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from simulator.cli.baseline import save
from simulator.cli.bench import bench
from simulator.cli.calibrate import calibrate
from simulator.cli.caveats import caveats
from simulator.cli.compare import compare
from simulator.cli.conformance import conformance
from simulator.cli.cost import show
from simulator.cli.explain import explain
from simulator.cli.init import init
from simulator.cli.listing import list_
from simulator.cli.plan import plan
from simulator.cli.plot import plot
from simulator.cli.regress import regress
from simulator.cli.report import report
from simulator.cli.reproduce import reproduce
from simulator.cli.run import run
from simulator.cli.sweep import sweep
from simulator.cli.trace import describe
from simulator.cli.trace_fetch import fetch
from simulator.cli.trace_files import convert, slice_
from simulator.cli.trace_specs import fit, generate
from simulator.cli.validate import validate
from simulator.cli.why import why
from simulator.errors import choose
from simulator.version import __version__


class Commands(TyperGroup):
    """A group that refuses an unknown command in one line, with the nearest and all known names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and not ctx.resilient_parsing:
            choose("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


app = typer.Typer(name="batchsim", cls=Commands, no_args_is_help=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})
app.command("compare")(compare)
app.command("why")(why)
app.command("explain")(explain)
app.command("run")(run)
app.command("plan")(plan)
app.command("sweep")(sweep)
app.command("plot")(plot)
app.command("report")(report)
app.command("init")(init)
app.command("list")(list_)
app.command("regress")(regress)
app.command("conformance")(conformance)
app.command("reproduce")(reproduce)
app.command("caveats")(caveats)
app.command("bench")(bench)
app.command("calibrate")(calibrate)
app.command("validate")(validate)
traces_app = typer.Typer(cls=Commands, help="Look into traces, cut, convert, draw and fetch them.")
traces_app.command("describe")(describe)
traces_app.command("convert")(convert)
traces_app.command("slice")(slice_)
traces_app.command("generate")(generate)
traces_app.command("fit")(fit)
traces_app.command("fetch")(fetch)
app.add_typer(traces_app, name="trace")
baselines_app = typer.Typer(cls=Commands, help="Keep what a run comes to, to compare with later.")
baselines_app.command("save")(save)
app.add_typer(baselines_app, name="baseline")
costs_app = typer.Typer(cls=Commands, help="Look into cost models.")
costs_app.command("show")(show)
app.add_typer(costs_app, name="cost")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"batchsim {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def batchsim(context: typer.Context,
             version: Annotated[bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True,
                                                   help="Print the version.")] = False) -> None:
    """What continuous batching is worth on your traffic, and why.

    Start with `batchsim compare`, or `batchsim compare --trace FILE`.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())
