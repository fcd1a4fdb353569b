"""How many requests are served, and from when on a run is worth counting. It knows no objective.

Nobody waits in an empty fleet, so the first requests look better than those after them. They are left out until as many
requests are outstanding as on the mean of the run, or until the first long answer (p99 of E2EL) may have left,
whichever comes first: the crossing of the mean is Fishman's rule (Concepts and Methods in Discrete Event Digital
Simulation, 1973), and the limit keeps a recorded trace's quiet hours in. MSER-5 would leave out a burst of misses in
the first half just as well, and a planner must see those.
"""

from __future__ import annotations

import numpy as np

from simulator.columns import Ints
from simulator.lagging import FEWEST, FROM, TO, middle
from simulator.throughput import SECOND
from simulator.timeline import Timeline


def served(line: Timeline, offered: float = 0.0, lags: float | None = None) -> float:
    """Requests completed, a second, the ends left out; over the whole run of few requests, or of one batch.

    Where they are `offered` over time and the lag is known, it is that rate, less by the lag: a busy middle of the run
    then does not look like more answers than requests.
    """
    if not len(line):
        return 0.0
    if lags is not None:
        return offered / (1 + max(lags, 0.0))
    went = middle(line.last_delivered)
    if len(line) < FEWEST or not went:
        took = float(line.last_delivered.max() - line.sent.min())
        return len(line) * SECOND / took if took else 0.0
    return (TO - FROM) * len(line) * SECOND / went


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
