"""Findings: what was published beside what we measured, and whether the tolerance is kept. They run nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, nextafter
from typing import Any

from simulator.studies.reproduce.running import Measured
from simulator.studies.reproduce.spec import Claim, Spec


@dataclass(frozen=True)
class Finding:
    """One claim, answered.

    Attributes:
        claim: What was published.
        values: Ours, of each run of the claim.
    """

    claim: Claim
    values: tuple[float | None, ...]

    @property
    def ours(self) -> float | None:
        """Our number; None for an order, or where a run measured nothing."""
        if self.claim.order or None in self.values:
            return None
        first, *others = (value or 0.0 for value in self.values)
        return first / others[0] if others and others[0] else None if others else first

    @property
    def deviation(self) -> float | None:
        """Ours over the published number, minus one."""
        if self.ours is None or not self.claim.published:
            return None
        return self.ours / self.claim.published - 1

    @property
    def holds(self) -> bool | None:
        """Whether the tolerance is kept; None where none is stated."""
        claim = self.claim
        if claim.order:
            return None not in self.values and all(a < b for a, b in pairwise(self.values))    # type: ignore[operator]
        if (bounds := self.bounds) is None:
            return None
        return self.ours is not None and bounds[0] <= self.ours <= bounds[1]

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest of our numbers that the tolerance allows; None without one."""
        claim, published = self.claim, self.claim.published or 0.0
        if claim.between is not None:
            return claim.between[0], claim.between[1]
        if claim.above is not None:
            return nextafter(claim.above, inf), inf
        if claim.percent is not None:
            return published * (1 - claim.percent / 100), published * (1 + claim.percent / 100)
        if claim.points is not None:
            return published - claim.points, published + claim.points
        return None if claim.factor is None else (published / claim.factor, published * claim.factor)

    @property
    def tolerance(self) -> str:
        """The tolerance in words."""
        claim = self.claim
        if claim.order:
            return "rises"
        if claim.between is not None:
            return f"from {claim.between[0]:g} to {claim.between[1]:g}"
        if claim.above is not None:
            return f"above {claim.above:g}"
        if claim.percent is not None:
            return f"within {claim.percent:g}%"
        if claim.points is not None:
            return f"within {claim.points:g} points" if claim.points else "exact"
        return "none stated" if claim.factor is None else f"within x{claim.factor:g}"

    @property
    def shown(self) -> str:
        """Our number, or our numbers in their order."""
        if self.claim.order:
            return " < ".join(map(number, self.values))
        return number(self.ours)

    def record(self) -> dict[str, Any]:
        """All of it, flat."""
        claim = self.claim
        return {"claim": claim.what, "metric": claim.metric, "runs": list(claim.runs), "published": claim.published,
                "ours": self.ours, "values": list(self.values), "deviation": self.deviation,
                "tolerance": self.tolerance, "holds": self.holds, "note": claim.note or None}


@dataclass(frozen=True)
class Step:
    """A rung of a ladder, measured.

    Attributes:
        what: What changes.
        run: The run in which it has.
        value: What the ladder measures there.
        factor: Over the rung before; None for the first, and over one that measured nothing.
    """

    what: str
    run: str
    value: float
    factor: float | None


def findings_of(spec: Spec, measured: Measured) -> tuple[Finding, ...]:
    """Every claim of a specification, answered."""
    return tuple(Finding(claim, tuple(measured[name, claim.metric] for name in claim.runs)) for claim in spec.claims)


def ladder_of(spec: Spec, measured: Measured) -> tuple[Step, ...]:
    """The ladder of a specification; empty where it has none."""
    values = [measured[rung.run, spec.ladder_metric] or 0.0 for rung in spec.ladder]
    factors: Sequence[float | None] = [None, *(above / below if below else None for below, above in pairwise(values))]
    return tuple(Step(rung.what, rung.run, value, factor)
                 for rung, value, factor in zip(spec.ladder, values, factors, strict=False))


def number(value: float | None) -> str:
    """A number as short as it can be read."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}"
