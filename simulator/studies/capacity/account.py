"""The account of a plan: its question in one sentence, and what it found in words. It measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.account import Account
from simulator.facts import facts_of, trust_in
from simulator.remarks import turns_remark
from simulator.studies.capacity.objectives import count, percent

if TYPE_CHECKING:
    from simulator.studies.capacity.planning import Plan


def account(found: Plan) -> Account:
    """Question, answer, tables and facts."""
    told = (_question(found), tuple(found.told()), tuple(found.tables()))
    if found.best.lab is None:
        return Account(*told)
    setup = found.best.lab.traffic.setup
    notes = [*setup.trace.report.notes, *turns_remark(setup)]
    return Account(*told, (*facts_of(setup), *trust_in(setup.cost)), tuple(notes))


def _question(found: Plan) -> str:
    asked, scenario = found.question, found.question.scenario
    policy, trace = (getattr(each, "name", each) for each in (scenario.policy, scenario.trace))
    kept = ", and ".join(f"{percent(each.share)} of requests with {each}" for each in asked.objectives)
    if asked.find == "rate":
        fleet = f"{count(scenario.replicas)} of {policy}"
        return f"How much of the traffic of {trace} do {fleet} carry, keeping these objectives: {kept}?"
    return f"How many replicas of {policy} does the traffic of {trace} take, to keep these objectives: {kept}?"
