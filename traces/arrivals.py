"""Arrival times: a renewal process at a rate, counts per window, counts on a coarse clock.

Every function returns int64 nanoseconds in order, the first arrival at 0. Randomness comes only from the
generator passed in. Lengths are not known here.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traces.errors import TraceError, shown

Int64 = npt.NDArray[np.int64]
SECOND = 1_000_000_000
UNITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
"""Units of plain numbers, with the power of ten that makes them nanoseconds."""
LONGEST_NS = 1 << 62
"""Latest time of a trace: 146 years, far enough from the end of int64 to add to it."""
MOST_REQUESTS = 100_000_000
"""Requests of the longest trace that is drawn or repeated: some GiB."""


def gamma_arrivals(n: int, rate: float, burstiness: float, rng: np.random.Generator) -> Int64:
    """`n` arrivals with independent Gamma gaps of mean 1/rate seconds.

    burstiness: shape of the Gamma law, as in vLLM's `bench serve`. 1 is a Poisson process, below 1 is
    burstier, inf gives constant gaps. The coefficient of variation of the gaps is 1/sqrt(burstiness).
    rate: requests a second; inf puts every arrival at 0.

    Times are sums from the start, rounded once each, so no rounding error builds up: with constant gaps
    arrival i stands at i/rate to the nanosecond. Raises TraceError for a negative n, and for a rate or a
    burstiness that is 0, negative or not a number.
    """
    _check(n, rate, burstiness)
    if math.isinf(rate):
        return np.zeros(n, dtype=np.int64)
    with np.errstate(all="ignore"):
        times = _unit_times(n, burstiness, rng) * (SECOND / np.float64(rate))
    if not np.all(times <= LONGEST_NS):
        raise TraceError(f"{n} arrivals at rate {rate} and burstiness {burstiness} take more than 146 years")
    return np.rint(times).astype(np.int64)


def window_arrivals(
    counts: Sequence[int], window_ns: int, span_ns: int, burstiness: float, rng: np.random.Generator
) -> Int64:
    """Arrivals with exact counts: `counts[i]` of them in [i * window_ns, (i + 1) * window_ns).

    Gaps inside a window are Gamma with shape `burstiness`, stretched to fill it (shape 1: a Poisson process
    given its count). The very first arrival is at 0 and the very last at `span_ns`, so the rate is exact;
    the first and the last count must not be 0, and `span_ns` ends the last window early.
    """
    last = len(counts) - 1
    parts = []
    for window, count in enumerate(counts):
        start = window * window_ns
        # The end of a window belongs to the next one, the end of the span to the last arrival.
        latest = span_ns - start if window == last else window_ns - 1
        marks = _marks(count, burstiness, rng, at_start=window == 0, at_end=window == last)
        parts.append(start + np.rint(marks * latest).astype(np.int64))
    return np.concatenate(parts)


def tick_arrivals(counts: Sequence[int], ticks: Sequence[int], tick_ns: int, rng: np.random.Generator) -> Int64:
    """Arrivals on a clock of `tick_ns`, `counts[i]` of them on the next `ticks[i]` ticks, which are no more than that.

    Each tick has one, the rest fall on these ticks at random.
    """
    each = np.concatenate([1 + rng.multinomial(count - among, np.full(among, 1 / among))
                           for count, among in zip(counts, ticks, strict=True)])
    return np.repeat(np.arange(len(each), dtype=np.int64) * tick_ns, each)


def is_number(value: object) -> bool:
    """Whether `value` is a plain number, NaN and inf included; True and False are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _check(n: int, rate: float, burstiness: float) -> None:
    if n < 0:
        raise TraceError(f"a number of arrivals must be 0 or more, not {n}")
    for word, value in (("request rate", rate), ("burstiness", burstiness)):
        if not (is_number(value) and value > 0):
            raise TraceError(f"{word} must be above 0 (inf is allowed), not {shown(value)}")


def _unit_times(n: int, burstiness: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """`n` times of a process with mean gap 1, the first at 0."""
    if math.isinf(burstiness):
        return np.arange(n, dtype=np.float64)
    gaps = rng.gamma(burstiness, 1 / np.float64(burstiness), size=max(n - 1, 0))
    return np.concatenate([np.zeros(min(n, 1)), np.cumsum(gaps)])


def _marks(
    count: int, burstiness: float, rng: np.random.Generator, *, at_start: bool, at_end: bool
) -> npt.NDArray[np.float64]:
    """`count` points of [0, 1] in order, the first at 0 and the last at 1 where asked."""
    gaps = rng.gamma(burstiness, size=count + 1)
    if at_start:
        gaps[0] = 0
    if at_end:
        gaps[-1] = 0
    sums = np.cumsum(gaps)
    return sums[:-1] / sums[-1]
