"""Arrival processes that a spec may name: how arrivals are drawn, and how that is said in words."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS, SECOND, gamma_arrivals, tick_arrivals, window_arrivals
from traces.errors import TraceError, shown
from traces.strict import count, number, texts

Int64 = npt.NDArray[np.int64]
LONGEST_S = LONGEST_NS // SECOND


class Process(Protocol):
    """What a spec may say of arrivals."""

    @property
    def rows(self) -> int | None:
        """Requests that it comes to; None where it takes as many as there are."""

    def draw(self, rows: int, rng: np.random.Generator) -> Int64:
        """Arrivals of so many requests in ns, in order, the first at 0."""

    def said(self) -> str:
        """The process in words."""


@dataclass(frozen=True)
class Renewal:
    """Independent gaps at a mean rate in requests a second; `rate_is` says where the rate comes from."""

    rate: float
    rate_is: str = ""

    rows = None

    def __post_init__(self) -> None:
        number("rate", self.rate)
        texts(self, "rate_is")

    def draw(self, rows: int, rng: np.random.Generator) -> Int64:
        """Arrivals in ns."""
        return gamma_arrivals(rows, self.rate, self._shape, rng)

    def said(self) -> str:
        """The process in words."""
        return f"arrivals: {self._name} of {self.rate} requests/s" + (f" ({self.rate_is})" if self.rate_is else "")

    @property
    def _shape(self) -> float:
        return 1

    @property
    def _name(self) -> str:
        return "a Poisson process"


@dataclass(frozen=True)
class Constant(Renewal):
    """Equal gaps."""

    _shape = float("inf")
    _name = "a constant rate"


@dataclass(frozen=True)
class Gamma(Renewal):
    """Gamma gaps of shape `burstiness`; below 1 they come in bursts."""

    burstiness: float = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        number("burstiness", self.burstiness)

    @property
    def _shape(self) -> float:
        return self.burstiness

    @property
    def _name(self) -> str:
        return f"Gamma gaps of shape {self.burstiness}, a rate"


@dataclass(frozen=True)
class AtOnce:
    """All at 0."""

    rows = None

    def draw(self, rows: int, rng: np.random.Generator) -> Int64:
        """Arrivals in ns."""
        return np.zeros(rows, dtype=np.int64)

    def said(self) -> str:
        """The process in words."""
        return "arrivals: all at once"


@dataclass(frozen=True)
class Windows:
    """So many requests in each window of `window_s` seconds, the last of them at `span_s`; Gamma gaps inside.

    span_s: by default the last window ends when one more request would come.
    """

    counts: Sequence[int]
    window_s: int = 60
    span_s: float | None = None
    burstiness: float = 1

    def __post_init__(self) -> None:
        _check_windows(self.counts, self.window_s, self.span_s)
        number("burstiness", self.burstiness)

    @property
    def rows(self) -> int:
        """Requests in all windows."""
        return sum(self.counts)

    def draw(self, rows: int, rng: np.random.Generator) -> Int64:
        """Arrivals in ns."""
        window, last = self.window_s * SECOND, self.counts[-1]
        end = len(self.counts) * window - window // (last + 1)
        span = end if self.span_s is None else round(self.span_s * SECOND)
        return window_arrivals(self.counts, window, span, self.burstiness, rng)

    def said(self) -> str:
        """The process in words."""
        return f"arrivals: counts per {self.window_s} s, Gamma gaps of shape {self.burstiness} inside"


@dataclass(frozen=True)
class Ticks:
    """So many requests in each window, all on ticks of a coarse clock, at least one on each tick.

    span_s: no tick of the last window comes after it; by default the window is whole.
    """

    counts: Sequence[int]
    tick_s: int
    window_s: int = 60
    span_s: float | None = None

    def __post_init__(self) -> None:
        _check_windows(self.counts, self.window_s, self.span_s)
        count("tick_s", self.tick_s)
        ticks = self._ticks
        if self.window_s % self.tick_s or any(map(operator.lt, self.counts, ticks)):
            raise TraceError(f"each window must hold whole ticks and a request on each of them, {ticks[0]} at least")

    @property
    def _ticks(self) -> list[int]:
        """How many there are in each window."""
        last, whole = len(self.counts) - 1, self.window_s // self.tick_s
        left = whole if self.span_s is None else int(self.span_s - last * self.window_s) // self.tick_s + 1
        return [whole] * last + [min(left, whole)]

    @property
    def rows(self) -> int:
        """Requests in all windows."""
        return sum(self.counts)

    def draw(self, rows: int, rng: np.random.Generator) -> Int64:
        """Arrivals in ns."""
        return tick_arrivals(self.counts, self._ticks, self.tick_s * SECOND, rng)

    def said(self) -> str:
        """The process in words."""
        return f"arrivals: counts per {self.window_s} s, on ticks of {self.tick_s} s"


PROCESSES: dict[str, type[Process]] = {"poisson": Renewal, "gamma": Gamma, "constant": Constant, "windows": Windows,
                                       "ticks": Ticks, "at-once": AtOnce}
"""By the names that a spec gives them."""


def _check_windows(counts: Sequence[int], window_s: int, span_s: float | None) -> None:
    """Refuse windows that nobody can count, and a span that does not end in the last one."""
    _check_counts(counts)
    count("window_s", window_s)
    start = (len(counts) - 1) * window_s
    if start + window_s > LONGEST_S:
        raise TraceError("counts take more than 146 years")
    if span_s is None:
        return
    number("span_s", span_s, least=0)
    if not start <= span_s <= start + window_s:
        raise TraceError(f"span_s must lie in the last window, from {start} to {start + window_s} s, not at {span_s}")


def _check_counts(counts: object) -> None:
    if not isinstance(counts, Sequence) or isinstance(counts, str) or not counts:
        raise TraceError(f"counts must list the requests of each window, not {shown(counts)}")
    for value in counts:
        count("counts", value, 0)
    if not counts[0] or not counts[-1]:
        raise TraceError("counts must begin and end with a window that has requests")
