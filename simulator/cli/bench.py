"""`batchsim bench`: how fast batchsim is on this machine. In a notebook: `simulator.bench.bench().tables()`."""

from __future__ import annotations

from typing import Annotated

from rich.text import Text
from typer import Argument, Option

from simulator.cli import complete, values
from simulator.cli.console import answers, print_json
from simulator.cli.flags import with_flags
from simulator.cli.options import Common
from simulator.cli.progress import Bar


@with_flags
def bench(common: Common,
          workloads: Annotated[list[str] | None, Argument(metavar="WORKLOAD", autocompletion=complete.workloads,
                                                          show_default=False, help=(
              "planning, command, saturated-256, saturated-128, million, read or policies; all if not given."))] = None,
          policies: Annotated[str | None, Option(metavar="NAME,NAME", autocompletion=complete.policies, help=(
              "Simulate with these policies, FILE.py:CLASS for one of your own. Not given: with vllm, and in the "
              "workload `policies` with each of them."))] = None,
          quick: Annotated[bool, Option("--quick", metavar="", help="Small sizes, for a look.")] = False,
          repeat: Annotated[str | None, Option(metavar="N", help=(
              "Attempts at each, of which the best counts. Not given: 5, but fewer of what takes long, and 2 with "
              "--quick."))] = None) -> None:
    """Measure how fast batchsim itself is on this machine: CPU time and peak memory, each case in a fresh process."""
    from simulator.bench import bench as study
    names = None if policies is None else values.words("--policies", policies)
    attempts = values.count("--repeat", repeat)
    with Bar("bench", unit="cases", quiet=common.quiet) as bar:
        found = study(workloads, policies=names, quick=quick, repeat=attempts, seed=common.seed_number,
                      progress=bar.many)
    if common.json:
        print_json(found.records())
        return
    from simulator.cli.tables import print_table
    console = answers()
    console.print(Text(found.where(), style="dim"))
    for table in found.tables():
        print_table(console, table)
