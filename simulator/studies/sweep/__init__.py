"""sweep: one run for each combination of values - any field of a scenario, any knob - as one campaign.

Read `variants` first, then `records`, `replicated`, `tuning`. All runs share the seed, so that they see the same
arrivals: a difference between two of them is one of the values, and not of chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cost_models import CostModelError
from simulator.account import Account
from simulator.display import account_card
from simulator.errors import InputError
from simulator.frozen import Frozen, of_python
from simulator.scenario import Scenario, scenario_of
from simulator.scenarios.held import held
from simulator.setup import cost_of
from simulator.studies.campaign import RETRIES, Backend, Failure, Found, Store, campaign
from simulator.studies.campaign.running import Told
from simulator.studies.differences import UNMEASURED, Difference
from simulator.studies.sweep.loads import pareto
from simulator.studies.sweep.means import averaged
from simulator.studies.sweep.records import Record, efficiency, knob_of, record, summary
from simulator.studies.sweep.replicated import against_first, replicated
from simulator.studies.sweep.variants import Values, Variant, grid, knob_named, variants
from simulator.summary import LATENCIES
from traces import Trace
from traces.sketch import dots

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a sweep found.

    Attributes:
        variants: What was asked, by key.
        outcomes: What became of each, by the same keys.
        replications: In what the runs of a point differ, in words; empty where each is run once.
    """

    variants: Mapping[str, Variant]
    outcomes: Mapping[str, Found[Record] | Failure]
    replications: str = ""

    @property
    def records(self) -> list[Record]:
        """A flat record a run that came to something, in the order in which they were asked for."""
        return list(self._found.values())

    @property
    def _found(self) -> dict[str, Record]:
        names = dict.fromkeys(name for variant in self.variants.values() for name in variant.values)
        return {key: record(outcome.value, _values(self.variants[key], names, outcome), self.variants[key].number)
                for key, outcome in self.outcomes.items() if isinstance(outcome, Found)}

    @property
    def given(self) -> Record | None:
        """The record of the scenario as it was given, where that is one of the points."""
        return next((each for key, each in self._found.items() if not self.variants[key].values), None)

    @property
    def unmeasured(self) -> str | None:
        """Of which differences nobody knows how far chance moves them; None where all have intervals."""
        return UNMEASURED if len(self.records) > 1 and not self.replications else None

    def differences(self) -> list[Difference]:
        """Every point beside the first one, with intervals; none where each is run once."""
        return against_first(self.variants, self._found) if self.replications else []

    @property
    def failures(self) -> dict[str, Failure]:
        """The others, by key."""
        return {key: outcome for key, outcome in self.outcomes.items() if isinstance(outcome, Failure)}

    def account(self) -> Account:
        """Question, answer, tables and facts, in words."""
        from simulator.studies.sweep.account import account
        return account(self)

    def __str__(self) -> str:
        return str(self.account())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.records):,} runs, {len(self.failures):,} failed>"

    def _repr_html_(self) -> str:
        records = averaged(self.records)
        known = [(point, best) for each, best in zip(records, pareto(records), strict=True)
                 if (point := efficiency(each))]
        sketch = dots([point for point, _ in known], [best for _, best in known],
                      "output tokens/s for each user (right) and GPU (up); orange: beaten by none") if known else ""
        account = self.account()
        return account_card(account, sketch, len(account.tables))

    def table(self) -> pd.DataFrame:
        """The records as a frame, and whether each is in the Pareto set."""
        import pandas as pd
        return pd.DataFrame(self.records).assign(pareto=pareto(self.records))


def _values(variant: Variant, names: Iterable[str], found: Found[Record]) -> Values:
    """What a point differs in, and of what it leaves as it is, the knobs, so that it has a place beside the others."""
    knobs = {name: knob_of(found.value, knob) for name in names if (knob := knob_named(found.scenario, name))}
    return {**variant.values, **{name: value for name, value in knobs.items()
                                 if value is not None and name not in variant.values}}


def sweep(trace: Trace | str = "azure-conv-2023", policy: str = "vllm", *,
          vary: Mapping[str, Sequence[Any]] | None = None, points: Iterable[Values] = ({},),
          settings: Values | None = None, backend: Backend | None = None, store: Store | None = None,
          retries: int = RETRIES, percentiles: Sequence[float] = (99,), metrics: Sequence[str] = LATENCIES,
          told: Told | None = None, replications: int | None = None, **options: Any) -> Sweep:
    """Run every combination of the values of `vary` with every one of `points`.

    Args:
        trace: Replayed in all runs that vary no trace.
        policy: By name, of all runs that vary no policy.
        vary: Values by name; see `variants` for what a name may be.
        points: Values that go together, a mapping each.
        settings: "knob" or "policy.knob" to a value, for all runs.
        backend, store, retries, told: Of the campaign that runs them.
        percentiles, metrics: Of the summaries.
        replications: Run each point so often, the n-th time with the same traffic for all points: see `replicated`.
        options: The other fields of Scenario.

    Example:
        >>> found = sweep(num_prompts=20, vary={"max_num_seqs": [1, 8]})
        >>> [round(record["output_throughput"]) for record in found.records]
        [124, 540]
    """
    base = held(scenario_of(trace=trace, policy=policy, **options))
    making = partial(variants, settings=settings or {}, combinations=combinations(vary or {}, points))
    asked, words = (making(base), "") if replications is None else replicated(base, making, replications)
    scenarios = {key: variant.scenario for key, variant in asked.items()}
    _refuse_alike(_unknown(scenario) for scenario in scenarios.values())
    outcomes = campaign(scenarios, partial(summary, percentiles=percentiles, metrics=metrics), backend=backend,
                        store=store, retries=retries, told=told)
    _refuse_alike(each.reason if isinstance(each, Failure) and each.hopeless else None for each in outcomes.values())
    return Sweep(asked, outcomes, words)


def _unknown(scenario: Scenario) -> str | None:
    """Why it has no cost model, such as an unknown GPU; None if it has one."""
    try:
        cost_of(scenario)
    except (CostModelError, InputError) as error:
        return str(error)
    except OSError:    # of a file: told with its point
        return None
    return None


def _refuse_alike(reasons: Iterable[str | None]) -> None:
    """One refusal where no point can be run, and all for the same reason. Looks no further than the first that can."""
    told = iter(reasons)
    first = next(told, None)
    if first is not None and all(each == first for each in told):
        raise InputError(first)


def combinations(vary: Mapping[str, Sequence[Any]], points: Iterable[Values]) -> list[Values]:
    """Every combination of the values with every one of the points."""
    listed = list(points)
    if not listed:
        raise InputError("the list has no points: give one mapping of names to values for each")
    for each in listed:
        if both := [name for name in each if name in vary]:
            raise InputError(f"{both[0]} is both varied and listed: give one")
    return [Frozen(of_python({**each, **values})) for each in listed for values in grid(vary)]


__all__ = ["Sweep", "combinations", "sweep"]
