"""The README's plan is what `batchsim plan` prints today. ``python tests/test_readme_plan.py`` writes it anew."""

from __future__ import annotations

import pytest
from rich.console import Console
from test_readme import README, columns, part, printed, replace

import simulator as sim
from simulator.cli.plan import print_story
from simulator.cli.tables import print_table
from simulator.studies.capacity import Plan
from simulator.studies.capacity.tables import binding_table, cost_table, neighbour_table


def found() -> Plan:
    """The plan that the README asks for."""
    return sim.plan(rate_scale=10, num_prompts=3000, goodput={"ttft": 500, "tpot": 50})


def shown(plan: Plan) -> str:
    """Its sentences, and the tables but the curve, which is a picture."""
    def show(console: Console) -> None:
        print_story(console, plan)
        for table in (neighbour_table(plan), binding_table(plan), cost_table(plan)):
            print_table(console, table)

    return printed(show)


@pytest.mark.slow
def test_the_plan_is_that_of_today() -> None:
    assert columns(part("plan", README.read_text(encoding="utf-8"))) == columns(shown(found()))


if __name__ == "__main__":
    replace("plan", shown(found()))
