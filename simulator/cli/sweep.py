"""`batchsim sweep`: a run for each combination of values. In a notebook: `sim.sweep(trace, vary={...}).table()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rich.text import Text
from typer import Exit, Option

from simulator.cli import values
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, MEASURES, ChosenLoad, ChosenPolicy, Common, Simulated
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.scaling import Scaling
from simulator.cli.tables import print_table
from simulator.cli.varied import Varied
from simulator.counting import counted
from simulator.facts import source_of
from simulator.remarks import NOBODY, unserved
from simulator.scenarios import record
from simulator.studies.campaign import Store
from simulator.studies.campaign.store import unusable
from simulator.studies.sweep import Sweep
from simulator.studies.sweep.account import costs, findings, remarks
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.pictures import heatmap_frame, pareto_frame, pareto_title, scattered_frame
from simulator.studies.sweep.records import to_csv, varied
from simulator.studies.sweep.tables import certainty, table, tenants
from simulator.studies.sweep.tuning import Tuned

RECORDS, TABLE, FAILURES, DIFFERENCES = "summary.json", "summary.csv", "failures.json", "differences.json"
FINDINGS = "sweep.json"
HEAT_MAP, PARETO = FIGURES = "heatmap.svg", "pareto.svg"
SWEEP_DIR = "batchsim-sweep"


@with_flags
def sweep(simulated: Simulated, asked_for: Varied, scaling: Scaling, common: Common,
          policy: ChosenPolicy = None,
          load: ChosenLoad = None,
          metric_percentiles: Annotated[str, Option(metavar="50,90,99", rich_help_panel=MEASURES, help=(
              "Percentiles to give of each latency."))] = "99",
          resume: Annotated[bool, Option("--resume", metavar="", rich_help_panel=FILES, help=(
              "Go on with an interrupted sweep: what was measured is not measured again."))] = False,
          result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
              f"Where the files go, {SWEEP_DIR} if not given. Replaces only what an earlier run wrote."))] = None,
          force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES,
                                        help="Replace any file.")] = False) -> None:
    """Run a grid or a list of settings, or search them: summaries in the shape of vLLM's sweep, and two pictures.

    Exit status 1 if a point fails, or none serves anybody.
    """
    asked_for.check()
    directory = ResultDirectory(SWEEP_DIR if result_dir is None else result_dir, force=force)
    directory.check([RECORDS, TABLE, FINDINGS, FAILURES, DIFFERENCES, *FIGURES], outdated=_drawn_beside(directory))
    check_drawing()
    fields = simulated.scenario(common, policy=policy, load=load)
    asked: dict[str, Any] = {
        "settings": fields.pop("knobs"), **fields, "backend": scaling.chosen, "retries": scaling.tries,
        "percentiles": values.percentiles("--metric-percentiles", metric_percentiles)}
    with (Store(directory.path, f"percentiles {metric_percentiles}", resume=resume, force=force, told=note) as store,
          Bar("sweep", unit="points", quiet=common.quiet, log=True) as bar):
        found = _answered(asked_for, store, told=bar.one, **asked)
        _written(directory, files(found))
        left = store.others()
    _tell(found, common)
    for line in simulated.without_effect(*(variant.scenario for variant in found.variants.values())):
        note(f"batchsim: {line}")
    if not common.quiet:
        names = [RECORDS, TABLE, FINDINGS, FAILURES, *([DIFFERENCES] if found.replications else [])]
        note(f"written to {directory.path}/: {', '.join(names)} and the figures")
    if left:
        note(f"{directory.path} also has {counted(left, 'point')} that this sweep does not ask for: its summaries and "
             "figures leave them out")
    told = [unserved(each) for each in found.records]
    if told and all(told):
        note(f"batchsim: {told[0]}")
    if found.failures or (told and all(told)):
        raise Exit(NOBODY)


def _answered(asked_for: Varied, store: Store, **asked: Any) -> Sweep:
    """What the study finds; who interrupts it is told what is kept."""
    try:
        return asked_for.run(store=store, **asked)
    except KeyboardInterrupt:
        note(f"{counted(store.count(), 'point')} kept in {store.path}/: the same command with --resume goes on")
        raise


def _written(directory: ResultDirectory, contents: Mapping[str, bytes]) -> None:
    """Write the files; a disk that does not take them loses no point."""
    try:
        directory.write(contents, outdated=[DIFFERENCES, *FIGURES, *_drawn_beside(directory)])
    except OSError as error:
        raise unusable(directory.path, error) from None


def _drawn_beside(directory: ResultDirectory) -> list[str]:
    """Heat maps that `batchsim plot` made of an earlier answer."""
    return sorted(path.name for path in directory.path.glob(HEAT_MAP.replace(".", "-*.")))


def files(found: Sweep) -> dict[str, bytes]:
    """All files of a sweep by name."""
    failures = [{"point": key, "reason": failure.reason, "tries": failure.tries, "scenario": record(failure.scenario)}
                for key, failure in found.failures.items()]
    pictures = drawn(found.records, **({"metric": found.objective} if isinstance(found, Tuned) else {}))
    return {RECORDS: as_json(found.records).encode(), TABLE: to_csv(found.records).encode(),
            FINDINGS: as_json(findings(found) | {"figures": list(pictures)}).encode(),
            FAILURES: as_json(failures).encode(), **pictures,
            **({DIFFERENCES: as_json(differences(found)).encode()} if found.replications else {})}


def differences(found: Sweep) -> list[dict[str, Any]]:
    """Every figure of every point beside that of the first one."""
    return [each.plain() for each in found.differences()]


def drawn(records: list[dict[str, Any]], **asked: str | None) -> dict[str, bytes]:
    """The figures as files, as far as there is anything to draw. `asked` are those of `heatmap_frame`."""
    from simulator.plots import pareto_figure
    records = averaged(records)
    figures, frame = {}, pareto_frame(records)
    if len(frame) and (varied(records) or any(asked.values())):
        figures[HEAT_MAP] = _map(records, asked)
    if len(frame):
        figures[PARETO] = pareto_figure(frame, pareto_title(frame))
    return as_files(figures)


def _map(records: list[dict[str, Any]], asked: Mapping[str, str | None]) -> Any:
    """One metric over two parameters: a heat map of a grid, the points themselves of a search or a list."""
    from simulator.plots import heatmap_figure, search_figure
    if scattered := scattered_frame(records, **asked):
        frame, title, less = scattered
        return search_figure(frame, title, less=less)
    return heatmap_figure(*heatmap_frame(records, **asked))


def _tell(found: Sweep, common: Common) -> None:
    """One document, or a table and what won; what failed is on stderr in any case."""
    best = found.best if isinstance(found, Tuned) else None
    if common.json:
        failed = {key: failure.reason for key, failure in found.failures.items()}
        again = found.again.plain() if isinstance(found, Tuned) and found.again else None
        told = {"differences": differences(found)} if found.replications else {}
        more = {"best": best, "again": again} if best else told
        print(as_json({"runs": found.records, "failures": failed, **more}), end="")
    else:
        for each in filter(None, (table(found), tenants(found), certainty(found))):
            print_table(answers(), each)
        if isinstance(found, Tuned) and best:
            for line in found.praised(best):
                answers().print(line, markup=False)
        answers().print()
        for line in (*map(source_of, costs(found)), *remarks(found)):
            answers().print(Text(line, style="dim"))
    for key, failure in found.failures.items():
        times = "once" if failure.tries == 1 else f"{failure.tries} times"
        note(f"batchsim: {key} failed, tried {times}: {failure.reason}")
