"""Tail: the requests that waited longest for their first token, and what held each of them up.

It knows what the engine did. What happens outside of its steps - HTTP, tokenising - is in it only as far as the
scenario states an overhead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.distribution import Distribution
from simulator.limits import waited
from simulator.record import Record
from simulator.timeline import Timeline

PERCENT = 99
"""The tail are the requests whose TTFT is at least this percentile."""
CAUSES: dict[str, str] = {
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
class Tail:
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


def ttft_tail(record: Record, line: Timeline) -> Tail | None:
    """The tail of a run; None if nobody was answered."""
    limit = Distribution.of(line.ttft).percentile(PERCENT)
    if limit is None:
        return None
    late = line.ttft >= limit
    parts = _parts(record, line, late)
    total = int(line.ttft[late].sum())
    largest = np.argmax(np.stack([parts[cause] for cause in CAUSES]), axis=0)
    return Tail(int(late.sum()), limit,
                {cause: int(parts[cause].sum()) / total if total else 0.0 for cause in CAUSES},
                {cause: int((largest == at).sum()) for at, cause in enumerate(CAUSES)})


def _parts(record: Record, line: Timeline, late: NDArray[np.bool_]) -> dict[str, Ints]:
    """Nanoseconds by cause, an entry a request of the tail."""
    own = {name: part[late] for name, part in line.ttft_parts.items()}
    queued = own.pop("queue")
    reasons = waited(record, line.sent[late], line.admitted[late])
    return {**reasons, "forming": queued - sum(reasons.values()), **own}
