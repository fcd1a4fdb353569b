"""`batchsim plan`: how many replicas, how sure, why, at what cost. In a notebook: `sim.plan(trace, goodput={...})`."""

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
from simulator.cli.options import FILES, ChosenPolicy, Common, Force, Simulated
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.scaling import Places
from simulator.cli.tables import print_table
from simulator.facts import facts_of
from simulator.scenario import scenario_of
from simulator.statistics import LEVEL
from simulator.studies.capacity import Plan
from simulator.studies.capacity import plan as study
from simulator.studies.capacity.objectives import ATTAINMENT
from simulator.studies.capacity.question import REPLICATIONS
from simulator.tables import Table

FINDINGS, RUNS = "plan.json", "plan.csv"
FIGURES = ("goodput.svg", "backlog.svg")
PLAN = "Plan"
INFEASIBLE = 1


@with_flags
def plan(simulated: Simulated, places: Places, common: Common,
         policy: ChosenPolicy = None,
         attainment: Annotated[str, Option(metavar="X", rich_help_panel=PLAN, help=(
             "Share of the requests that must meet all limits of --goodput: 0.99 with ttft:500 is a p99 of TTFT below "
             "500 ms."))] = f"{ATTAINMENT:g}",
         slo: Annotated[list[str] | None, Option(metavar="pP_METRIC:MS", rich_help_panel=PLAN, help=(
             "A percentile to keep by itself, such as p99_ttft:500 or p50_tpot:30; repeatable."))] = None,
         confidence: Annotated[str, Option(metavar="X", rich_help_panel=PLAN, help=(
             "Level of the intervals. An objective is kept if the lower end of its interval is."))] = f"{LEVEL:g}",
         find: Annotated[str, Option(metavar="replicas|rate", rich_help_panel=PLAN, help=(
             "The fewest replicas for this traffic, or the most traffic that --replicas carry."))] = "replicas",
         max_gpus: Annotated[str | None, Option(metavar="N", rich_help_panel=PLAN, help=(
             "The most GPUs there are."))] = None,
         gpus: Annotated[str | None, Option(metavar="NAME,NAME", autocompletion=complete.gpus, rich_help_panel=PLAN,
                                            help="GPU types to choose from, the cheapest that does first; --gpu if not "
                                                 "given.")] = None,
         tensor_parallel_sizes: Annotated[str | None, Option(metavar="1,2,4", rich_help_panel=PLAN, help=(
             "GPUs a replica to choose from; --tensor-parallel-size if not given."))] = None,
         replications: Annotated[str, Option(metavar="N", rich_help_panel=PLAN, help=(
             "Seeds to run where something is drawn; a recorded trace is cut into windows instead."))] = (
                 str(REPLICATIONS)),
         result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
             f"Write {FINDINGS}, {RUNS} and the figures there. Replaces only what an earlier run wrote."))] = None,
         force: Force = False,
         ) -> None:
    """Say how many replicas keep your objectives, how sure that is, what binds, and what it costs.

    Objectives come from --goodput and --attainment, or from --slo. Exit status 1 if there is no answer.
    """
    directory = None if result_dir is None else ResultDirectory(result_dir, force=force)
    if directory:
        directory.check([FINDINGS, RUNS, *FIGURES])
        check_drawing()
    fields = simulated.scenario(common, policy=policy)
    simulated.refuse_idle(scenario_of(**{**fields, "replicas": 2, "knobs": {}, "prices": {}}), **(
        {"replicas": "that is what is looked for: give --find rate"} if find == "replicas" else {}))
    options: dict[str, Any] = {
        "settings": fields.pop("knobs"), **fields, "slo": slo or (),
        "attainment": values.number("--attainment", attainment),
        "confidence": values.number("--confidence", confidence), "find": find,
        "gpus": () if gpus is None else values.words("--gpus", gpus), "max_gpus": values.count("--max-gpus", max_gpus),
        "tensor_parallel_sizes": _sizes(tensor_parallel_sizes),
        "replications": values.count("--replications", replications)}
    with Bar("plan", unit="runs", quiet=common.quiet, log=True, open_ended=True) as bar:
        found = study(backend=places.chosen, told=bar.many, **options)
    if directory:
        directory.write(files := _files(found), outdated=FIGURES)
    command = ["batchsim", "run", *(["--policy", policy] if policy else []),
               *typed(simulated, "replicas"), *typed(common, "quiet", "json", "debug")]
    if common.json:
        print(as_json(found.records()), end="")
    else:
        _print(answers(), found, shlex.join(command))
    if directory and not (common.json or common.quiet):
        note(f"written to {directory.path}/: {', '.join(files)}")
    if not found.feasible:
        raise Exit(INFEASIBLE)


def _sizes(text: str | None) -> tuple[int, ...]:
    words = () if text is None else values.words("--tensor-parallel-sizes", text)
    return tuple(values.count("--tensor-parallel-sizes", word) or 0 for word in words)


def _files(found: Plan) -> dict[str, bytes]:
    """All files by name; a plan without an answer has no figures."""
    drawn = as_files(figures(found)) if found.feasible else {}
    return {FINDINGS: as_json(found.findings() | {"figures": list(drawn)}).encode(),
            RUNS: found.frame().to_csv(index=False, lineterminator="\n").encode(), **drawn}


def figures(found: Plan) -> dict[str, Any]:
    """The figures by file name."""
    from simulator.plots import backlog_figure, goodput_figure
    from simulator.studies.capacity.records import backlogs
    limits = {name: limit for objective in found.question.objectives for name, limit in objective.limits.items()}
    return {FIGURES[0]: goodput_figure(found.curve(), limits, found.told()[0]),
            FIGURES[1]: backlog_figure(backlogs(found), "Requests outstanding: the answer and its neighbours")}


def _print(console: Console, found: Plan, command: str) -> None:
    """The answer first, then what it is made of."""
    if found.best.lab is not None:
        setup = found.best.lab.traffic.setup
        for fact in (*facts_of(setup), *setup.trace.report.notes):
            console.print(Text(fact, style="dim"))
        console.print()
    print_story(console, found)
    for table in [*found.tables(), *_again(found, command)]:
        print_table(console, table)


def print_story(console: Console, found: Plan) -> None:
    """The answer and what is to be said of it."""
    answer, *others = found.told()
    console.print(Text(answer, style="bold"))
    for sentence in others:
        console.print(Padding(Text(sentence), (0, 0, 0, 2), expand=False))


def _again(found: Plan, command: str) -> list[Table]:
    """How to run the answer and its neighbours again."""
    if found.around is None:
        return []
    from simulator.studies.capacity.tables import names
    lab = found.best.runs
    rows = tuple((name, flags, " and ".join(f"{share:.1%}" for share in lab.sample(probe).whole))
                 for name, probe in zip(names(found), found.around.neighbours, strict=True)
                 if (flags := lab.traffic.flags(probe)) is not None)
    return [Table(f"Run them again: {command} FLAGS", ("", "FLAGS", "met by, of all"), rows,
                  "A run counts the warm-up, too, which the answer leaves out: so many of all its requests meet the "
                  "objectives.", ("FLAGS",))] if rows else []
