"""Whether completions follow arrivals, and from when on a run is worth counting. It knows no objective.

A fleet is stable if what comes also leaves. The requests from the first tenth to the last twentieth take a time to
come, a time to get a slot and a time to be completed. If both of the latter are longer, completions do not follow: by
how much is the lag, about 0 in a stable run, and the load over the capacity, less 1, in an overloaded one. The ends are
left out: there the fleet fills, and a few long answers end it. Slots count beside completions because answers of very
different lengths spread completions out in a short run. A burst that the fleet works off is no lag; the objectives see
it. A run in which requests come for hardly longer than one of them holds its slot ends before the fleet has filled:
there nobody can tell.

Nobody waits in an empty fleet, so the first requests look better than those after them. They are left out until as many
requests are outstanding as on the mean of the run, or until the first long answer (p99 of E2EL) may have left,
whichever comes first: the crossing of the mean is Fishman's rule (Concepts and Methods in Discrete Event Digital
Simulation, 1973), and the limit keeps a recorded trace's quiet hours in. MSER-5 would leave out a burst of misses in
the first half just as well, and a planner must see those.
"""

from __future__ import annotations

import numpy as np

from simulator.columns import Ints
from simulator.throughput import SECOND
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
    came, *went = map(_middle, (line.sent, line.admitted, line.last_delivered))
    stay = float((line.left - line.admitted).mean())
    return min(went) / came - 1 if came and came >= LONG * stay else None


def served(line: Timeline, offered: float = 0.0, lags: float | None = None) -> float:
    """Requests completed, a second, the ends left out; over the whole run of few requests, or of one batch.

    Where they are `offered` over time and the lag is known, it is that rate, less by the lag: a busy middle of the run
    then does not look like more answers than requests.
    """
    if not len(line):
        return 0.0
    if lags is not None:
        return offered / (1 + max(lags, 0.0))
    went = _middle(line.last_delivered)
    if len(line) < FEWEST or not went:
        took = float(line.last_delivered.max() - line.sent.min())
        return len(line) * SECOND / took if took else 0.0
    return (TO - FROM) * len(line) * SECOND / went


def _middle(instants: Ints) -> float:
    """How long it takes, the ends left out, ns."""
    return float(np.diff(np.quantile(instants, (FROM, TO)))[0])


def outstanding(line: Timeline, instants: Ints) -> Ints:
    """Requests sent and not yet answered at each instant, what happens then included."""
    return (np.searchsorted(np.sort(line.sent), instants, side="right")
            - np.searchsorted(np.sort(line.last_delivered), instants, side="right"))


def warm_from(line: Timeline) -> int:
    """When the run is warm, ns: the first instant at which requests are sent that count."""
    if not len(line):
        return 0
    sent = np.sort(line.sent)
    there = outstanding(line, sent)
    crossed = int(sent[int(np.argmax(there >= there.mean()))])
    return min(crossed, int(sent[0] + np.quantile(line.e2el, 0.99)))
