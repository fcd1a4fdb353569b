"""The commands of `batchsim` and what they are called. Errors are not its business: see `main`.

A command's module is imported when it is chosen, so that nobody waits for the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from simulator.version import __version__

Menu = Mapping[str, tuple[str, str]]
"""Commands by name: where the function is, and the first sentence of its help."""

COMMANDS: Menu = {
    "compare": ("compare:compare", "Compare policies on one trace: how much they serve, how it feels, and where the "
                                   "difference comes from."),
    "why": ("why:why", "Say where the ratio between two policies comes from: one switch after the other, in factors "
                       "that multiply."),
    "explain": ("explain:explain", "Follow one short request through its batch; say why memory is paged, what prefill "
                                   "does, what a full pool does."),
    "run": ("run:run", "Simulate one policy under one load, and measure it."),
    "plan": ("plan:plan", "Say how many replicas keep your objectives, how sure that is, what binds, and what it "
                          "costs."),
    "sweep": ("sweep:sweep", "Run a grid or a list of settings, or search them: summaries in the shape of vLLM's "
                             "sweep, and two pictures."),
    "plot": ("plot:plot", "Draw the heat map and the Pareto set of a sweep again, over other axes or of another "
                          "metric."),
    "report": ("report:report", "Put all of a result directory on one page: question, answer, figures, tables, inputs, "
                                "definitions, warnings."),
    "init": ("init:init", "Write a commented scenario file: every field, what it means, and what it is if you leave it "
                          "alone."),
    "list": ("listing:list_", "List the policies, models, GPUs, traces and cost models that have a name."),
    "regress": ("regress:regress", "Run a baseline's scenario again, and say whether anything is not what it was, and "
                                   "what is to blame."),
    "conformance": ("conformance:conformance", "Replay recorded decisions of an engine, and find the first step that "
                                               "differs."),
    "reproduce": ("reproduce:reproduce", "Run published figures again, with every assumption beside them; exit status "
                                         "1 where a tolerance is missed."),
    "caveats": ("caveats:caveats", "Show where continuous batching does not pay: five small studies, each with its "
                                   "ratio and its reason."),
    "bench": ("bench:bench", "Measure how fast batchsim itself is on this machine: CPU time and peak memory, each case "
                             "in a fresh process."),
    "calibrate": ("calibrate:calibrate", "Time real kernels on this machine and fit a cost profile to them."),
    "validate": ("validate:validate", "Simulate a recorded run with a profile, and print how far off that is."),
}
GROUPS: Mapping[str, tuple[str, Menu]] = {
    "trace": ("Look into traces, cut, convert, draw and fetch them.", {
        "describe": ("trace:describe", "Rows, rejects, span, rate, variation of the gaps, lengths, arrivals over time "
                                       "and slot utilisation of a trace."),
        "convert": ("trace_files:convert", "Write a trace in the format of OUT's ending, with every row and every "
                                           "column."),
        "slice": ("trace_files:slice_", "Write a part of a trace: a window of time, some rows, or these rows of that "
                                        "window."),
        "generate": ("trace_specs:generate", "Draw a trace from a spec, by --seed, and write it. `--trace gen:SPEC` "
                                             "uses one without a file."),
        "fit": ("trace_specs:fit", "Turn a trace into a spec without its rows, and tell how well what is drawn from it "
                                   "stands in for the trace."),
        "fetch": ("trace_fetch:fetch", "Download a public trace, check it, and keep it; `--trace NAME` means it from "
                                       "then on."),
    }),
    "baseline": ("Keep what a run comes to, to compare with later.", {
        "save": ("baseline:save", "Save what a scenario comes to, or what was measured, for `batchsim regress` to "
                                  "compare with."),
    }),
    "cost": ("Look into cost models.", {
        "show": ("cost:show", "Show step times over batch and context, with the floors beside them."),
    }),
}


class Later(TyperCommand):
    """A command whose module is imported when it is chosen; until then there is its place in the menu."""

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name=name, help=summary)
        self._place = place

    @cached_property
    def whole(self) -> Any:
        """The command with its flags."""
        module, _, function = self._place.partition(":")
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(getattr(import_module(f"simulator.cli.{module}"), function))
        return typer.main.get_command(alone)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **more: Any) -> Any:
        """The command line as it was parsed; until it is done, policy files are announced that it does not give."""
        from simulator.cli.announcing import announced
        try:
            context = self.whole.make_context(info_name, args, parent, **more)
        except Exception as error:
            if getattr(error, "ctx", error) is None:    # the parser does not say of which command it speaks
                error.ctx = self.context_class(self.whole, parent, info_name)    # type: ignore[attr-defined]
            raise
        if not context.resilient_parsing:    # a shell that completes runs nothing
            context.with_resource(announced(context))
        return context


class Commands(TyperGroup):
    """A group that refuses an unknown command in one line, with the nearest and all known names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            from simulator.errors import choose
            choose("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


app = typer.Typer(name="batchsim", cls=Commands, no_args_is_help=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})


def command() -> Any:
    """The command line as a tree of commands."""
    tree: Any = typer.main.get_command(app)
    for name, (place, summary) in COMMANDS.items():
        tree.add_command(Later(name, place, summary))
    for name, (summary, menu) in GROUPS.items():
        tree.add_command(Commands(name=name, help=summary,
                                  commands=[Later(each, *entry) for each, entry in menu.items()]))
    return tree


def load(group: Any, words: Sequence[str]) -> None:
    """Import the command that these words choose, if they choose one."""
    chosen = next((group.commands[word] for word in words if word in group.commands), None)
    if isinstance(chosen, Later):
        chosen.whole    # noqa: B018    it is made when it is asked for
    elif chosen is not None:
        load(chosen, words)


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
