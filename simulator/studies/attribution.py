"""Attribution: which habit of a policy is worth how much, in factors that multiply exactly to the whole.

Between two policies lie those with some of their switches thrown; each is simulated once. A ladder throws them one
after the other, and its factors depend on the order. Shapley shares are the mean over all orders, of logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError, choose
from simulator.policies import Policy, StaticBatching
from simulator.policies.making import make_policies
from simulator.replication import only_one_replica
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios.held import held
from simulator.setup import prepare
from simulator.studies.bound import SlotBound, slot_bound
from simulator.studies.climb import NATURAL, Climb
from simulator.studies.points import METRICS, Point, Told, measure
from simulator.studies.rungs import Rung, ratio
from simulator.studies.shapley import Set, prefixes, shapley_value, subsets
from simulator.studies.switches import Switch
from simulator.tables import Table
from simulator.traffic import read_trace
from traces import Trace

if TYPE_CHECKING:
    import pandas as pd

MOST_SWITCHES = 6
"""Of which Shapley shares are worked out unquestioned: each more takes twice the runs."""
Measure = Callable[[Mapping[str, Scenario]], Mapping[str, Point]]
"""Runs scenarios, and gives their points by the same keys."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What `attribute` found; `why` tells it in sentences and tables.

    Attributes:
        scenario: What all runs have in common.
        names: Of the policy at the start and at the end.
        metric: That is taken apart, one of METRICS.
        switches: Those in which the two differ, in the natural order.
        corrections: The start as it is, then without each of its artefacts.
        ladders: By order, in words, the rungs from the corrected start to the end; the natural order comes first.
        shares: By switch, its part of the logarithm of the ratio in seconds and in steps; None if nobody asked.
        bound: What freed slots alone can be worth at most, in steps; None if the two do not differ in that.
        slots_in_steps: What they are worth in steps with the prompts mixed in, where the two differ in that too.
    """

    scenario: Scenario
    names: tuple[str, str]
    metric: str
    switches: tuple[Switch, ...]
    corrections: tuple[Rung, ...]
    ladders: Mapping[str, tuple[Rung, ...]]
    shares: Mapping[str, tuple[float, float]] | None
    bound: SlotBound | None = None
    slots_in_steps: Fraction | None = None

    def told(self) -> list[str]:
        """The ratio and its parts, in sentences."""
        from simulator.studies.why import story
        return story(self)

    def tables(self) -> list[Table]:
        """The ladders, one an order, and the shares."""
        from simulator.studies.why_tables import tables
        return tables(self)

    def frame(self) -> pd.DataFrame:
        """One row a bar of the figure: see `why_records.frame`."""
        from simulator.studies.why_records import frame
        return frame(self)

    @property
    def empty(self) -> bool:
        """Whether nobody is served, from the start as it is to the end."""
        return not any(rung.point.completed for rung in (*self.corrections, *self.ladder))

    @cached_property
    def trace(self) -> Trace:
        """The trace that all runs replay, as far as it is used."""
        return read_trace(self.scenario)

    @property
    def ladder(self) -> tuple[Rung, ...]:
        """The rungs in the natural order, the foot first."""
        return self.ladders[NATURAL]

    @property
    def total(self) -> Fraction | None:
        """What the end is worth over the corrected start: the product of the factors of any ladder."""
        return ratio(self.ladder[0].point.worth(self.metric), self.ladder[-1].point.worth(self.metric))

    @property
    def total_in_steps(self) -> Fraction | None:
        """The same if every step cost the same."""
        return ratio(self.ladder[0].point.tokens_per_step, self.ladder[-1].point.tokens_per_step)

    @property
    def raw(self) -> Fraction | None:
        """What the end is worth over the start as it is, artefacts included."""
        return ratio(self.corrections[0].point.worth(self.metric), self.ladder[-1].point.worth(self.metric))


def usual_load(metric: str) -> str:
    """How requests come where nobody says it: goodput is of the trace's own times."""
    return "trace" if metric == "goodput" else "saturated"


