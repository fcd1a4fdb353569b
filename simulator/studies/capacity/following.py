"""Whether completions follow arrivals, and from when on a run is worth counting. It knows no objective.

A fleet is stable if what comes also leaves. Requests that come in a window leave one answer's time later, so the
completions of a window are held against the arrivals of the window before it, as long ago as an answer takes. The
difference is by what the backlog grows; a run is called unstable if the growth is there beyond chance (its interval
lies above 0) and beyond what is worth a word (2 % of the arrivals).

Nobody waits in an empty fleet, so the first requests look better than those after them. They are left out until as
many requests are outstanding as on the mean of the run, or until the first long answer (p99 of E2EL) may have left,
whichever comes first: the crossing of the mean is Fishman's rule (Concepts and Methods in Discrete Event Digital
Simulation, 1973), and the limit keeps a recorded trace's quiet hours in. MSER-5 would leave out a burst of misses in
the first half just as well, and a planner must see those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.columns import Ints
from simulator.statistics import of_means, paired
from simulator.timeline import Timeline

WINDOWS = 10
"""In which completions of the second half of a run are held against arrivals."""
MATERIAL = 0.02
"""Growth of the backlog, over the arrivals, that is called a growth."""


@dataclass(frozen=True)
class Growth:
    """By how much more requests come than leave, over those that come.

    Attributes:
        low, mean, high: The share and its interval; 0 for a run without requests.
    """

    low: float
    mean: float
    high: float

    @property
    def follows(self) -> bool:
        """Whether completions follow arrivals."""
        return not (self.low > 0 and self.mean > MATERIAL)


def growth(line: Timeline) -> Growth:
    """By how much the backlog grows in the second half of the time in which requests come."""
    if len(line) < 2 * WINDOWS:
        return Growth(0.0, 0.0, 0.0)
    sent, left = np.sort(line.sent), np.sort(line.last_delivered)
    edges = np.linspace((sent[0] + sent[-1]) / 2, sent[-1], WINDOWS + 1)
    came, gone = _counts(sent, edges - _answer(line)), _counts(left, edges)
    found, arrivals = paired(came, gone), of_means(came).mean or 1.0
    return Growth(*(each / arrivals for each in (found.low, found.mean, found.high)))


def _answer(line: Timeline) -> float:
    """How long an answer takes on the mean before the second half, ns; no longer than a quarter of the whole time."""
    span = int(line.sent.max() - line.sent.min())
    early = line.e2el[line.sent - line.sent.min() <= span / 4]
    return min(float(early.mean()), span / 4) if len(early) else 0.0


def _counts(instants: Ints, edges: np.ndarray) -> np.ndarray:
    return np.diff(np.searchsorted(instants, edges))


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


