"""Tuning: look for the values with the best objective, where a grid would be too large.

optuna proposes and this file asks, in rounds of a fixed size: what is proposed depends on the seed and on what came out
before, and not on how many runs there are at once. A search that is repeated with a store goes the same way again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from simulator import checks
from simulator.account import Account
from simulator.errors import InputError, choose
from simulator.frozen import frozen, of_python
from simulator.metrics import METRICS, json_keys
from simulator.scenarios.held import together
from simulator.studies.campaign import Found
from simulator.studies.campaign.running import Told
from simulator.studies.differences import Difference
from simulator.studies.sweep import Sweep, again, sweep
from simulator.studies.sweep.pictures import less_is_better
from simulator.studies.sweep.variants import Values
from simulator.studies.sweep.words import words

Span = tuple[float, float]
Space = Mapping[str, Sequence[Any] | Span]
"""What each name may be: one of a list, or anything between the two numbers of a tuple."""
ROUND = 8
TRIALS = 40
OTHERS = "how far chance moves the differences between the other points was not measured"
WIDE = 16
"""A span is searched by factors, and not by steps, if its ends are so many times apart."""


@dataclass(frozen=True, eq=False)
class Tuned(Sweep):
    """What a search found: a sweep over what was proposed, in that order. The first point is the scenario as given.

    Attributes:
        objective: The metric that was to be improved.
        seed: Of the search.
        again: The best point beside the scenario as given, on traffic of other seeds; None where nothing is drawn, or
            where nothing better was found.
    """

    objective: str = ""
    seed: int = 0
    again: Difference | None = None

    @property
    def best(self) -> str | None:
        """The key of the point with the best objective, the first of equals; None if none has a value."""
        found = {key: value for key in self.outcomes if (value := worth(self, key)) is not None}
        return max(found, key=lambda key: found[key], default=None)

    @property
    def unmeasured(self) -> str | None:
        """That of all points but the best, if this was run again."""
        return super().unmeasured if self.again is None else OTHERS

    def account(self) -> Account:
        """That of the sweep, the best point first."""
        told = super().account()
        return told if self.best is None else replace(told, answer=(*self.praised(self.best), *told.answer))

    def praised(self, key: str) -> list[str]:
        """The praise of the best point, and how much of it stands on other traffic."""
        better = key != next(iter(self.outcomes))
        return [self.praise(key), *([again.told(self.again, self.objective, self.seed, len(self.outcomes))]
                                    if better else [])]

    def praise(self, key: str) -> str:
        """What the point with this key comes to, and how many others come to the same as it is shown."""
        shown = {each: f"{abs(value):,.4g}" for each in self.outcomes if (value := worth(self, each)) is not None}
        alike = sum(value == shown[key] for value in shown.values()) - 1
        more = f", and {alike:,} more that show{'s' * (alike == 1)} as much" if alike else ""
        which = f"with {key}" if self.variants[key].values else "for the scenario as given"
        return f"Best {words(self.objective)}: {shown[key]} {which}{more}."


def tune(space: Space, *, trials: int = TRIALS, objective: str | None = None, seed: int = 0,
         told: Told | None = None, **options: Any) -> Tuned:
    """Search the space.

    Args:
        space: What each name may be; see `variants` for what a name may be.
        trials: Points to be proposed; one that comes again is not run again.
        objective: A metric of the summary; `request_goodput` if there are service objectives, else `output_throughput`.
        seed: Of the search, and of every run.
        told: Hears how far it has got.
        options: Those of `sweep`, without `vary` and `points`.
    """
    if "seed" in space:
        raise InputError("tuning looks for the best settings, and the best seed is luck: leave seed out")
    trials, seed = checks.whole("trials", trials, 0), checks.whole("seed", seed, 0)
    kinds = {name: _distribution(values) for name, values in space.items()}
    study, search = _study(seed), _Search(_objective(objective, options), trials, told, {**options, "seed": seed})
    search.run([{}])
    for start in range(0, trials, ROUND):
        asked = [study.ask(kinds) for _ in range(min(ROUND, trials - start))]
        search.run([trial.params for trial in asked])
        for trial in asked:
            value = search.worth(trial.params)
            study.tell(trial, value, state=None if value is not None else _optuna().trial.TrialState.FAIL)
    return search.checked()


class _Search:
    """What was found so far, and how to find more."""

    def __init__(self, objective: str, trials: int, told: Told | None, options: Mapping[str, Any]) -> None:
        self.found = Tuned({}, {}, objective=objective, seed=options["seed"])
        self._files: Mapping[str, str] = {}
        self._trials, self._told, self._options = trials, told or (lambda done, of: None), options

    def run(self, points: Sequence[Values]) -> None:
        before = self.found
        heard = sweep(points=points, told=lambda done, _: self._told(len(before.outcomes) + done, self._trials + 1),
                      **self._options)
        for outcome in heard.outcomes.values():
            self._files = together(self._files, outcome.scenario.files)
        self.found = replace(before, variants={**before.variants, **heard.variants},
                             outcomes={**before.outcomes, **heard.outcomes})

    def checked(self) -> Tuned:
        """What was found, the best point run again on traffic that it was not chosen by."""
        found, (given, *_) = self.found, self.found.variants.values()
        if found.best in (None, given.key):
            return found
        run = partial(sweep, **{name: value for name, value in self._options.items() if name != "seed"})
        return replace(found, again=again.again(given, found.variants[found.best], found.objective, found.seed, run))

    def worth(self, values: Values) -> float | None:
        """The objective at these values; some may apply to another policy only."""
        return next(worth(self.found, key) for key, variant in self.found.variants.items()
                    if variant.values and variant.values.items() <= values.items())


def worth(found: Tuned, key: str) -> float | None:
    """The objective at a point, the more the better; None where it has no value."""
    outcome = found.outcomes[key]
    value = outcome.value.get(found.objective) if isinstance(outcome, Found) else None
    return None if value is None else -value if less_is_better(found.objective) else value


def _study(seed: int) -> Any:
    optuna = _optuna()
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))


def _distribution(values: Sequence[Any] | Span) -> Any:
    kinds = _optuna().distributions
    if not isinstance(values, tuple):
        return kinds.CategoricalDistribution(frozen(of_python(values)))
    low, high = frozen(of_python(values))
    kind = kinds.IntDistribution if isinstance(low, int) and isinstance(high, int) else kinds.FloatDistribution
    return kind(low, high, log=low > 0 and high >= WIDE * low)


def _objective(name: str | None, options: Mapping[str, Any]) -> str:
    """What is to be improved."""
    name = name or ("request_goodput" if options.get("goodput") else "output_throughput")
    if name == "request_goodput" and not options.get("goodput"):
        raise InputError("request_goodput needs an objective: give --goodput ttft:500,tpot:50, for example")
    percentiles = tuple(options.get("percentiles", (99,)))
    known = [key for metric, each in METRICS.items() if each.better for key in json_keys(metric, percentiles)]
    return choose("objective", name, known, "the glossary of the README, or those in summary.csv")


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError("tuning needs optuna, which is not installed: pip install 'batchsim[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
