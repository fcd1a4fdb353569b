"""`batchsim regress`: today beside a baseline. In a test: `simulator.studies.regression.regress(path).check()`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text
from typer import Exit, Option

from simulator.cli import complete, values
from simulator.cli.baseline import CHECK, RESULT, TOLERANCE, alone, tolerances
from simulator.cli.console import answers, as_json
from simulator.cli.drawing import as_files, check_drawing
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import ENGINE, FILES, Common, Force, Simulated
from simulator.cli.output import ResultDirectory
from simulator.cli.progress import Bar
from simulator.cli.shaping import TRAFFIC
from simulator.cli.tables import print_table
from simulator.errors import InputError
from simulator.scenario import FIELDS, Scenario, scenario_of
from simulator.studies import regression
from simulator.studies.regression import Regression
from simulator.studies.regression.baseline import entry
from simulator.studies.regression.pictures import frame
from simulator.studies.regression.tables import counts, tables, unread

FINDINGS, SUMMARY, JUNIT, FIGURE = "regression.json", "regression.md", "regression.xml", "regression.svg"
WRITTEN = (FIGURE, SUMMARY, JUNIT, FINDINGS)
REGRESS_DIR = "batchsim-regress"


@partial(with_flags, show_defaults=False)
def regress(simulated: Simulated, common: Common,
            baseline: Annotated[str, Option(metavar="FILE|DIR", rich_help_panel=CHECK, help=(
                "What `batchsim baseline save` wrote, a folder of such files, or a result of `vllm bench serve` or "
                "`batchsim run`."))],
            result: Annotated[list[str] | None, Option(metavar="FILE", rich_help_panel=CHECK, help=RESULT)] = None,
            metrics: Annotated[str | None, Option(metavar="METRIC,METRIC", rich_help_panel=CHECK, help=(
                "Compare only these, such as output_throughput,p99_ttft_ms or ttft; all that the baseline measured if "
                "not given."))] = None,
            tolerance: Annotated[list[str] | None, Option(metavar="[METRIC=]X", rich_help_panel=CHECK, help=(
                f"{TOLERANCE} Wins over the baseline's own."))] = None,
            accept: Annotated[str | None, Option(metavar="REASON", rich_help_panel=CHECK, help=(
                "Make the current run the baseline; the reason goes into its history."))] = None,
            policy: Annotated[str | None, Option(metavar="NAME|FILE.py:CLASS", autocompletion=complete.policies,
                                                 rich_help_panel=ENGINE, help=(
                "Another policy than the scenario's."))] = None,
            load: Annotated[str | None, Option(metavar="trace|saturated", autocompletion=complete.loads,
                                               rich_help_panel=TRAFFIC, help=(
                "Another load than the scenario's."))] = None,
            result_dir: Annotated[str | None, Option("--result-dir", "-o", metavar="DIR", rich_help_panel=FILES, help=(
                f"Where {FIGURE}, {SUMMARY}, {JUNIT} and {FINDINGS} go, {REGRESS_DIR} if not given. Replaces only what "
                "an earlier run wrote."))] = None,
            force: Force = False) -> None:
    """Run a baseline's scenario again, and say whether anything is not what it was, and what is to blame.

    Exact by default: what is simulated again by the same version must not even improve. A flag that is left out is
    what the baseline's scenario says; flags and --scenario change what is run. Exit status 0 for a pass, 1 for a
    regression, 3 where nothing was compared, 2 for wrong input.
    """
    if not baseline.strip():
        raise InputError(f"--baseline must name a file or a folder, not {baseline!r}")
    directory = ResultDirectory(REGRESS_DIR if result_dir is None else result_dir, force=force)
    directory.check(WRITTEN)
    if directory.path.resolve() == Path(baseline).resolve():
        raise InputError(f"{baseline} is the folder of the baselines, where the answer would be taken for one: give "
                         "another -o")
    check_drawing()
    _check_accepting(accept, metrics)
    if result:
        alone(simulated, common, policy, load)
    changes = _changes(simulated, common, policy, load)
    with Bar("regress", unit="baselines", quiet=common.quiet) as bar:
        found = regression.regress(
            baseline, simulated.file, results=result or (), tolerance=tolerances(tolerance), told=bar.many,
            metrics=() if metrics is None else values.words("--metrics", metrics), **changes)
    directory.write(files(found))
    accepted = None if accept is None else [each.path for each in regression.accept(found, accept)]
    if common.json:
        print(as_json(found.to_dict() | ({} if accepted is None else {"accepted": accepted})), end="")
    elif accepted is None:
        _tell(found)
    else:
        _tell_accepted(found, accepted)
    for line in simulated.without_effect(*_ran(found)):
        note(f"batchsim: {line}")
    if not common.quiet and not common.json:
        note(f"written to {directory.path}/: {', '.join(WRITTEN)}")
    if accepted is None and found.status:
        raise Exit(found.status)


def _changes(simulated: Simulated, common: Common, policy: str | None, load: str | None) -> dict[str, Any]:
    """The fields of the scenario that were typed."""
    said = {"policy": policy, "load": load, "knobs": simulated.knobs or None}
    return simulated.typed(common) | {name: value for name, value in said.items() if value is not None}


def _ran(found: Regression) -> list[Scenario]:
    """What was run now, in place of each baseline."""
    records = [each.current.scenario for each in found.compared if each.current and each.current.scenario]
    return [scenario_of(**{name: value for name, value in record.items() if name in FIELDS}) for record in records]


def _check_accepting(reason: str | None, metrics: str | None) -> None:
    """Refuse before any work what cannot be accepted."""
    if reason is not None:
        entry(reason)
        if metrics is not None:
            raise InputError("--accept takes over the whole run: leave out --metrics")


def files(found: Regression) -> dict[str, bytes]:
    """All files by name."""
    from simulator.plots import regression_figure
    texts = {FINDINGS: as_json(found.to_dict()), SUMMARY: found.to_markdown(), JUNIT: found.to_junit()}
    return {name: text.encode(errors="backslashreplace") for name, text in texts.items()} | as_files(
        {FIGURE: regression_figure(frame(found), found.verdict())})


def _tell(found: Regression) -> None:
    answers().print(Text(found.verdict(), style="bold"))
    for line in unread(found):
        answers().print(Text(line))
    for table in tables(found):
        print_table(answers(), table)


def _tell_accepted(found: Regression, accepted: list[str]) -> None:
    """What became of each baseline; what has moved is in the files, and in its history."""
    for each in found.compared:
        path = each.baseline.path if each.baseline else each.name
        told = f"Accepted: {path}, {counts(each)}" if path in accepted else f"Unchanged: {path}"
        answers().print(Text(f"{told}.", style="bold"))
