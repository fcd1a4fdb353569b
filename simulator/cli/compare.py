"""`batchsim compare`: several policies on one trace. In a notebook: `sim.compare(trace, policies).table()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from typer import Exit, Option

from simulator.cli import complete, values
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import ENGINE, MEASURES, Common, Simulated, Written
from simulator.cli.output import Content, ResultDirectory, detail_name, run_files, run_name
from simulator.cli.progress import Bar
from simulator.remarks import NOBODY, unserved
from simulator.scenario import scenario_of
from simulator.studies.compare import Comparison
from simulator.studies.compare import compare as study
from simulator.studies.contenders import LOADS
from simulator.studies.why import heading
from simulator.studies.why_records import frame

FIGURES = ("timeline.svg", "batch.svg", "ladder.svg")
FINDINGS = "comparison.json"
UNUSED = {"isolation": "a run tells it: batchsim run --isolation"}


@with_flags
def compare(simulated: Simulated, written: Written, common: Common,
            policies: Annotated[str | None, Option(metavar="NAME,NAME", autocompletion=complete.policies,
                                                   rich_help_panel=ENGINE, help=(
                "The baseline, then the others; FILE.py:CLASS for one of your own. Not given: static and that of the "
                "scenario, else vllm."))] = None,
            replications: Annotated[str | None, Option(metavar="N", rich_help_panel=MEASURES, help=(
                "Run it N times, each with another seed, or on another window of a recorded trace, and give 95% "
                "intervals of the differences; all policies have the same requests and arrivals."))] = None) -> None:
    """Compare policies on one trace: how much they serve, how it feels, and where the difference comes from.

    Exit status 1 if no policy serves anybody.
    """
    names, asked = simulated.policies("--policies", policies), written.asked
    options = simulated.scenario(common)
    asked_for = scenario_of(**options)
    simulated.refuse_idle(*(asked_for.but(policy=name, load=load) for name in names for load in LOADS), **UNUSED)
    directory = ResultDirectory(written.directory, force=written.force)
    runs = [run_name(name, load) for name in names for load in LOADS]
    details = list(map(detail_name, runs))
    directory.check([*runs, *(details if written.save_detailed else ()), *FIGURES, FINDINGS], outdated=details)
    check_drawing()
    with Bar("compare", quiet=common.quiet) as bar:
        found = study(policies=names, settings=simulated.knobs_for(*names), progress=bar.many,
                      replications=values.count("--replications", replications), **options)
    directory.write(_files(found, written.save_detailed, asked), outdated=[*details, *FIGURES])
    if common.json:
        print(as_json(found.records(**asked)), end="")
    else:
        _print(found)
        if not common.quiet:
            note(f"written to {directory.path}/: a JSON for each run, {FINDINGS} and the figures")
    told = [unserved(result.summary(metrics=())) for result in found.results.values()]
    if told[0] and all(told):
        note(f"batchsim: {told[0]}")
        raise Exit(NOBODY)


def _print(found: Comparison) -> None:
    from simulator.cli.tables import print_comparison
    print_comparison(answers(), found)


def _files(found: Comparison, detailed: bool, asked: Mapping[str, Any]) -> dict[str, Content]:
    """All files of a comparison by name."""
    files: dict[str, Content] = {}
    for (label, load), result in found.results.items():
        files |= run_files(result, run_name(label, load), detailed=detailed, asked=asked)
    drawn = _drawn(found)
    files[FINDINGS] = as_json(found.findings() | {"figures": list(drawn)}).encode()
    return files | drawn


def _drawn(found: Comparison) -> dict[str, bytes]:
    """The figures as files: the slots with equal slots, the saturated batches over time, and the first ladder."""
    from simulator.plots import batch_figure, ladder_figure, timeline_figure
    slots, batch, ladder = FIGURES
    saturated = {label: found.results[label, "saturated"] for label in found.labels}
    figures = {slots: timeline_figure(found.equal_slots, what=found.equal), batch: batch_figure(saturated)}
    for attribution in list(found.ladders.values())[:1]:
        if len(bars := frame(attribution)):
            figures[ladder] = ladder_figure(bars, heading(attribution), f"times as good as {attribution.names[0]}")
    return as_files(figures)
