"""Laws of lengths: how many tokens stand at each probability. A law knows no other length and draws nothing itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from traces.errors import TraceError, plain, shown
from traces.strict import LARGEST, MOST_NUMBERS, count, number, read_text

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
TAIL = (0.991, 0.992, 0.993, 0.994, 0.995, 0.996, 0.997, 0.998, 0.999, 0.9995, 0.9999, 0.99995, 0.99999)
"""Probabilities of the values in a tail, the first of them first."""


class Law(Protocol):
    """What a spec may say of a length."""

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`, at least 1."""


@dataclass(frozen=True)
class Quantiles:
    """Tokens at the 101 probabilities 0, 0.01, ... 1, and at as many of TAIL as there are; logarithms linear between.

    A quantile of 0 tokens counts as 1.
    """

    tokens: Sequence[float]
    tail: Sequence[float] = ()

    def __post_init__(self) -> None:
        for name, values, counts in (("tokens", self.tokens, (101,)), ("tail", self.tail, range(len(TAIL) + 1))):
            if not isinstance(values, Sequence) or isinstance(values, str) or len(values) not in counts:
                raise TraceError(f"{name} must list {'101' if name == 'tokens' else f'up to {len(TAIL)}'} numbers")
            for value in values:
                number(name, value, least=0)
        if np.any(np.diff(self._values) < 0):
            raise TraceError("tokens must not fall from one probability to the next, the tail included")

    @property
    def _values(self) -> Float64:
        return np.array([*self.tokens[:100], *self.tail, *self.tokens[100:]], float)

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        probs = np.concatenate([np.arange(100) / 100, TAIL[:len(self.tail)], [1.0]])
        return _whole(np.exp(np.interp(u, probs, np.log(np.maximum(self._values, 1)))))


@dataclass(frozen=True)
class _Bounded:
    """A law on all numbers above 0, kept between `least` and `most` tokens.

    beyond: what becomes of a length outside of them: "clipped" to the nearest, so that bounds are met often, or
    "rejected" and drawn anew, so that the others come more often. It must be said where there is a bound.
    """

    least: int = 1
    most: int | None = None
    beyond: str | None = None

    def _check_bounds(self) -> None:
        count("least", self.least)
        if self.most is not None:
            count("most", self.most, self.least)
        if self.beyond not in ("clipped", "rejected", None):
            raise TraceError(f"beyond must be clipped or rejected, not {shown(self.beyond)}")
        if self.beyond is None and (self.least > 1 or self.most is not None):
            raise TraceError("beyond must say whether lengths outside of least and most are clipped or rejected")

    def _within(self, u: Float64, share: Callable[[float], float], tokens: Callable[[Float64], Float64]) -> Int64:
        """Tokens at `u` of the law with this distribution function and its inverse, kept within the bounds."""
        most = LARGEST if self.most is None else self.most
        if self.beyond == "rejected":
            low, high = share(self.least - 0.5), share(most + 0.5)    # what rounds to a length within
            if not low < high:
                raise TraceError(f"almost no length lies between {self.least} and {most} tokens: clip, or move them")
            u = low + u * (high - low)
        return np.clip(_whole(np.minimum(tokens(u), LARGEST)), self.least, most)


@dataclass(frozen=True)
class Exponential(_Bounded):
    """Exponential with this mean in tokens, before the bounds: many short ones, few long ones."""

    mean: float = 0

    def __post_init__(self) -> None:
        number("mean", self.mean)
        self._check_bounds()

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        return self._within(u, lambda x: 1 - float(np.exp(-x / self.mean)),
                            lambda u: -self.mean * np.log1p(-np.minimum(u, np.nextafter(1, 0))))


@dataclass(frozen=True)
class Lognormal(_Bounded):
    """Lognormal with this median in tokens and this standard deviation of its logarithm, before the bounds."""

    median: float = 0
    sigma: float = 0

    def __post_init__(self) -> None:
        number("median", self.median)
        number("sigma", self.sigma, most=100)
        self._check_bounds()

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        normal = NormalDist(float(np.log(self.median)), self.sigma)
        tiny = np.finfo(float).tiny
        return self._within(u, lambda x: normal.cdf(float(np.log(x))), lambda u: np.exp(np.minimum(
            [normal.inv_cdf(p) for p in np.clip(u, tiny, np.nextafter(1, 0)).tolist()], np.log(LARGEST))))


@dataclass(frozen=True)
class Uniform:
    """Each number of tokens from `least` to `most` equally often."""

    least: int
    most: int

    def __post_init__(self) -> None:
        count("least", self.least)
        count("most", self.most, self.least)

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        return np.minimum(self.least + np.floor(u * (self.most - self.least + 1)).astype(np.int64), self.most)


@dataclass(frozen=True)
class Fixed:
    """Always the same number of tokens."""

    tokens: int

    def __post_init__(self) -> None:
        count("tokens", self.tokens)

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        return np.full(len(u), self.tokens, dtype=np.int64)


@dataclass(frozen=True)
class Empirical:
    """The numbers in a text file, one a line, each as often as it stands there; what is no number is refused."""

    file: str

    def __post_init__(self) -> None:
        if not isinstance(self.file, str):
            raise TraceError(f"file must be a path, not {shown(self.file)}")
        self._sorted    # noqa: B018 - read and checked now

    @cached_property
    def _sorted(self) -> Int64:
        path = Path(self.file)
        try:
            if path.exists() and not path.is_file():
                raise TraceError(f"file {plain(self.file)} is no regular file: name one with a number a line")
            lines = read_text(path, MOST_NUMBERS).split()
        except TraceError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise TraceError(f"file {plain(self.file)}: {reason}") from None
        for line, word in enumerate(lines, 1):
            if not (word.isascii() and word.isdigit() and 1 <= int(word[:20]) <= LARGEST):
                raise TraceError(f"file {plain(self.file)}, number {line}: {shown(word)} is not 1 token or more")
        if not lines:
            raise TraceError(f"file {plain(self.file)} holds no lengths")
        return np.sort(np.array([int(word) for word in lines], dtype=np.int64))

    def at(self, u: Float64) -> Int64:
        """Tokens at the probabilities `u`."""
        return self._sorted[np.minimum((u * len(self._sorted)).astype(np.int64), len(self._sorted) - 1)]


LAWS: dict[str, type[Law]] = {"quantiles": Quantiles, "lognormal": Lognormal, "exponential": Exponential,
                              "uniform": Uniform, "fixed": Fixed, "empirical": Empirical}
"""By the names that a spec gives them."""


def _whole(tokens: Float64) -> Int64:
    return np.maximum(np.rint(tokens), 1).astype(np.int64)
