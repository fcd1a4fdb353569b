"""Tolerances: how far a metric may move. Exact where nothing but a decision can have moved it, else relative.

An exact metric must be what it was. One with a tolerance may get worse by that much, and better by any amount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, isfinite

from simulator.errors import InputError
from simulator.studies.regression.names import belongs, check, extreme, metric_of
from simulator.studies.regression.side import Side

ROUNDING = 1e-9
"""Relative difference up to which two figures are the same: processors round sums of many numbers differently."""
VERSIONS, MEASURED, EXTREME = 0.01, 0.05, 0.1
"""Relative tolerances between two versions of batchsim, and where an engine was measured: of means, medians and rates,
and of scatter, tails and maxima."""
TOLD = "told only"
UNKNOWN = "one run does not tell how far they scatter, so give several --result of each side, or a tolerance"
ALL = "all"


@dataclass(frozen=True)
class Tolerance:
    """How far a metric may move, as a share of the baseline or in its own unit, whichever is more.

    Attributes:
        gates: Whether it fails a check beyond that; else it is only told.
    """

    relative: float = ROUNDING
    absolute: float = 0.0
    gates: bool = True

    @property
    def exact(self) -> bool:
        """Whether the metric must be what it was."""
        return self.relative <= ROUNDING and not self.absolute

    def reach(self, before: float) -> float:
        """How far it may move from this value."""
        return max(self.relative * abs(before), self.absolute)

    def holds(self, before: float, after: float) -> bool:
        """Whether both are the same within it."""
        return abs(after - before) <= self.reach(before)

    def __str__(self) -> str:
        if self.exact or not self.gates:
            return "exact" if self.gates else TOLD
        return f"{100 * self.relative:g}%" if self.relative > ROUNDING else f"{self.absolute:g}"

    @classmethod
    def read(cls, text: str) -> Tolerance:
        """From "exact", a percentage such as "5%", or a number in the metric's own unit."""
        word = text.strip()
        if word == "exact":
            return cls()
        try:
            value = float(word.removesuffix("%")) if word.isascii() and "_" not in word else -1.0
        except ValueError:
            value = -1.0
        if not isfinite(value) or value < 0:
            raise InputError(f"a tolerance is exact, a percentage such as 5%, or a number of at least 0, not {text!r}")
        return cls(max(ROUNDING, value / 100)) if word.endswith("%") else cls(absolute=value)


@dataclass(frozen=True)
class Tolerances:
    """The tolerance of each metric.

    Attributes:
        stated: By metric, by name of the JSON, or for ALL; the nearest one counts.
        default: Of what is not stated.
        why: The default in words.
        spread: How far measurements of a metric lie apart anyway, by name of the JSON; the default reaches as far.
        extreme: The default of scatter, tails and maxima; None where it is that of all.
    """

    stated: Mapping[str, Tolerance]
    default: Tolerance
    why: str
    spread: Mapping[str, float] = field(default_factory=dict)
    extreme: Tolerance | None = None

    def of(self, name: str) -> Tolerance:
        """The tolerance of a name of the JSON."""
        for key in (name, metric_of(name) or name, ALL):
            if key in self.stated:
                return self.stated[key]
        default = self.extreme if self.extreme and extreme(name) else self.default
        return replace(default, relative=max(default.relative, rounded_up(self.spread.get(name, 0.0))))


def stated(texts: Mapping[str, str]) -> dict[str, Tolerance]:
    """Tolerances as somebody wrote them, by metric, name of the JSON, or ALL.

    Raises InputError for any other name, and for one number in the units of all metrics.
    """
    found = {name if name == ALL else check(name): Tolerance.read(text) for name, text in texts.items()}
    if ALL in found and found[ALL].absolute:
        number = texts[ALL].strip()
        raise InputError(f"a tolerance of {number} for all metrics would be {number} in the unit of each: did you mean "
                         f"{number}%? Give a number for one metric, such as p99_ttft_ms={number}")
    return found


def over(known: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """What a baseline states, and over it what somebody states now: for a metric, of all of its statistics as well."""
    kept = {name: text for name, text in known.items()
            if ALL not in texts and not any(belongs(name, each) for each in texts)}
    return {**kept, **texts}


def tolerances(before: Side, after: Side, texts: Mapping[str, str]) -> Tolerances:
    """What is stated, and for the rest what the two sides call for."""
    spread = {name: max(side.spread.get(name) or 0.0 for side in (before, after))
              for name in {**before.spread, **after.spread}}
    said = stated(texts)
    if ALL in said:
        return Tolerances(said, said[ALL], f"{said[ALL]}, as stated", spread)
    if "measured" in (before.kind, after.kind):
        return _of_measurements(said, spread, repeated=before.repeated and after.repeated)
    return Tolerances(said, *_default(before, after), spread)


def _of_measurements(said: Mapping[str, Tolerance], spread: Mapping[str, float], *, repeated: bool) -> Tolerances:
    """Where one run was measured, nobody knows how far its tails are from those of the next one."""
    tails = f"{EXTREME:.0%}" if repeated else f"told only: {UNKNOWN}"
    why = (f"{MEASURED:.0%}, or as far as repeated measurements lie apart; standard deviations, tails and maxima "
           f"{tails}")
    return Tolerances(said, Tolerance(MEASURED), why, spread,
                      Tolerance(EXTREME if repeated else MEASURED, gates=repeated))


def _default(before: Side, after: Side) -> tuple[Tolerance, str]:
    if before.refitted(after):
        error = rounded_up(max(VERSIONS, before.step_error, after.step_error))
        return Tolerance(error), f"{100 * error:g}%, the scatter that the cost model states: it was calibrated anew"
    if before.origin.get("simulator_version") != after.origin.get("simulator_version"):
        return Tolerance(VERSIONS), f"{VERSIONS:.0%}: the versions of batchsim differ"
    return Tolerance(), f"exact: the same version{_times(before, after)}"


def _times(before: Side, after: Side) -> str:
    """What is known of the step times."""
    was, now = (side.origin.get("cost_digest") for side in (before, after))
    if was is None or now is None:
        return ""
    return " and the same step times" if was == now else ", and other step times because they were asked for"


def rounded_up(share: float) -> float:
    """To a tenth of a percent, so that what is told is what holds."""
    return ceil(round(1000 * share, 6)) / 1000
