"""Whether completions follow arrivals, and from when on a run is worth counting. It knows no objective.

A fleet is stable if what comes also leaves. Who came long enough before the last request - twice as long ago as a long
answer took in the first tenth of the run, before any backlog had grown - should be answered when that last request
comes. The share that is not is the lag: next to nothing while completions follow arrivals, and more with every second
once they do not. A burst that the fleet has worked off by then is no lag; the objectives see it.

Nobody waits in an empty fleet, so the first requests look better than those after them. They are left out until as
many requests are outstanding as on the mean of the run, or until the first long answer (p99 of E2EL) may have left,
whichever comes first: the crossing of the mean is Fishman's rule (Concepts and Methods in Discrete Event Digital
Simulation, 1973), and the limit keeps a recorded trace's quiet hours in. MSER-5 would leave out a burst of misses in
the first half just as well, and a planner must see those.
"""

from __future__ import annotations

import numpy as np

from simulator.columns import Ints
from simulator.timeline import Timeline

MATERIAL = 0.02
"""A lag that is larger than this share of the requests is no accident."""
FEW = 2
"""So many requests lag behind in any run that ends."""


def lag(line: Timeline) -> float:
    """The share of requests that should be answered when the last one is sent, and are not."""
    if not len(line):
        return 0.0
    first, last = int(line.sent.min()), int(line.sent.max())
    early = line.e2el[line.sent - first <= (last - first) / 10]
    due = line.sent <= last - min(2 * float(np.quantile(early, 0.99)), (last - first) / 2)
    behind = int((line.last_delivered[due] > last).sum())
    return behind / int(due.sum()) if behind > FEW else 0.0


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
