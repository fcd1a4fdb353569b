"""Shapes: arrival rates over time, written in a few words, and the arrivals that follow them.

A shape is a curve of rates made of straight pieces. Arrivals are found by its integral: where a plain process has its
events at u1, u2, ..., the shaped one has them when the integral reaches u1, u2, .... A shape knows no trace.

Source: the time change of point processes, as in Cinlar, Introduction to Stochastic Processes, 1975, chapter 4.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from traces.arrivals import LONGEST_NS, SECOND
from traces.errors import TraceError, shown

Float64 = npt.NDArray[np.float64]
T = TypeVar("T")
FORMS = ("ramp:1-10/300s (requests a second from 1 to 10 in 300 s), stage:5/60s,10/60s, burst:x5/10s@60s (5 times the "
         "rate for 10 s from 60 s on), joined by '+'")
UNITS = {"ms": 0.001, "": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_TIME = rf"{_NUMBER}(ms|s|min|m|h|d|)"
_RAMP = re.compile(rf"{_NUMBER}-{_NUMBER}/{_TIME}", re.ASCII)
_STAGE = re.compile(rf"{_NUMBER}/{_TIME}", re.ASCII)
_BURST = re.compile(rf"x{_NUMBER}/{_TIME}@{_TIME}", re.ASCII)


class Piece(NamedTuple):
    """A stretch of `seconds` in which the rate goes straight from `start` to `end`, in requests a second."""

    seconds: float
    start: float
    end: float

    @property
    def amount(self) -> float:
        """Requests that the stretch comes to on average."""
        return self.seconds * (self.start + self.end) / 2 if self.start or self.end else 0.0

    def cut(self, at: float) -> tuple["Piece", "Piece"]:
        """The stretch before and after `at` seconds of it."""
        between = self.start if math.isinf(self.seconds) else self.start + (self.end - self.start) * at / self.seconds
        return Piece(at, self.start, between), Piece(self.seconds - at, between, self.end)


class Burst(NamedTuple):
    """`factor` times the rate for `seconds` from `at` seconds on."""

    factor: float
    seconds: float
    at: float


FOREVER = Piece(math.inf, 1, 1)
"""The trace's own times: a second of it takes a second."""


@dataclass(frozen=True)
class Shape:
    """Pieces of rates that follow each other, and bursts upon them. Without pieces the trace's own times are shaped."""

    pieces: tuple[Piece, ...] = ()
    bursts: tuple[Burst, ...] = ()

    @property
    def replaces(self) -> bool:
        """Whether it says the rates itself, so that the trace's own times do not count."""
        return bool(self.pieces)

    @property
    def curve(self) -> tuple[Piece, ...]:
        """All pieces with the bursts in them; bursts that overlap multiply. Raises TraceError for one after the end."""
        pieces: Sequence[Piece] = self.pieces or (FOREVER,)
        for burst in self.bursts:
            before, rest = _parted(pieces, burst.at)
            during, after = _parted(rest, burst.seconds)
            if not during:
                raise TraceError(f"a burst at {burst.at:g} s comes when the shape has ended")
            higher = [Piece(piece.seconds, *(burst.factor * rate for rate in piece[1:])) for piece in during]
            pieces = [*before, *higher, *after]
        return tuple(pieces)

    @property
    def seconds(self) -> float:
        """How long it lasts; inf without an end."""
        return sum(piece.seconds for piece in self.curve)

    @property
    def requests(self) -> float:
        """Requests that it comes to on average; inf without an end."""
        return sum(piece.amount for piece in self.curve)

    def times(self, events: Float64) -> Float64:
        """Seconds at which the integral of the curve reaches each of the `events`, ascending; none beyond its end."""
        curve = self.curve
        amounts = np.cumsum([0.0, *(piece.amount for piece in curve)])
        starts = np.cumsum([0.0, *(piece.seconds for piece in curve)])
        events = events[events < amounts[-1]]
        at = np.searchsorted(amounts, events, side="right") - 1
        slopes = np.array([(piece.end - piece.start) / piece.seconds for piece in curve])[at]
        rates = np.array([piece.start for piece in curve])[at]
        # t of rate * t + slope * t^2 / 2 = rest, in a form that also holds for a slope of 0 and for a rest of 0.
        rest = events - amounts[at]
        root = rates + np.sqrt(np.maximum(rates * rates + 2 * slopes * rest, 0))
        return starts[at] + np.divide(2 * rest, root, out=np.zeros_like(rest), where=root > 0)


def shape_of(text: str) -> Shape:
    """The shape that the text says; raises TraceError with the forms that there are.

    >>> shape_of("ramp:1-10/300s+burst:x5/10s@60s").requests
    1768.0
    """
    pieces, bursts = list[Piece](), list[Burst]()
    for part in str(text).split("+"):
        kind, _, rest = part.strip().partition(":")
        if kind == "burst":
            bursts += _all(_BURST, rest, _burst, part)
        elif kind in ("ramp", "stage"):
            pieces += _all(*((_RAMP, rest, _ramp) if kind == "ramp" else (_STAGE, rest, _stage)), part)
        else:
            raise TraceError(f"unknown shape {shown(part)} (there are {FORMS})")
    shape = Shape(tuple(pieces), tuple(bursts))
    longest = max([sum(piece.seconds for piece in pieces), *(burst.at + burst.seconds for burst in bursts)])
    if longest > LONGEST_NS / SECOND:
        raise TraceError(f"shape {shown(text)} lasts longer than 146 years")
    if not shape.requests > 0:
        raise TraceError(f"shape {shown(text)} has no request in it")
    return shape


def _all(form: re.Pattern[str], text: str, make: Callable[[re.Match[str]], T], part: str) -> list[T]:
    found = [form.fullmatch(each.strip()) for each in text.split(",")]
    if not all(found):
        raise TraceError(f"cannot read shape {shown(part)} (there are {FORMS})")
    return [make(match) for match in found if match]


def _seconds(number: str, unit: str) -> float:
    if not float(number):
        raise TraceError("a part of a shape must last longer than 0 s")
    return float(number) * UNITS[unit]


def _ramp(match: re.Match[str]) -> Piece:
    return Piece(_seconds(match[3], match[4]), float(match[1]), float(match[2]))


def _stage(match: re.Match[str]) -> Piece:
    return Piece(_seconds(match[2], match[3]), float(match[1]), float(match[1]))


def _burst(match: re.Match[str]) -> Burst:
    if not float(match[1]):
        raise TraceError("a burst must multiply the rate by more than 0")
    return Burst(float(match[1]), _seconds(match[2], match[3]), float(match[4]) * UNITS[match[5]])


def _parted(pieces: Sequence[Piece], at: float) -> tuple[list[Piece], list[Piece]]:
    """The pieces before and after `at` seconds, one of them cut in two where that falls into it."""
    before = list[Piece]()
    for number, piece in enumerate(pieces):
        if at <= 0:
            return before, list(pieces[number:])
        if at < piece.seconds:
            first, second = piece.cut(at)
            return [*before, first], [second, *pieces[number + 1:]]
        before.append(piece)
        at -= piece.seconds
    return before, []


def shaped_times(shape: Shape, own: npt.NDArray[np.int64], process: Float64) -> npt.NDArray[np.int64]:
    """Arrivals in ns: the trace's `own` ones shaped, or, of a shape with rates of its own, those of a `process`.

    process: events at one a second on average, the first at 0.
    """
    events = process if shape.replaces else own / SECOND
    return np.rint(shape.times(events) * SECOND).astype(np.int64)
