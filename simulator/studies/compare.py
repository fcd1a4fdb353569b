"""compare: several policies on one trace - how much each serves, how it feels, and where the difference comes from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError
from simulator.memory.base import UNLIMITED
from simulator.metrics import METRICS, json_keys
from simulator.policies.base import Policy
from simulator.policies.making import make_policies
from simulator.result import Result
from simulator.scenario import Load, Scenario
from simulator.setup import prepare
from simulator.simulate import run
from simulator.studies.ending import short_request, tell
from simulator.studies.losses import Loss, loss
from simulator.studies.ratios import RATIOS, Pair, pairs
from simulator.tables import Table
from traces import Trace, load

if TYPE_CHECKING:
    import pandas as pd

LOADS: tuple[Load, ...] = ("saturated", "trace")
ASSUMED_SLOTS = 32    # of a baseline that has no cap of its own

Progress = Callable[[str, int, int], None]
"""Called now and then with (what runs, requests answered in all runs so far, requests in all runs)."""


@dataclass(frozen=True)
class Ratio:
    """Saturated output throughput of a policy over that of the baseline. See `ratios.RATIOS` for the keys."""

    key: str
    policy: str
    baseline: Result
    continuous: Result

    @property
    def value(self) -> float | None:
        """The ratio; None where the baseline served nothing."""
        below = self.baseline.summary()["output_throughput"]
        above = self.continuous.summary()["output_throughput"]
        return above / below if below and above is not None else None


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    Attributes:
        labels: Names of the policies; the first is the baseline.
        results: Result by (label, load), load being "saturated" or "trace".
        ratios: All ratios of each policy to the baseline.
    """

    labels: tuple[str, ...]
    results: Mapping[tuple[str, str], Result]
    ratios: tuple[Ratio, ...]

    def speedup(self) -> dict[str, Any]:
        """The three ratios by key; each a mapping by policy where more than two are compared."""
        told = [ratio for ratio in self.ratios if ratio.key != "model_length"]
        if len(self.labels) == 2:
            return {ratio.key: ratio.value for ratio in told}
        return {key: {ratio.policy: ratio.value for ratio in told if ratio.key == key}
                for key in RATIOS if key != "model_length"}

    def records(self) -> dict[str, Any]:
        """One flat record a run, and the ratios: what ``--json`` prints."""
        runs = [{**result.summary(), "policy": label, "load": load} for (label, load), result in self.results.items()]
        return {"runs": runs, "speedup": self.speedup()}

    def to_json(self) -> str:
        """`records` as a JSON document."""
        return json.dumps(self.records(), indent=2, allow_nan=False) + "\n"

    def table(self) -> pd.DataFrame:
        """Every metric (rows) of every policy and load (columns)."""
        import pandas as pd
        columns = {key: result.summary() for key, result in self.results.items()}
        return pd.DataFrame({key: {name: summary[name] for metric in METRICS for name in json_keys(metric)}
                             for key, summary in columns.items()})

    def losses(self) -> list[Loss]:
        """Seconds lost to idle slots beside seconds lost to padding, saturated, a policy each."""
        runs = {ratio.key: ratio for ratio in self.ratios}
        baseline = loss(self.labels[0], runs["paged"].baseline, runs["deployed"].baseline)
        others = [(label, self.results[label, "saturated"]) for label in self.labels[1:]]
        return [baseline, *(loss(label, result, result) for label, result in others)]

    def tables(self) -> list[Table]:
        """Everything that was measured, in the order in which a reader asks."""
        from simulator.studies.sections import tables
        return tables(self)

    def story(self) -> dict[str, str]:
        """What happened at the end of one short sequence, under each policy, in words."""
        request = short_request(self.results[self.labels[0], "saturated"])
        return {label: tell(self.results[label, "saturated"], request) for label in self.labels
                if self.results[label, "saturated"].has_finished(request)}

    def _repr_html_(self) -> str:
        return str(self.table()._repr_html_())    # type: ignore[operator]


def compare(trace: Trace | str = "azure-conv-2023", policies: Sequence[Policy | str] = ("static", "vllm"), *,
            settings: Mapping[str, Any] | None = None, progress: Progress | None = None, **options: Any) -> Comparison:
    """Replay a trace through several policies, saturated and at its own times, and measure the three ratios.

    `settings` maps "knob" or "policy.knob" to a value; `options` are the other fields of Scenario.

    Example:
        >>> compare("azure-conv-2023", num_prompts=100).labels
        ('static', 'vllm')
    """
    contenders = dict(zip(_labels(policies), make_policies(policies, settings), strict=True))
    scenario = Scenario(trace=trace, **options)
    if not isinstance(trace, Trace):
        scenario = scenario.but(trace=load(trace, seed=scenario.seed))
    mains = {(label, kind): _under(kind, scenario, policy) for kind in LOADS for label, policy in contenders.items()}
    wanted = _pairs(mains, contenders)
    runner = _Runner(progress, [*mains.values(), *(side for _, pair in wanted for side in pair.sides)])
    results = {key: runner.run(main) for key, main in mains.items()}
    ratios = [Ratio(pair.key, label, runner.run(pair.baseline), runner.run(pair.continuous)) for label, pair in wanted]
    return Comparison(tuple(contenders), results, tuple(ratios))


def _pairs(mains: Mapping[tuple[str, str], Scenario], contenders: Mapping[str, Policy]) -> list[tuple[str, Pair]]:
    """What each ratio of each policy to the baseline needs to have run."""
    baseline, *others = contenders
    base = mains[baseline, "saturated"]
    slots = prepare(base).policy.slots
    slots = slots if slots < UNLIMITED else ASSUMED_SLOTS
    return [(label, pair) for label in others for pair in pairs(base, contenders[baseline], contenders[label], slots)]


def _under(kind: Load, scenario: Scenario, policy: Policy) -> Scenario:
    """The scenario with this policy, saturated (every request queued at time 0) or at the trace's own times."""
    if kind == "saturated":
        return scenario.but(policy=policy, load=kind, max_concurrency=None)
    return scenario.but(policy=policy, load=kind)


def _labels(policies: Sequence[Policy | str]) -> list[str]:
    """A name for each policy; the same one twice would be compared with itself."""
    labels = [policy if isinstance(policy, str) else policy.name for policy in policies]
    if len(labels) < 2:
        raise InputError("compare needs at least two policies, such as static,vllm")
    if len(set(labels)) < len(labels):
        raise InputError(f"each policy can be compared once, not twice: {', '.join(labels)}")
    return labels


class _Runner:
    """Runs each scenario once, however many ratios need it, and tells how far all of it has got."""

    def __init__(self, progress: Progress | None, scenarios: Sequence[Scenario]) -> None:
        self._progress = progress
        self._distinct = len({_key(scenario) for scenario in scenarios})
        self._results: dict[str, Result] = {}
        self._answered = 0

    def run(self, scenario: Scenario) -> Result:
        """Its result, from the first time it was asked for."""
        key = _key(scenario)
        if key not in self._results:
            name, before = f"{scenario.to_dict()['policy']}, {scenario.load}", self._answered

            def note(answered: int, accepted: int) -> None:
                self._answered = before + answered
                if self._progress:
                    self._progress(name, self._answered, accepted * self._distinct)

            self._results[key] = run(scenario, progress=note)
        return self._results[key]


def _key(scenario: Scenario) -> str:
    return json.dumps(scenario.to_dict(), default=str)


__all__ = ["Comparison", "Ratio", "compare"]
