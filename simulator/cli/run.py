"""`batchsim run`: one policy, one load. In a notebook: `sim.simulate(trace, policy, load=...).summary()`."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Exit, Option

from simulator.cli.console import answers
from simulator.cli.flags import with_flags
from simulator.cli.lines import note
from simulator.cli.options import FILES, ChosenLoad, ChosenPolicy, Common, Simulated, Written
from simulator.cli.output import ResultDirectory, detail_name, free_path, run_files, run_name
from simulator.cli.progress import Bar
from simulator.cli.summary import print_summary
from simulator.facts import assumed, load_of
from simulator.policies.making import make_policies
from simulator.remarks import NOBODY, never_served, rejected_remark, unserved
from simulator.scenario import Scenario
from simulator.simulation import run as simulate


@with_flags
def run(simulated: Simulated, written: Written, common: Common,
        policy: ChosenPolicy = None,
        load: ChosenLoad = None,
        save_result: Annotated[bool, Option("--save-result", metavar="", rich_help_panel=FILES, help=(
            "Write the result as JSON; -o says so too."))] = False,
        result_filename: Annotated[str | None, Option(metavar="NAME", rich_help_panel=FILES, help=(
            "Name of that file; POLICY-LOAD.json if not given."))] = None,
        trace_events: Annotated[str | None, Option("--trace-events", metavar="FILE.json", rich_help_panel=FILES, help=(
            "Also write slots, requests, steps, queue and KV cache over time, for ui.perfetto.dev."))] = None) -> None:
    """Simulate one policy under one load, and measure it.

    Exit status 1 if it serves nobody.
    """
    fields = simulated.scenario(common, policy=policy, load=load)
    chosen = make_policies([fields.pop("policy", Scenario.policy)], fields.pop("knobs"))[0]
    scenario = Scenario(policy=chosen, **fields)
    simulated.refuse_idle(scenario)
    asked = written.asked
    saves = save_result or written.save_detailed or not (written.result_dir is None and result_filename is None)
    directory = ResultDirectory(written.directory, force=written.force)
    name = run_name(chosen.name, scenario.load) if result_filename is None else result_filename
    events = None if trace_events is None else free_path("--trace-events", trace_events, force=written.force)
    if saves:
        names = [name, detail_name(name)] if written.save_detailed else [name]
        directory.check(names, outdated=[detail_name(name)])
        if events is not None:
            directory.refuse_as_place_of("--trace-events", events, names)
    with Bar(f"{chosen.name}, {scenario.load}", quiet=common.quiet) as bar:
        result = simulate(scenario, progress=bar.one)
    document = result.to_json(**asked)
    if saves:
        directory.write(run_files(result, name, detailed=written.save_detailed, asked=asked),
                        outdated=[detail_name(name)])
    if events is not None:
        result.save_trace_events(events)
    measured = json.loads(document)
    if common.json:
        print(document, end="")
    else:
        lost = never_served(measured)
        if lost:    # what follows is of the others alone
            answers().print(lost, style="bold", markup=False)
        print_summary(answers(), measured, load_of(scenario), assumed(result.setup, result.memory))
        for line in measured["remarks"]:
            if not lost or line != rejected_remark(measured):
                answers().print(line, markup=False)
        places = [str(directory.path / name)] * saves + [str(events)] * (events is not None)
        if places and not common.quiet:
            note(f"written to {' and '.join(places)}")
    if nobody := unserved(measured):
        note(f"batchsim: {nobody}")
        raise Exit(NOBODY)
