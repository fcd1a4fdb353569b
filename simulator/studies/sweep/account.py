"""The account of a sweep: which of its points is best at what, and how far to trust that. It runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from cost_models import CostModel, CostModelError
from simulator.account import Account
from simulator.counting import counted
from simulator.facts import of_two_kinds, source_of, trust_in
from simulator.haste import too_hasty
from simulator.scenario import Scenario
from simulator.setup import cost_of
from simulator.studies.sweep import Sweep
from simulator.studies.sweep.loads import loads, pareto
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.pictures import less_is_better
from simulator.studies.sweep.records import Record, varied
from simulator.studies.sweep.served import serve_most, unserved
from simulator.studies.sweep.tables import certainty, has_rivals, number, table, tenants
from simulator.studies.sweep.variants import shown
from simulator.studies.sweep.words import points

WEIGHED = {"request_goodput": ("Most goodput", " requests/s"), "output_throughput": ("Most output tokens/s", ""),
           "p99_ttft_ms": ("Shortest TTFT, p99", " ms"), "p99_tpot_ms": ("Shortest TPOT, p99", " ms")}
"""The figures whose best points are named, where any point has them."""
COUNTS_ALL = "request_goodput"
"""The one that counts who is not served as badly served, so that every point may be its best."""
MOST_LOADS = 3
"""Loads whose best points are named; a sweep of more is answered by its table."""
MOST_NAMED = 5
"""Points that reject requests, and notes on what was done to traces, in the warnings."""


def account(found: Sweep) -> Account:
    """Question, answer, tables and facts."""
    records = averaged(found.records)
    names = ", ".join(varied(records)) or "nothing"
    traces = " and ".join(dict.fromkeys(str(each.get("trace")) for each in records)) or "the trace"
    tables = tuple(filter(None, (table(found), tenants(found), certainty(found))))
    return Account(f"What do other values of {names} change on {traces}?", (*_best(records), *_counted(found, records)),
                   tables, tuple(_facts(found)), tuple(_warnings(found)))


def _best(records: list[Record]) -> Iterator[str]:
    """A sentence a figure; of several loads with alternatives, the best of each."""
    kinds = _by_load(records)
    for name, (words, unit) in WEIGHED.items():
        told = [best for of_load in kinds if (best := _best_of(of_load, records, name, unit))]
        left = f"; {counted(len(told) - MOST_LOADS, 'more load')} in the table" if len(told) > MOST_LOADS else ""
        if told:
            yield f"{words}{' of each load' * (len(kinds) > 1)}: {'; '.join(told[:MOST_LOADS])}{left}."


def _by_load(records: list[Record]) -> list[list[Record]]:
    """The points that are alternatives to each other; all together where none are."""
    if not has_rivals(records):
        return [records]
    found = dict[str, list[Record]]()
    for load, each in zip(loads(records), records, strict=True):
        found.setdefault(load, []).append(each)
    return list(found.values())


def _best_of(of_load: list[Record], records: list[Record], name: str, unit: str) -> str:
    """The best figure of these points and who has it; empty where none has any."""
    rivals = of_load if name == COUNTS_ALL else serve_most(of_load)
    measured = [each for each in rivals if each.get(name) is not None]
    if not measured:
        return ""
    best = (min if less_is_better(name) else max)(each[name] for each in measured)
    first, *others = [each for each in measured if f"{each[name]:.4g}" == f"{best:.4g}"]
    equals = f", and with {len(others):,} more" if others else ""
    among = ", among those that serve the largest share of their requests" if len(rivals) < len(of_load) else ""
    return f"{number(best)}{unit} with {_values(first, records)}{_at_what_cost(first)}{equals}{among}"


def _at_what_cost(each: Record) -> str:
    """Whom it does not serve: a point that turns requests away looks good in all that is left."""
    lost = unserved(each)
    return f", which leaves {lost:,.0f} of {lost + each['completed']:,.0f} requests unserved" if lost else ""


def _values(each: Record, records: list[Record]) -> str:
    names = varied(records)
    return ", ".join(f"{name}={shown(each[name])}" for name in names if name in each) or "the scenario as given"


def _counted(found: Sweep, records: list[Record]) -> Iterator[str]:
    if has_rivals(records):
        same = " of the same load" if any(loads(records)) else ""
        best = sum(pareto(records))
        yield (f"{points(records)}, of which {best:,} {'is' if best == 1 else 'are'} beaten by no other one{same} in "
               "both output tokens/s for each user and for each GPU.")
    else:
        yield f"{points(records)}{', each of another load' if len(records) > 1 else ''}."
    if found.replications:
        yield f"Each point is the mean of {found.replications}."


def _facts(found: Sweep) -> Iterator[str]:
    for cost in costs(found):
        yield from (source_of(cost), *trust_in(cost))


def _too_hasty(scenario: Scenario) -> list[str]:
    """Its objectives that no step is short enough for; none of a point that has no cost model, and so failed."""
    with suppress(CostModelError, OSError):
        return list(too_hasty(scenario.goodput, cost_of(scenario)))
    return []


def costs(found: Sweep) -> list[CostModel]:
    """The cost models of all points, each once."""
    known: dict[str, CostModel] = {}
    for outcome in found.outcomes.values():
        with suppress(CostModelError, OSError):    # of a point that failed, which the warnings name
            cost = cost_of(outcome.scenario)
            known.setdefault(cost.name, cost)
    return list(known.values())


def _warnings(found: Sweep) -> Iterator[str]:
    for key, failure in found.failures.items():
        yield f"{key} failed: {failure.reason}"
    yield from remarks(found)


def remarks(found: Sweep) -> Iterator[str]:
    """What a reader of the points must know, besides which of them failed."""
    yield from _rejected(averaged(found.records))
    yield from islice(_noted(averaged(found.records)), MOST_NAMED)
    outside = sum(each.get("out_of_range_steps") or 0 for each in found.records)
    if outside:
        yield f"{counted(outside, 'step')} outside the measured range of the cost model, over all points"
    yield from dict.fromkeys(line for each in found.outcomes.values() for line in _too_hasty(each.scenario))
    if (told := of_two_kinds(costs(found), "The points are compared")) and not _varies(found, "cost_model"):
        yield told
    if found.unmeasured:
        yield found.unmeasured


def _noted(records: list[Record]) -> Iterator[str]:
    """What was done to the traces; of which point, where it was not done to all."""
    notes = dict[str, list[Record]]()
    for each in records:
        if each.get("trace_notes"):
            notes.setdefault(each["trace_notes"], []).append(each)
    for told, (first, *others) in notes.items():
        more = f" and {counted(len(others), 'more point')}" if others else ""
        yield told if len(others) + 1 == len(records) else f"{told}: with {_values(first, records)}{more}"


def _varies(found: Sweep, name: str) -> bool:
    """Whether a name is one of those that were varied, and does not just follow from them."""
    return any(name in variant.values for variant in found.variants.values())


def _rejected(records: list[Record]) -> Iterator[str]:
    """The points that reject requests, the worst first."""
    found = sorted((each for each in records if each.get("rejected")), key=lambda each: -each["rejected"])
    for each in found[:MOST_NAMED]:
        were = "was" if each["rejected"] == 1 else "were"
        count = f"{each['rejected']:,.0f} of {each['num_prompts']:,.0f} requests {were} rejected"
        yield f"{count} with {_values(each, records)}"
    if len(found) > MOST_NAMED:
        yield f"{counted(len(found) - MOST_NAMED, 'more point')} with rejected requests"


def findings(found: Sweep) -> dict[str, Any]:
    """What no single record says: what was varied, from what, and the account."""
    from simulator.scenarios import record
    first = next(iter(found.outcomes.values()))
    return {"varied": varied(averaged(found.records)), "replicated_by": found.replications or None,
            "account": found.account().plain(), "scenario": record(first.scenario)}
