"""Comparing: two sides, metric by metric. What cannot be compared is no pass, and says why. It runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simulator.studies.regression.names import belongs, better, hint, label
from simulator.studies.regression.side import CONDITIONS, NOT_STATED, Side, defined_by
from simulator.studies.regression.tolerances import Tolerance, Tolerances

Verdict = Literal["same", "better", "worse", "changed", "told only", "not compared"]


@dataclass(frozen=True)
class Change:
    """One metric on both sides.

    Attributes:
        name: Of the JSON.
        before, after: The baseline's value and the current one; None where it was not measured.
        tolerance: How far it may move.
        verdict: "changed" is beyond the tolerance where neither way is better, "told only" is beyond one that gates
            nothing.
        reason: Why it was not compared.
    """

    name: str
    before: float | None
    after: float | None
    tolerance: Tolerance
    verdict: Verdict
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether it fails a check: worse, other where neither way is better, or exact and better."""
        return self.verdict in ("worse", "changed") or (self.verdict == "better" and self.tolerance.exact)

    @property
    def relative(self) -> float | None:
        """By which share of the baseline it moved; None from 0, or where it was not compared."""
        return (self.after - self.before) / abs(self.before) if self.before and self.after is not None else None

    @property
    def size(self) -> float:
        """How large it is beside others: the difference over the larger value, from 0 to 1 if both have one sign."""
        before, after = self.before or 0.0, self.after or 0.0
        largest = max(abs(before), abs(after))
        return abs(after - before) / largest if largest else 0.0

    @property
    def label(self) -> str:
        """What the metric is called."""
        return label(self.name)


def compare(before: Side, after: Side, tolerances: Tolerances, wanted: Sequence[str] = (), *,
            rerun: bool = False) -> tuple[Change, ...]:
    """Every metric that the baseline measured, or those that are wanted.

    Where the current side is a rerun, other conditions and another trace are a change that somebody asked for.
    """
    unlike = "" if rerun and before.scenario else _unlike(before, after)
    changes = [_change(name, before, after, tolerances.of(name), unlike) for name in _names(before, after, wanted)]
    unknown = [each for each in wanted if not any(belongs(change.name, each) for change in changes)]
    return (*changes, *(_absent(each, before) for each in unknown))


def _names(before: Side, after: Side, wanted: Sequence[str]) -> Iterator[str]:
    """What is compared: all that the baseline measured, between unlike kinds only what both have."""
    for name, value in before.metrics.items():
        if wanted and not any(belongs(name, each) for each in wanted):
            continue
        both = value is not None and after.metrics.get(name) is not None
        if both or (value is not None and (wanted or before.kind == after.kind)):
            yield name


def _change(name: str, before: Side, after: Side, tolerance: Tolerance, unlike: str) -> Change:
    was, now = before.metrics[name], after.metrics.get(name)
    reason = unlike or _reason(name, before, after)
    if reason or was is None or now is None:
        return Change(name, was, now, tolerance, "not compared", reason or "it was not measured")
    return Change(name, was, now, tolerance, _verdict(name, was, now, tolerance))


def _verdict(name: str, was: float, now: float, tolerance: Tolerance) -> Verdict:
    if tolerance.holds(was, now):
        return "same"
    if not tolerance.gates:
        return "told only"
    good = better(name)
    return "changed" if good is None else "better" if (now > was) == (good == "higher") else "worse"


def _reason(name: str, before: Side, after: Side) -> str:
    """Why a metric of the baseline is not comparable; nothing if it is."""
    if name not in after.metrics:
        return "the current result does not have it: it was renamed, or was not asked for"
    if after.metrics[name] is None:
        return "it was measured in the baseline, and is not now"
    for each in defined_by(name):
        was, now = (side.definitions.get(each, NOT_STATED) for side in (before, after))
        if was != now:
            return f"its definition differs ({each}): {was}, now {now}"
    return ""


def _unlike(before: Side, after: Side) -> str:
    """Why two runs as they stand have too little in common; nothing if they do. Null is "none" of two of a kind; else
    the one may not tell what the other does.
    """
    traces = [side.origin.get("trace_digest") for side in (before, after)]
    pairs = [("trace", *traces)] if all(traces) else []
    pairs += [(name, before.conditions[name], after.conditions[name]) for name in CONDITIONS
              if name in before.conditions and name in after.conditions]
    for name, was, now in pairs:
        if was != now and (before.kind == after.kind or None not in (was, now)):
            return f"{name} was {_told(was)}, and is {_told(now)}: these are answers to two questions"
    return ""


def _told(value: Any) -> str:
    return "none" if value is None else str(value)


def _absent(name: str, before: Side) -> Change:
    known = any(belongs(each, name) for each in before.metrics)
    reason = "the baseline did not measure it" if known else f"the baseline has no such metric{hint(name)}"
    return Change(name, None, None, Tolerance(), "not compared", reason)
