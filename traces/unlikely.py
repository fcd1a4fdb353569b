"""Unlikely: whether arrivals look as if they were in another unit than they were taken to be. It changes none."""

import numpy as np

from traces.arrivals import SECOND, UNITS
from traces.columns import Int64

FEWEST = 10
"""Requests; fewer tell nothing."""
SPARSE_S, DENSE = 20, 1000
"""Seconds of a gap, and requests a second, beyond which there is little that could be batched, or much that nobody
serves."""
IMPOSSIBLE = 1_000_000
"""Requests a second that nobody sends; recorded bursts come near DENSE."""


def unlikely(arrival: Int64, unit: str | None) -> str | None:
    """A note where a finer or a coarser unit would be more likely than the one that was given; None elsewhere.

    arrival: ns, ascending.
    """
    if unit is None or (rate := _rate(arrival)) is None:
        return None
    units, place = list(UNITS), list(UNITS).index(unit)
    gap = float(np.median(np.diff(arrival))) / SECOND
    if gap > SPARSE_S and place + 1 < len(units):
        return (f"by unit {unit}, half of the gaps between requests are {gap:,.4g} s or longer: if the times are in "
                f"{units[place + 1]}, say unit {units[place + 1]}")
    if rate > DENSE and place:
        return (f"by unit {unit}, {rate:,.4g} requests come a second: if the times are in {units[place - 1]}, say unit "
                f"{units[place - 1]}")
    return None


def unlikely_ns(arrival: Int64) -> str | None:
    """A note where a program seems to have given other times than the nanoseconds that a Trace has; None elsewhere."""
    if (rate := _rate(arrival)) is None or rate < IMPOSSIBLE:
        return None
    return (f"arrivals are in nanoseconds, by which {rate:,.4g} requests come a second: make them 10**9 times as large "
            "if they are in seconds, 10**6 times if in ms")


def _rate(arrival: Int64) -> float | None:
    """Requests a second; None where they are too few to tell, or all come at once."""
    span = 0 if len(arrival) < FEWEST else int(arrival[-1] - arrival[0])
    return (len(arrival) - 1) * SECOND / span if span else None
