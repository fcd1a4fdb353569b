"""Tail: the requests that waited longest for their first token, and what held each of them up.

It knows what the engine did. What happens outside of its steps - HTTP, tokenising - is in it only as far as the
scenario states an overhead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.distribution import Distribution
from simulator.frozen import Kept
from simulator.limits import waited
from simulator.record import Record
from simulator.timeline import Timeline

PERCENT = 99
"""The tail are the requests whose TTFT is at least this percentile."""
CAUSES: dict[str, str] = {
    "router": "at the router, until a replica takes it",
    "cap": "in the queue, stopped by the cap on sequences",
    "budget": "in the queue, stopped by the token budget of the step",
    "memory": "in the queue, stopped by a lack of free memory",
    "batch": "in the queue, behind a batch that lets nobody in",
    "step": "in the queue until the step in progress ends",
    "forming": "in the queue while no step runs",
    "preemption": "admitted, and preempted before the first token",
    "prefill": "computing its prompt",
    "delivery": "first token made, not delivered yet",
}
"""Where the time to the first token goes, in words."""


@dataclass(frozen=True)
class Tail(Kept):
    """What held up the first tokens that came last.

    Attributes:
        requests: How many.
        from_ns: The percentile from which on they count.
        shares: Of the sum of their TTFT, by cause; they add up to 1.
        counts: Requests for which each cause took longest.
    """

    requests: int
    from_ns: float
    shares: Mapping[str, float]
    counts: Mapping[str, int]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        causes = {cause: {"share": self.shares[cause], "requests": self.counts[cause]} for cause in CAUSES}
        return {"percentile": PERCENT, "from_ms": self.from_ns / 1e6, "requests": self.requests, "causes": causes}


def ttft_tail(records: Iterable[Record], line: Timeline) -> Tail | None:
    """The tail of a run, by the records of all its replicas; None if nobody was answered."""
    limit = Distribution.of(line.ttft).percentile(PERCENT)
    if limit is None:
        return None
    late = np.flatnonzero(line.ttft >= limit)
    times = np.concatenate([_parts(record, line, _served(record, line, late)) for record in records], axis=1)
    total, largest = int(times.sum()), times.argmax(axis=0)
    return Tail(len(late), limit,
                {cause: int(times[at].sum()) / total if total else 0.0 for at, cause in enumerate(CAUSES)},
                {cause: int((largest == at).sum()) for at, cause in enumerate(CAUSES)})


def _served(record: Record, line: Timeline, late: Ints) -> Ints:
    """Those of the late ones that this replica admitted in their last try."""
    stayed, since, _ = record.last_stays.T
    at = _places(line.request[late], stayed)
    here = (line.request[late][at] == stayed) & (line.admitted[late][at] == since)
    return late[np.unique(at[here])]


def _parts(record: Record, line: Timeline, late: Ints) -> NDArray[np.int64]:
    """Nanoseconds by cause (rows, in the order of CAUSES) of these requests (columns), which this replica served."""
    own = {name: part[late] for name, part in line.ttft_parts.items()}
    sent, reached = line.sent[late], _reached(record, line.request[late])
    reasons = waited(record, reached, line.admitted[late])
    forming = own["queue"] - (reached - sent) - sum(reasons.values())
    parts = {"router": reached - sent, **reasons, "forming": forming, **own}
    return np.stack([parts[cause] for cause in CAUSES])


def _reached(record: Record, requests: Ints) -> Ints:
    """When these requests reached the replica for the last time, ns."""
    sent, when = record.sent.T
    at = _places(requests, sent)
    theirs = requests[at] == sent if len(requests) else np.zeros(len(sent), bool)
    reached = np.zeros(len(requests), np.int64)
    reached[at[theirs]] = when[theirs]    # of the same request, the last one stands
    return reached


def _places(requests: Ints, wanted: Ints) -> Ints:
    """Where each of the wanted would stand among these requests, which are in order."""
    return np.minimum(np.searchsorted(requests, wanted), len(requests) - 1)
