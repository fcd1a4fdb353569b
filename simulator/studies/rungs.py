"""Rungs: what one switch is worth, as the exact ratio of two runs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from simulator.studies.points import Point


@dataclass(frozen=True)
class Rung:
    """One switch thrown.

    Attributes:
        key, words: Of the switch; empty at the foot of a ladder.
        point: What the run with it comes to.
        before: The run without; the same at the foot.
        flags: What makes `batchsim run --policy hybrid` the run with it.
        metric: That is taken apart.
    """

    key: str
    words: str
    point: Point
    before: Point
    flags: str
    metric: str

    @property
    def factor(self) -> Fraction | None:
        """What the switch is worth; None where one of the two runs served nothing."""
        return ratio(self.before.worth(self.metric), self.point.worth(self.metric))

    @property
    def factor_in_steps(self) -> Fraction | None:
        """The same if every step cost the same."""
        return ratio(self.before.tokens_per_step, self.point.tokens_per_step)


def ratio(before: Fraction, after: Fraction) -> Fraction | None:
    """How many times as much; None where either is nothing."""
    return after / before if before and after else None
