"""`batchsim init`: a commented scenario file to start from. In Python: `simulator.scenarios.template`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from simulator.cli import complete
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.lines import note, one_line
from simulator.cli.options import ENGINE, FILES, Common, Simulated
from simulator.cli.output import free_path
from simulator.cli.shaping import TRAFFIC
from simulator.documents import readable
from simulator.launching import Launch, translate
from simulator.policies.making import make_policy
from simulator.saved import write_whole
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios import ScenarioFile
from simulator.scenarios.recording import plain
from simulator.scenarios.template import template
from simulator.setup import cost_of
from simulator.traffic import read_trace

OUTPUT = "scenario.yaml"
READ = {"trace", "reading", "mix", "tenants"}
"""Fields that say what is read, and how."""
NO_GPU = (f"A command line does not say on which GPU it runs: {Scenario.gpu} is taken; give --gpu, of those that "
          "batchsim list gpus names")


@with_flags
def init(simulated: Simulated, common: Common,
         command: Annotated[str | None, Option("--from", metavar='"vllm serve ..."', rich_help_panel=FILES, help=(
             "The command line by which an engine is started: vllm serve, sglang.launch_server, "
             "text-generation-launcher or trtllm-serve. Its flags become fields, and those that cannot are told."))]
         = None,
         policy: Annotated[str | None, Option(metavar="NAME|FILE.py:CLASS", autocompletion=complete.policies,
                                              rich_help_panel=ENGINE, help="A policy; vllm if not given.")] = None,
         load: Annotated[str | None, Option(metavar="trace|saturated", autocompletion=complete.loads,
                                            rich_help_panel=TRAFFIC, help="trace if not given.")] = None,
         output: Annotated[str, Option("--output", "-o", metavar="FILE.yaml", rich_help_panel=FILES, help=(
             "Where to write it."))] = OUTPUT,
         force: Annotated[bool, Option("--force", metavar="", rich_help_panel=FILES, help=(
             "Replace that file."))] = False) -> None:
    """Write a commented scenario file: every field, what it means, and what it is if you leave it alone.

    Flags given beside it are written into it, and so is what --scenario FILE says, YAML or the JSON of a result.
    """
    path = free_path("--output", output, force=force)
    typed = simulated.typed(common) | {name: value for name, value in (("policy", policy), ("load", load))
                                         if value is not None}
    launch = None if command is None else translate(command, typed)
    said = _said(simulated, {} if launch is None else launch.fields, typed)
    _check(said)
    write_whole(path, template(said, _notes(command, launch, said), readable(output)))
    if common.json:
        print_json(_document(path, said, launch))
        return
    for line in [] if launch is None else launch.told():
        answers().print(one_line(line), markup=False)
    if launch is not None and "gpu" not in said:
        note(NO_GPU)
    if not common.quiet:
        note(f"written to {path}: run it with batchsim run --scenario {path}")


def _said(simulated: Simulated, launched: dict[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    """What the file says, the command line over it, and over both the flags; --set adds to the knobs."""
    launch = ScenarioFile("--from", launched, {}, ())
    said = (launch if simulated.file is None else simulated.file).with_changes(launch.with_changes(typed))
    knobs = {**said.get("knobs", {}), **simulated.knobs}
    return said | ({"knobs": knobs} if knobs else {})


def _check(said: dict[str, Any]) -> None:
    """Refuse what could not be run: a trace that somebody named is read, too."""
    scenario = scenario_of(**said)
    make_policy(scenario.policy, scenario.knobs)
    cost_of(scenario)
    if READ & said.keys():
        read_trace(scenario)


def _notes(command: str | None, launch: Launch | None, said: dict[str, Any]) -> list[str]:
    """What the head of the file says of where it comes from."""
    if launch is None:
        return []
    lines = [f"From: {one_line(str(command))}", *(f"{flag} is not modelled: {why}" for flag, why in
                                                  launch.not_modelled.items())]
    return lines if "gpu" in said else [*lines, NO_GPU]


def _document(path: Path, said: dict[str, Any], launch: Launch | None) -> dict[str, Any]:
    told = None if launch is None else {
        "engine": launch.engine.name, "mapped": launch.mapped, "not_modelled": launch.not_modelled,
        "without_effect": launch.aside, "not_looked_at": launch.before}
    return {"written": str(path), "scenario": plain(said), "from": told}
