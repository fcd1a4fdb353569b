"""`batchsim why`: which habit is worth how much. In a notebook: `sim.attribute(trace).tables()`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer import Exit, Option

from simulator.cli import complete, values
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import typed, with_flags
from simulator.cli.lines import note
from simulator.cli.options import COMMON, ENGINE, FILES, MEASURES, Common, Force, Simulated
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.scaling import cores
from simulator.cli.shaping import TRAFFIC
from simulator.cli.tables import print_table
from simulator.errors import InputError
from simulator.facts import facts_of
from simulator.policies.making import make_policies
from simulator.remarks import NOBODY, unserved
from simulator.scenario import scenario_of
from simulator.scenarios import record
from simulator.scenarios.held import held
from simulator.setup import prepare
from simulator.simulation import run
from simulator.studies.attribution import MOST_SWITCHES, Attribution, attribute, usual_load
from simulator.studies.why import ORDER, brief, conventions, heading
from simulator.studies.why_records import frame, records
from simulator.studies.why_tables import flag_table, tables

FINDINGS, FIGURE = "why.json", "ladder.svg"
QUIET = ("quiet", "json", "debug")
"""Flags that change no run."""
UNUSED = {"error_band": "a factor of two runs has none: run, compare and plan give it",
          "isolation": "a run tells it: batchsim run --isolation",
          "prices": "a factor of two runs has none: a run tells the bill, and a plan what a million tokens cost"}


@with_flags
def why(simulated: Simulated, common: Common,
        start: Annotated[str, Option("--from", metavar="NAME", autocompletion=complete.policies, rich_help_panel=ENGINE,
                                     help="The baseline: static, vllm or hybrid. `static` is padded, as deployed; "
                                          "`--set static.padded=false` leaves that out.")] = "static",
        end: Annotated[str | None, Option("--to", metavar="NAME", autocompletion=complete.policies,
                                          rich_help_panel=ENGINE, help=(
            "The other one: static, vllm or hybrid. Not given: that of the scenario, else vllm."))] = None,
        batch: Annotated[str | None, Option(metavar="N", rich_help_panel=ENGINE, help=(
            "Requests a batch of the baseline; short for --set static.max_batch_size=N."))] = None,
        load: Annotated[str | None, Option(metavar="saturated|trace", autocompletion=complete.loads,
                                           rich_help_panel=TRAFFIC, help=(
            "All requests at 0, or the trace's own times; trace for goodput, else saturated, if not given."))] = None,
        metric: Annotated[str, Option(metavar="throughput|goodput|cost", rich_help_panel=MEASURES, help=(
            "What is taken apart: output tokens/s, requests/s within --goodput, or GPU-seconds per million output "
            "tokens."))] = "throughput",
        shapley: Annotated[bool, Option("--shapley", metavar="", rich_help_panel=MEASURES, help=(
            "Also the shares that no order decides: all combinations of the switches are run."))] = False,
        max_switches: Annotated[str | None, Option(metavar="N", rich_help_panel=MEASURES, help=(
            f"Refuse --shapley for more switches than this; {MOST_SWITCHES} if not given."))] = None,
        workers: Annotated[str | None, Option(metavar="N", rich_help_panel=COMMON, help=(
            "Runs at once, each in a process; as many as there are cores if not given."))] = None,
        result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
            f"Write {FINDINGS} and {FIGURE} there. Replaces only what an earlier run wrote."))] = None,
        force: Force = False,
        ) -> None:
    """Say where the ratio between two policies comes from: one switch after the other, in factors that multiply.

    Exit status 1 if nobody is served.
    """
    directory = None if result_dir is None else ResultDirectory(result_dir, force=force)
    if directory:
        directory.check([FINDINGS, FIGURE])
        check_drawing()
    most = values.count("--max-switches", str(MOST_SWITCHES) if max_switches is None else max_switches) or 0
    if max_switches is not None and not shapley:
        raise InputError("--max-switches has no effect: it is for --shapley")
    if end is None:
        end = next(name for name in (simulated.policy, "vllm", "static") if name != start)
    settings = simulated.knobs_for(start, end)
    if batch is not None:
        settings[f"{start}.max_batch_size"] = values.count("--batch", batch)
    processes = cores() if workers is None else values.count("--workers", workers)
    options: dict[str, Any] = simulated.scenario(common, load=load)
    simulated.refuse_idle(*(scenario_of(**{"load": usual_load(metric), **options, "policy": name})
                            for name in (start, end)), **UNUSED)
    asked = held(scenario_of(**options).but(policy=make_policies([start, end], settings)[1]))
    with Bar("why", unit="runs", quiet=common.quiet) as bar:
        found = attribute(start=start, end=end, settings=settings, metric=metric, shapley=shapley,
                          max_switches=most,
                          workers=processes or 0, told=bar.one, **options)
    asked = asked.but(load=found.scenario.load)
    command = shlex.join(["batchsim", "run", "--policy", "hybrid", "--load", found.scenario.load,
                          *typed(simulated, "settings", "scheduler_overhead"), *typed(common, *QUIET)])
    document = as_json(records(found, command) | {"scenario": record(asked)})
    if directory:
        directory.write({FINDINGS: document.encode()} | _drawn(found), outdated=[FIGURE])
    if common.json:
        print(document, end="")
    else:
        _print(answers(), found, command)
        if directory and not common.quiet:
            note(f"written to {directory.path}/: {FINDINGS} and {FIGURE}")
    if found.empty:
        note(f"batchsim: {unserved(run(found.scenario).summary(metrics=()))}")
        raise Exit(NOBODY)


def _print(console: Console, found: Attribution, command: str) -> None:
    """The answer first, then what it is made of."""
    setup = prepare(found.scenario)
    for fact in (*facts_of(setup), *setup.trace.report.notes):
        console.print(Text(fact, style="dim"))
    console.print()
    console.print(Text(heading(found), style="bold"))
    for sentence in brief(found):
        console.print(Padding(Text(sentence), (0, 0, 0, 2), expand=False))
    if len(found.ladders) > 1:
        console.print(Padding(Text(ORDER, style="dim"), (0, 0, 0, 2), expand=False))
    for table in [*tables(found), flag_table(found, command)]:
        print_table(console, table)
    console.print()
    console.print(Text("How the switches are meant, where others are off", style="bold"))
    for sentence in conventions(found):
        console.print(Padding(Text(f"- {sentence}", style="dim"), (0, 0, 0, 2), expand=False))


def _drawn(found: Attribution) -> dict[str, bytes]:
    """The figure as a file; none where a factor has no value."""
    from simulator.plots import ladder_figure
    bars = frame(found)
    if not len(bars):
        return {}
    return as_files({FIGURE: ladder_figure(bars, heading(found), f"times as good as {found.names[0]}")})
