"""`batchsim baseline save`: keep what a run comes to. In a notebook: `regression.save(path, scenario)`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from simulator.cli import values
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.options import FILES, ChosenLoad, ChosenPolicy, Common, Force, Simulated
from simulator.cli.output import free_path
from simulator.cli.progress import Bar
from simulator.counting import counted
from simulator.errors import InputError
from simulator.policies.making import make_policies
from simulator.scenario import Scenario, scenario_of
from simulator.studies import regression

CHECK = "Check"
RESULT = ("What `vllm bench serve --save-result` or `batchsim run` wrote, in place of a run; repeatable for "
          "repetitions, of which the mean counts.")
TOLERANCE = ("How far a metric may move: exact or a percentage, for all (5%) or one (p99_ttft_ms=10%, ttft=10%), for "
             "one also a number in its unit (p99_ttft_ms=20); repeatable.")


@with_flags
def save(simulated: Simulated, common: Common,
         policy: ChosenPolicy = None,
         load: ChosenLoad = None,
         result: Annotated[list[str] | None, Option(metavar="FILE", rich_help_panel=CHECK, help=RESULT)] = None,
         tolerance: Annotated[list[str] | None, Option(metavar="[METRIC=]X", rich_help_panel=CHECK, help=(
             f"{TOLERANCE} Kept in the baseline."))] = None,
         output: Annotated[str, Option("--output", "-o", metavar="FILE", rich_help_panel=FILES, help=(
             "The baseline."))] = "baseline.json",
         force: Force = False,
         ) -> None:
    """Save what a scenario comes to, or what was measured, for `batchsim regress` to compare with."""
    path = free_path("-o", output, force=force)
    texts = tolerances(tolerance)
    if result:
        alone(simulated, common, policy, load)
        found = regression.save(path, results=result, tolerance=texts)
    else:
        fields = simulated.scenario(common, policy=policy, load=load)
        chosen = make_policies([fields.pop("policy", Scenario.policy)], fields.pop("knobs"))[0]
        scenario = scenario_of(policy=chosen, **fields)
        simulated.refuse_idle(scenario)
        with Bar("baseline", quiet=common.quiet) as bar:
            found = regression.save(path, scenario, tolerance=texts, progress=bar.one)
    if common.json:
        print_json({"baseline": str(path), "kind": found.side.kind, "metrics": dict(found.side.metrics)})
        return
    measured = sum(value is not None for value in found.side.metrics.values())
    for line in found.side.notes:
        answers().print(line, markup=False)
    kind = "run" if found.side.kind == "simulated" else "measurement"
    answers().print(f"{counted(measured, 'metric')} of a {kind} {'is' if measured == 1 else 'are'} the baseline "
                    f"{path}: compare with batchsim regress --baseline {path}", markup=False)


def tolerances(texts: list[str] | None) -> dict[str, str]:
    """What --tolerance says, by metric or "all"."""
    named = [part if "=" in part else f"all={part}" for text in texts or () for part in text.split(",")]
    return values.pairs("--tolerance", named)


def alone(simulated: Simulated, common: Common, policy: str | None, load: str | None) -> None:
    """Refuse what would be run beside --result."""
    if simulated.given or "seed" in common.given or not (policy is None and load is None):
        raise InputError("--result takes the place of a run: leave out the flags of a scenario")
