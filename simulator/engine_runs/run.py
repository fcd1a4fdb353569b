"""A recorded run of an engine: who came when, with how many tokens, and when the first and the last token left.

It checks that the times can be; it knows no file format and no simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from traces import Trace

Seconds = NDArray[np.float64]
SLACK_S = 1e-6
"""How much earlier than it can be a time may stand in a file that rounds."""
LONGEST_S, MOST_TOKENS = 4e9, 1 << 40
"""What is further from 0 is no time, on whatever clock, and no length."""


class Served(NamedTuple):
    """One answered request; times in seconds on the clock of the recording."""

    arrival: float
    prompt: int
    output: int
    first: float
    last: float


@dataclass(frozen=True, eq=False)
class EngineRun:
    """The answered requests of one run, in the order of arrival; the first arrives at 0.

    Attributes:
        name: Of the recording.
        dialect: Which format it was read from.
        served: The requests.
        failed: How many more the recording has that were not answered; they are left out.
        measured_from: What an arrival is, in words: the clients' side or the engine's.
    """

    name: str
    dialect: str
    served: tuple[Served, ...]
    failed: int
    measured_from: str

    def __len__(self) -> int:
        return len(self.served)

    @cached_property
    def trace(self) -> Trace:
        """The requests as a trace that declares the true output lengths."""
        arrival = np.rint(self._column("arrival") * 1e9).astype(np.int64)
        prompt, output = (self._column(name).astype(np.int64) for name in ("prompt", "output"))
        return Trace(self.name, arrival, prompt, output, max_tokens=output, source=f"recorded run, {self.dialect}")

    @property
    def ttft(self) -> Seconds:
        """Time to first token of each request."""
        return self._column("first") - self._column("arrival")

    @property
    def tpot(self) -> Seconds:
        """Time per output token after the first; nan for answers of one token."""
        gaps = self._column("output") - 1
        return np.where(gaps > 0, (self._column("last") - self._column("first")) / np.maximum(gaps, 1), np.nan)

    @property
    def e2el(self) -> Seconds:
        """From arrival to last token."""
        return self._column("last") - self._column("arrival")

    @property
    def makespan(self) -> float:
        """From the first arrival to the last token, in seconds."""
        return float(self._column("last").max())

    @property
    def output_tokens(self) -> int:
        """Of all answered requests."""
        return sum(request.output for request in self.served)

    def _column(self, name: str) -> Seconds:
        return np.array([getattr(request, name) for request in self.served], float)


def engine_run(name: str, dialect: str, rows: Iterable[tuple[str, Served | None]], measured_from: str) -> EngineRun:
    """A run from (where it stands, request) pairs; None stands for a request that was not answered.

    Raises:
        InputError: No answered request, or one whose times or tokens cannot be.
    """
    served, failed = [], 0
    for where, request in rows:
        if request is None:
            failed += 1
            continue
        _check(where, request)
        served.append(request)
    if not served:
        raise InputError(f"{name}: holds no answered request, so there is nothing to compare with")
    served.sort(key=lambda request: request.arrival)
    start = served[0].arrival
    shifted = tuple(request._replace(arrival=request.arrival - start, first=request.first - start,
                                     last=request.last - start) for request in served)
    if not max(request.last for request in shifted) > 0:
        raise InputError(f"{name}: its last token came with the first request, so it measures nothing")
    return EngineRun(name, dialect, shifted, failed, measured_from)


def _check(where: str, request: Served) -> None:
    if request.prompt < 1 or request.output < 1:
        raise InputError(f"{where}: has {request.prompt} prompt and {request.output} output tokens; both must be at "
                         "least 1")
    if request.first < request.arrival - SLACK_S or request.last < request.first - SLACK_S:
        raise InputError(f"{where}: arrival, first and last token are out of order ({request.arrival:.6f}, "
                         f"{request.first:.6f}, {request.last:.6f} s)")


def number(where: str, field: str, value: Any) -> float:
    """A time in seconds from a file. Raises InputError with the place where it stands."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LONGEST_S:
        raise InputError(f"{where}: '{field}' must be a number of seconds, not {_shown(value)}")
    return float(value)


def tokens(where: str, field: str, value: Any) -> int:
    """A whole number of at least 0 from a file. Raises InputError with the place where it stands."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_TOKENS:
        raise InputError(f"{where}: '{field}' must be a whole number of tokens, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
