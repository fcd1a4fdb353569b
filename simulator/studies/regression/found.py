"""Found: what a regression check came to, and what a caller asks it. It runs and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from simulator.studies.regression.baseline import Baseline
from simulator.studies.regression.causes import Difference, Stage
from simulator.studies.regression.comparing import Change
from simulator.studies.regression.mechanics import mechanics, signed
from simulator.studies.regression.names import felt, subject
from simulator.studies.regression.side import Side
from simulator.studies.regression.tolerances import Tolerances

PASS, REGRESSION, CHANGED, NOTHING, WRONG = "pass", "regression", "changed", "nothing compared", "wrong input"
STATUS = {WRONG: 2, REGRESSION: 1, CHANGED: 1, NOTHING: 3, PASS: 0}
"""What a command ends with; of several outcomes the first one here counts."""
LARGEST = 3


@dataclass(frozen=True)
class Compared:
    """One baseline beside its current run.

    Attributes:
        name: Of the baseline.
        changes: Every metric.
        reason: Why nothing was compared at all; else empty.
        baseline, current, tolerances: What was compared, and how strictly; None where there was no baseline.
        differences: In what the two runs differ.
        stages: Runs between the two, each with one thing more that changed; see `causes`.
        wrong: Whether nothing was compared because the baseline, or what it names, is wrong input.
        new: Metrics that are measured now, and were not in the baseline, so that nothing holds them.
    """

    name: str
    changes: tuple[Change, ...] = ()
    reason: str = ""
    baseline: Baseline | None = None
    current: Side | None = None
    tolerances: Tolerances | None = None
    differences: tuple[Difference, ...] = ()
    stages: tuple[Stage, ...] = ()
    wrong: bool = False
    new: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Change, ...]:
        """The metrics that are beyond their tolerance."""
        return tuple(change for change in self.changes if change.fails)

    @property
    def missing(self) -> tuple[Change, ...]:
        """Those that could not be compared."""
        return tuple(change for change in self.changes if change.verdict == "not compared")

    @property
    def outcome(self) -> str:
        """A regression where anything is worse than its tolerance; changed where all that is beyond is better, or
        other where neither way is better; a pass only where everything was compared.
        """
        if self.wrong:
            return WRONG
        if self.failed:
            return REGRESSION if any(change.verdict == "worse" for change in self.failed) else CHANGED
        return NOTHING if self.missing or not self.changes else PASS

    @property
    def largest(self) -> tuple[Change, ...]:
        """The largest changes that fail, of what is felt before the work behind it, one a subject."""
        found: dict[str | None, Change] = {}
        for change in sorted(self.failed, key=lambda change: (not felt(change.name), -change.size)):
            found.setdefault(subject(change.name), change)
        return tuple(found.values())[:LARGEST]

    def attribution(self, change: Change) -> list[str]:
        """What is to blame for a change, in sentences: the steps that lead to it, then what it is made of."""
        assert self.baseline
        assert self.current
        told = [_steps(change, self.stages)] if self.stages else []
        made = mechanics(change, self.baseline.side.metrics, self.current.metrics)
        return [*told, *([made] if made else [])]


@dataclass(frozen=True)
class Regression:
    """What `regress` found, baseline by baseline.

    Attributes:
        compared: Each of them.
        reason: Why there are none; else empty.
        aside: Folders in that of the baselines which hold files as well, and are not looked into.
    """

    compared: tuple[Compared, ...]
    reason: str = ""
    aside: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """One of STATUS: a pass only where everything was compared and held."""
        found = {each.outcome for each in self.compared} or {NOTHING}
        return next(outcome for outcome in STATUS if outcome in found)

    @property
    def passed(self) -> bool:
        """Whether all was compared, and nothing is beyond its tolerance."""
        return self.outcome == PASS

    @property
    def status(self) -> int:
        """What a command ends with: 0 for a pass, 1 for a regression or a change, 3 where nothing was compared, and 2
        where something is wrong input.
        """
        return STATUS[self.outcome]

    def check(self) -> None:
        """For a test: raise AssertionError with the whole answer, unless it passed."""
        assert self.passed, str(self)

    def verdict(self) -> str:
        """What came out, in a sentence."""
        from simulator.studies.regression.tables import verdict
        return verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        from simulator.studies.regression.records import record
        return record(self)

    def to_markdown(self) -> str:
        """All of it as Markdown, for the summary of a job or a comment."""
        from simulator.studies.regression.markdown import markdown
        return markdown(self)

    def to_junit(self) -> str:
        """All of it as JUnit XML: a suite a baseline, a test a metric."""
        from simulator.studies.regression.junit import junit
        return junit(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __str__(self) -> str:
        from simulator.studies.regression.tables import tables, unread
        return "\n\n".join([self.verdict(), *unread(self), *(str(each) for each in tables(self))])


def _steps(change: Change, stages: Sequence[Stage]) -> str:
    """By how much each stage moved the metric."""
    parts = [f"{stage.what}: {signed(moved)}" for before, stage in pairwise(stages)
             if (moved := _moved(change.name, before.metrics, stage.metrics)) is not None]
    return f"step by step, {'; '.join(parts)}"


def _moved(name: str, before: Mapping[str, float | None], after: Mapping[str, float | None]) -> float | None:
    was, now = before.get(name), after.get(name)
    return None if was is None or now is None else now - was
