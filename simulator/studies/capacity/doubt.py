"""Doubt: enough requests meet their limits, and too few come for that to be sure. It knows no layout and runs nothing.

It takes the share seen for the truth. An interval of windows is narrower by the square root of how many more requests
there are; that of the requests by themselves (Clopper and Pearson) is worked out anew. So the number is a guide: the
next requests may miss more often, or less.
"""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, floor, log10

from simulator.counting import counted, plainly
from simulator.statistics import Interval, share_interval
from simulator.studies.capacity.objectives import percent

MOST_REQUESTS = 10_000_000
"""More are not asked of anybody."""


def requests_needed(found: Interval, wanted: float, distinct: int) -> int | None:
    """About how many requests make it sure that the share wanted is met, where as many meet their limits as were found.

    None where the share found lies too close to the one wanted, or below it.
    """
    spare, mean = found.mean - wanted, found.mean
    if spare <= 0:
        return None
    alone = share_interval(mean * distinct, distinct, found.level)
    windows = distinct * ((mean - found.low) / spare) ** 2 if found.low < alone.low else 0.0
    if windows > MOST_REQUESTS or not _sure(MOST_REQUESTS, found, wanted):
        return None
    apart = bisect_left(range(MOST_REQUESTS), True, lo=distinct, key=lambda number: _sure(number, found, wanted))
    return _rounded(max(ceil(windows), apart))


def _sure(requests: int, found: Interval, wanted: float) -> bool:
    return share_interval(found.mean * requests, requests, found.level).low >= wanted


def _rounded(number: int) -> int:
    """Up to two digits."""
    unit = 10 ** max(0, floor(log10(number)) - 1)
    return ceil(number / unit) * unit


def reason(found: Interval, wanted: float, distinct: int, where: str) -> str:
    """Why the answer is not sure: what was seen, and of how many requests."""
    return (f"{found.mean:.2%} of the requests meet their limits {where}, and {percent(wanted)} are asked, but "
            f"{counted(distinct, 'request')} are too few to be sure of that ({found.level:.0%} interval {found.low:.2%}"
            f" to {found.high:.2%})")


def remedies(found: Interval, wanted: float, distinct: int) -> list[str]:
    """What would be sure: more requests, or a lower share of these."""
    needed = requests_needed(found, wanted, distinct)
    more = ("no trace is long enough, so close are the share found and the one asked" if needed is None else
            f"about {needed:,} requests, {plainly(needed / distinct, 2)} times as many, would do if as many of them "
            "meet their limits (others, not the same ones again)")
    share = floor(found.low * 1000) / 1000
    lower = f"of these requests {percent(share)} is sure to be met, in place of {percent(wanted)}"
    return [more, lower] if share > 0 else [more]
