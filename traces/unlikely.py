"""Unlikely: whether arrivals look as if they were written in another unit than they were read in. It changes none."""

import numpy as np

from traces.arrivals import SECOND
from traces.columns import Int64
from traces.readers.values import UNITS

FEWEST = 10
"""Requests; fewer tell nothing."""
SPARSE_S, DENSE = 20, 1000
"""Seconds of a gap, and requests a second, beyond which there is little that could be batched, or much that nobody
serves."""


def unlikely(arrival: Int64, unit: str | None) -> str | None:
    """A note where a finer or a coarser unit would be more likely than the one that was given; None elsewhere.

    arrival: ns, ascending.
    """
    if unit is None or len(arrival) < FEWEST or arrival[-1] == arrival[0]:
        return None
    units, place = list(UNITS), list(UNITS).index(unit)
    gaps = np.diff(arrival) / SECOND
    gap, rate = float(np.median(gaps)), 1 / float(gaps.mean())
    if gap > SPARSE_S and place + 1 < len(units):
        return (f"by unit {unit}, half of the gaps between requests are {gap:,.4g} s or longer: if the times are in "
                f"{units[place + 1]}, say unit {units[place + 1]}")
    if rate > DENSE and place:
        return (f"by unit {unit}, {rate:,.4g} requests come a second: if the times are in {units[place - 1]}, say unit "
                f"{units[place - 1]}")
    return None