def attribute(trace: Trace | str = "azure-conv-2023", start: Policy | str = "static", end: Policy | str = "vllm", *,
              settings: Mapping[str, Any] | None = None, metric: str = "throughput", shapley: bool = False,
              max_switches: int = MOST_SWITCHES, workers: int = 1, told: Told | None = None,
              **options: Any) -> Attribution:
    """Take the ratio between two policies apart.

    `static` given by name is padded, as it is deployed, unless the settings say otherwise. Runs are saturated, but
    those for goodput, which are at the trace's own times; `load` says otherwise.

    Args:
        trace: Replayed in all runs.
        start, end: Policies that `hybrid` can be: static, vllm, hybrid.
        settings: "knob" or "policy.knob" to a value.
        metric: One of METRICS.
        shapley: Also work out the shares that no order decides.
        max_switches: Refuse to do so for more.
        workers: Processes that run at once.
        told: Hears how far it has got.
        options: The other fields of Scenario.

    Example:
        >>> found = attribute("azure-conv-2023", num_prompts=50)
        >>> [(rung.key, round(float(rung.factor), 2)) for rung in found.ladder][1:4], round(float(found.total), 2)
        ([('granularity', 1.74), ('cap', 0.97), ('memory', 1.0)], 2.58)
    """
    choose("metric", metric, METRICS)
    scenario = held(scenario_of(**{"load": usual_load(metric), "trace": trace, **options}))
    only_one_replica("why", scenario)
    if metric == "goodput" and not scenario.goodput:
        raise InputError("goodput needs an objective: give --goodput ttft:500,tpot:50, for example")
    climb = Climb(scenario, *_policies(start, end, settings or {}))
    if shapley and len(climb.keys) > max_switches:
        raise InputError(f"{len(climb.keys)} switches differ, and their Shapley shares take up to "
                         f"{2 ** len(climb.keys)} runs: give --max-switches {len(climb.keys)} if you have the time")
    return take_apart(climb.read(), metric, lambda runs: measure(runs, workers, told), shapley=shapley)


def _policies(start: Policy | str, end: Policy | str, settings: Mapping[str, Any]) -> tuple[Policy, Policy]:
    if start == end:
        raise InputError(f"{start} differs from itself in nothing: give two policies, such as --from static --to vllm")
    first, last = make_policies([start, end], settings)
    if {"padded", "static.padded"} & set(settings):
        return first, last
    return (replace(first, padded=True) if isinstance(first, StaticBatching) and start == "static" else first,
            replace(last, padded=True) if isinstance(last, StaticBatching) and end == "static" else last)


def take_apart(climb: Climb, metric: str, measured: Measure, *, brief: bool = False,
               shapley: bool = False) -> Attribution:
    """Run what it takes, each run once, and put it together; `brief` is the natural order and nothing else."""
    orders = {NATURAL: climb.keys} if brief else climb.orders()
    corners = {*subsets(climb.keys)} if shapley else {each for order in orders.values() for each in prefixes(order)}
    corners |= set() if brief else {_slots(climb), frozenset(climb.keys) & {"granularity"}}
    points = measured(climb.runs(corners))
    found = {corner: points[climb.flags(corner)] for corner in corners}
    foot = found[frozenset()]
    raw = [*(points[climb.stage_flags(stage)] for stage in range(len(climb.stages) - 1)), foot]
    told = Attribution(climb.scenario(frozenset()), climb.names, metric, climb.switches,
                       tuple(_corrections(climb, raw, metric)),
                       {words: tuple(_rungs(climb, order, found, metric)) for words, order in orders.items()},
                       _shares(climb.keys, found, metric) if shapley else None)
    if brief or (climb.foot.granularity, climb.end.granularity) != ("batch", "step"):
        return told
    freed = [found[corner] for corner in (_slots(climb), frozenset({"granularity"}))]
    return replace(told, bound=_bound(climb, foot, max(point.sequences for point in (foot, *freed))),
                   slots_in_steps=ratio(foot.tokens_per_step, freed[0].tokens_per_step))


def _slots(climb: Climb) -> Set:
    """The corner in which slots are freed, and prompts cost no steps of their own."""
    return frozenset(climb.keys) & {"granularity", "prefill"}


def _corrections(climb: Climb, points: Sequence[Point], metric: str) -> Iterator[Rung]:
    """The start as it is, then without one artefact after the other."""
    for at, (key, words, _) in enumerate(climb.stages):
        yield Rung(key, words, points[at], points[max(0, at - 1)], climb.stage_flags(at), metric)


def _rungs(climb: Climb, order: Sequence[str], points: Mapping[Set, Point], metric: str) -> Iterator[Rung]:
    words = {switch.key: switch.words for switch in climb.switches}
    before = points[frozenset()]
    for key, corner in zip(("", *order), prefixes(order), strict=True):
        yield Rung(key, words.get(key, ""), points[corner], before, climb.flags(corner), metric)
        before = points[corner]


def _shares(keys: Sequence[str], points: Mapping[Set, Point], metric: str) -> dict[str, tuple[float, float]]:
    """Shapley shares of the logarithm of the ratio, in seconds and in steps."""
    if not all(point.worth(metric) for point in points.values()):
        raise InputError("some policy in between serves nothing here, so the ratio has no shares: "
                         "leave out --shapley, or loosen the objectives")
    seconds = {corner: log(point.worth(metric)) for corner, point in points.items()}
    steps = {corner: log(point.tokens_per_step) for corner, point in points.items()}
    return {key: (shapley_value(key, keys, seconds), shapley_value(key, keys, steps)) for key in keys}


def _bound(climb: Climb, foot: Point, at_once: int) -> SlotBound | None:
    """With the slots that ran: where memory lets fewer in, a cap bounds nothing."""
    setup = prepare(climb.scenario(frozenset()))
    return slot_bound(setup.output[setup.verdict == 0].tolist(), min(foot.slots, at_once), foot.longest)
