"""Lagging: whether completions follow arrivals. It knows no objective and no policy.

A fleet is stable if what comes also leaves. The requests from the first tenth to the last twentieth take a time to
come, a time to get a slot and a time to be completed. If both of the latter are longer, completions do not follow: by
how much is the lag, about 0 in a stable run, and the load over the capacity, less 1, in an overloaded one. The ends are
left out: there the fleet fills, and a few long answers end it. Slots count beside completions because answers of very
different lengths spread completions out in a short run. A burst that the fleet works off is no lag; the objectives see
it. A run in which requests come for hardly longer than one of them holds its slot ends before the fleet has filled:
there nobody can tell.
"""

from __future__ import annotations

import numpy as np

from simulator.columns import Ints
from simulator.timeline import Timeline

MATERIAL = 0.03
"""A lag above this is no accident: it stays below 0.01 in stable runs, as far as they were looked at."""
FROM, TO = 0.1, 0.95
FEWEST = 50
"""Requests below which nothing is said."""
LONG = 4
"""So many times as long as the mean stay in a slot must requests come for anything to be said."""


def lag(line: Timeline, lost: int = 0) -> float | None:
    """By which share slots and completions of a run took longer than its arrivals, the ends left out.

    None where the run is too short, or of too few requests, to tell. Those who never get a slot, `lost` of them, are
    told over those who are answered. Who gets one, and takes longer than its client waits, is for the objectives.
    """
    if lost and (not len(line) or lost > len(line) * MATERIAL):
        return lost / max(len(line), 1)
    if len(line) < FEWEST:
        return None
    came, *went = map(middle, (line.sent, line.admitted, line.last_delivered))
    stay = float((line.left - line.admitted).mean())
    return min(went) / came - 1 if came and came >= LONG * stay else None


def middle(instants: Ints) -> float:
    """How long it takes, the ends left out, ns."""
    return float(np.diff(np.quantile(instants, (FROM, TO)))[0])
