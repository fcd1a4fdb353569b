"""Records: a regression check as plain values, for a program. It measures nothing."""

from __future__ import annotations

from typing import Any

from simulator.studies.regression.comparing import Change
from simulator.studies.regression.found import Compared, Regression
from simulator.studies.regression.tables import differing


def record(found: Regression) -> dict[str, Any]:
    """All that was found."""
    return {"outcome": found.outcome, "status": found.status, "verdict": found.verdict(),
            "not_looked_into": list(found.aside), "baselines": [_compared(each) for each in found.compared]}


def _compared(each: Compared) -> dict[str, Any]:
    return {"name": each.name, "outcome": each.outcome, "reason": each.reason or None,
            "baseline": each.baseline and each.baseline.path,
            "tolerance": each.tolerances and each.tolerances.why,
            "metrics": [_change(change) for change in each.changes],
            "new": list(each.new),
            "largest": [{"metric": change.name, "attribution": each.attribution(change)} for change in each.largest],
            "differences": [{"what": one.what, "baseline": one.before or None, "now": one.after or None}
                            for one in each.differences],
            "told": differing(each) if each.failed else None,
            "stages": [{"what": stage.what or "baseline", "metrics": dict(stage.metrics)} for stage in each.stages],
            "notes": [*each.baseline.side.notes, *each.current.notes] if each.baseline and each.current else [],
            "scenario": each.current and each.current.scenario}


def _change(change: Change) -> dict[str, Any]:
    return {"metric": change.name, "baseline": change.before, "now": change.after, "relative": change.relative,
            "tolerance": str(change.tolerance), "verdict": change.verdict, "fails": change.fails,
            "reason": change.reason or None}
