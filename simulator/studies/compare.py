"""compare: several policies on one trace - how much each serves, how it feels, and where the difference comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.account import Account
from simulator.counting import counted
from simulator.display import account_card
from simulator.errors import InputError
from simulator.frozen import Kept
from simulator.metrics import METRICS, json_keys
from simulator.mistaken import check_lists
from simulator.policies.base import Policy
from simulator.policies.making import make_policies
from simulator.policies.static import StaticBatching
from simulator.policies.vllm import Vllm
from simulator.replication import only_one_replica
from simulator.result import Result
from simulator.scenario import Load, scenario_of
from simulator.scenarios.held import held
from simulator.studies.attribution import Attribution, take_apart
from simulator.studies.certainty import Certainty, Repeated
from simulator.studies.climb import Climb
from simulator.studies.contenders import LOADS, Runs, alike, pairs_of, under
from simulator.studies.ending import short_request, tell
from simulator.studies.ratios import RATIOS, deployed, has_padded_form
from simulator.studies.runner import Progress, Runner
from simulator.studies.shapley import prefixes
from simulator.studies.why_records import records
from simulator.tables import Table
from simulator.traffic import as_read
from traces import Trace
from traces.sketch import bars

if TYPE_CHECKING:
    import pandas as pd


SHOWN_TABLES = 3
"""In a notebook, the others being folded: how much it serves, how it feels, what the switch is worth."""


@dataclass(frozen=True)
class Ratio(Kept):
    """Saturated output throughput of a policy over that of the baseline, from the summaries of both runs.

    See `ratios.RATIOS` for the keys; `at_once` is the most requests that the baseline ever ran at once.
    """

    key: str
    policy: str
    baseline: Mapping[str, Any]
    continuous: Mapping[str, Any]
    at_once: int

    @property
    def value(self) -> float | None:
        """The ratio; None where the baseline served nothing."""
        below, above = self.baseline["output_throughput"], self.continuous["output_throughput"]
        return above / below if below and above is not None else None


@dataclass(frozen=True, eq=False)
class Comparison(Kept):
    """What `compare` found.

    Attributes:
        labels: Names of the policies; the first is the baseline.
        results: Result by (label, load), load being "saturated" or "trace".
        ratios: All ratios of each policy to the baseline.
        ladders: By policy, where its ratio to the baseline as deployed comes from, where switches tell that.
        equal_slots: Result by label of the saturated runs in which all have the baseline's number of slots, and no
            bound on memory or tokens a step: the idea itself, which the timeline and the story show.
        certainty: How far chance moves the differences; None where nothing was replicated.
    """

    labels: tuple[str, ...]
    results: Mapping[tuple[str, Load], Result]
    ratios: tuple[Ratio, ...]
    equal_slots: Mapping[str, Result]
    ladders: Mapping[str, Attribution]
    certainty: Certainty | None = None

    @property
    def equal(self) -> str:
        """What the runs with equal slots are, in words."""
        return f"saturated, {counted(self.equal_slots[self.labels[0]].slots.count, 'slot')} each, no other bound"

    @property
    def padded(self) -> bool:
        """Whether the baseline as deployed is a padded one; else that ratio is the one with its own memory rule."""
        return has_padded_form(self.results[self.labels[0], "saturated"].policy)

    def speedup(self) -> dict[str, Any]:
        """The three ratios by key; each a mapping by policy where more than two are compared."""
        told = [ratio for ratio in self.ratios if ratio.key != "model_length"]
        if len(self.labels) == 2:
            return {ratio.key: ratio.value for ratio in told}
        return {key: {ratio.policy: ratio.value for ratio in told if ratio.key == key}
                for key in RATIOS if key != "model_length"}

    def records(self, **options: Any) -> dict[str, Any]:
        """One flat record a run, the ratios and the scenario: what ``--json`` prints.

        `options` are those of `Result.labelled`.
        """
        runs = [{**result.labelled(**options), "policy": label, "load": load}
                for (label, load), result in self.results.items()]
        return {"runs": runs, "speedup": self.speedup(), **self._certainty(), "scenario": self.scenario}

    def _certainty(self) -> dict[str, Any]:
        """What replications add to a document."""
        return {"certainty": self.certainty.plain()} if self.certainty else {}

    @property
    def scenario(self) -> dict[str, Any]:
        """The record of what was asked, with the last policy at the trace's own times."""
        return self.results[self.labels[-1], "trace"].asked

    def to_json(self) -> str:
        """`records` as a JSON document."""
        return json.dumps(self.records(), indent=2, allow_nan=False) + "\n"

    def findings(self) -> dict[str, Any]:
        """What no single run says: every ratio with both runs behind it, the slot ledgers, and all in words."""
        ratios = [{"ratio": ratio.key, "policy": ratio.policy, "value": ratio.value, "baseline": dict(ratio.baseline),
                   "continuous": dict(ratio.continuous)} for ratio in self.ratios]
        ledgers = {label: dict(result.slot_ledger.parts) for label, result in self.equal_slots.items()}
        ladders = {label: records(found) for label, found in self.ladders.items()}
        return {"speedup": self.speedup(), "ratios": ratios, "ladders": ladders, "slot_ns_with_equal_slots": ledgers,
                "story": self.story(), **self._certainty(), "account": self.account().plain(),
                "policies": self._policies(), "scenario": self.scenario}

    def _policies(self) -> dict[str, dict[str, Any]]:
        """Policy and knobs of each, as they were asked for."""
        asked = {label: self.results[label, "trace"].asked for label in self.labels}
        return {label: {name: each[name] for name in ("policy", "knobs")} for label, each in asked.items()}

    def table(self) -> pd.DataFrame:
        """Every metric (rows) of every policy and load (columns)."""
        import pandas as pd
        columns = {key: result.summary() for key, result in self.results.items()}
        return pd.DataFrame({key: {name: summary[name] for metric in METRICS for name in json_keys(metric)}
                             for key, summary in columns.items()})

    def tables(self) -> list[Table]:
        """Everything that was measured, in the order in which a reader asks."""
        from simulator.studies.sections import tables
        return tables(self)

    def account(self) -> Account:
        """Question, answer, tables and facts, in words."""
        from simulator.studies.comparison_account import account
        return account(self)

    def story(self) -> dict[str, str]:
        """What happened at the end of one short sequence, under each policy, in words."""
        request = short_request(self.equal_slots[self.labels[0]])
        return {label: tell(result, request) for label, result in self.equal_slots.items()
                if request is not None and result.has_finished(request)}

    def __str__(self) -> str:
        return str(self.account())

    def __repr__(self) -> str:
        return f"<Comparison: {self.account().answer[0]}>"

    def _repr_html_(self) -> str:
        served = {label: self.results[label, "saturated"].summary(metrics=())["output_throughput"] or 0.0
                  for label in self.labels}
        return account_card(self.account(), bars(served, "output tokens a second, saturated"), SHOWN_TABLES)


def compare(trace: Trace | str = "azure-conv-2023", policies: Sequence[Policy | str] = ("static", "vllm"), *,
            settings: Mapping[str, Any] | None = None, replications: int | None = None,
            progress: Progress | None = None, **options: Any) -> Comparison:
    """Replay a trace through several policies, saturated and at its own times, and measure the three ratios.

    `settings` maps "knob" or "policy.knob" to a value; `options` are the other fields of Scenario. `replications`, at
    least 2, asks for intervals of the differences: all is run so often, on other traffic of the same kind.

    Example:
        >>> found = compare("azure-conv-2023", num_prompts=100)
        >>> found.labels, round(found.speedup()["scheduling"], 2)
        (('static', 'vllm'), 1.73)
    """
    check_lists(policies=policies)
    contenders = dict(zip(_labels(policies), make_policies(policies, settings), strict=True))
    scenario = held(scenario_of(trace=trace, **options))
    only_one_replica("compare", scenario)
    repeated = None if replications is None else Repeated.of(scenario, contenders, replications)
    scenario = as_read(scenario)    # once for all runs
    mains = {(label, kind): under(kind, scenario, policy) for kind in LOADS for label, policy in contenders.items()}
    plain = {key: main.but(error_band=None) for key, main in mains.items()}    # a band is of the runs that are shown
    wanted = pairs_of(plain, contenders)
    climbs = _climbs(plain, contenders)
    rungs = [rung for climb in climbs.values() for rung in climb.runs(prefixes(climb.keys)).values()]
    runner = Runner(progress, [*mains.values(), *(side for _, pair in wanted for side in pair.sides), *rungs,
                               *(repeated.scenarios() if repeated else ())])
    results = {key: runner.run(main) for key, main in mains.items()}
    equal = {label: runner.run(same) for label, same in alike(wanted, next(iter(contenders))).items()}
    ratios = [Ratio(pair.key, label, runner.measure(pair.baseline), runner.measure(pair.continuous),
                    runner.points({pair.key: pair.baseline})[pair.key].sequences) for label, pair in wanted]
    ladders = {label: take_apart(climb, "throughput", runner.points, brief=True) for label, climb in climbs.items()}
    return Comparison(tuple(contenders), results, tuple(ratios), equal, ladders,
                      repeated.measured(runner) if repeated else None)


def _climbs(mains: Runs, contenders: Mapping[str, Policy]) -> dict[str, Climb]:
    """From the baseline as deployed to each policy that switches lead to."""
    (baseline, start), *others = contenders.items()
    if type(start) is not StaticBatching:
        return {}
    return {label: Climb(mains[baseline, "saturated"], deployed(start), policy) for label, policy in others
            if type(policy) is Vllm}


def _labels(policies: Sequence[Policy | str]) -> list[str]:
    """A name for each policy; the same one twice would be compared with itself."""
    labels = [policy if isinstance(policy, str) else policy.name for policy in policies]
    if len(labels) < 2:
        raise InputError("compare needs at least two policies, such as static,vllm")
    if len(set(labels)) < len(labels):
        raise InputError(f"each policy can be compared once, not twice: {', '.join(labels)}")
    return labels


__all__ = ["Comparison", "Ratio", "compare"]
