"""Pools of clients, drawn as requests: each client has windows of time with a rate, and probabilities of lengths.

The draw keeps the number of requests of each client and window; the gaps inside have the shape of the window's
family, stretched to fill it. Prompt and output are drawn apart. A window of a client has a stream of chance of its
own, so neither a limit nor another client changes it. How pools are written in files is not known here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt

from traces.arrivals import SECOND
from traces.errors import TraceError

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Drawn = tuple[Int64, Int64, Int64, Int64]
"""Arrivals in ns, prompts, outputs and client numbers."""

FAMILIES = ("Gamma", "Weibull")


@dataclass(frozen=True)
class Lengths:
    """Tokens and the probability of each; probabilities need not add up to 1."""

    tokens: Int64
    shares: Float64

    def __post_init__(self) -> None:
        if not (len(self.tokens) and np.all(self.shares >= 0) and 0 < self.shares.sum() < np.inf):
            raise TraceError("probabilities must be 0 or more, and some above 0")

    def draw(self, n: int, rng: np.random.Generator) -> Int64:
        """`n` lengths; what counts 0 tokens is drawn as 1, since no step computes none."""
        sums = np.cumsum(self.shares)
        found = np.searchsorted(sums, rng.random(n) * sums[-1], side="right")
        return np.maximum(self.tokens[np.minimum(found, len(sums) - 1)], 1)


@dataclass(frozen=True)
class Window:
    """A client's requests from `start` to `end` (ns): how many, and the family and shape of the gaps between them."""

    start: int
    end: int
    count: int
    family: str
    shape: float

    def arrivals(self, rng: np.random.Generator) -> Int64:
        """That many arrivals in the window."""
        draw = rng.gamma if self.family == "Gamma" else rng.weibull
        sums = np.cumsum(draw(self.shape, size=self.count + 1))
        if not 0 < sums[-1] < np.inf:    # a shape so extreme that gaps vanish or have no end
            sums = np.arange(1, self.count + 2, dtype=np.float64)
        length = self.end - self.start
        return self.start + np.minimum(sums[:-1] / sums[-1] * length, length - 1).astype(np.int64)


@dataclass(frozen=True)
class Client:
    """One client: its number, its windows in order, and the lengths from a time on (ns), also in order."""

    number: int
    windows: Sequence[Window]
    prompts: Sequence[tuple[int, Lengths]] = field(default=())
    outputs: Sequence[tuple[int, Lengths]] = field(default=())


def draw(clients: Sequence[Client], seed: int, span: tuple[int, int] | None, limit: int | None) -> Drawn | None:
    """The requests of all clients in order of time, only those in `span` and of them the first `limit`; None if none.

    Windows go in order of their start, so no more are drawn than the limit needs.
    """
    parts: list[Drawn] = []
    for start, group in groupby(_windows(clients), key=lambda each: each[1].start):
        if limit is not None and sum(int(np.count_nonzero(part[0] < start)) for part in parts) >= limit:
            break
        parts += [part for client, window in group if len((part := _of_window(client, window, seed, span))[0])]
    if not parts:
        return None
    arrival, prompt, output, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(arrival, kind="stable")[:limit]
    return arrival[order], prompt[order], output[order], owner[order]


def _windows(clients: Sequence[Client]) -> Iterator[tuple[Client, Window]]:
    every = [(client, window) for client in clients for window in client.windows]
    return iter(sorted(every, key=lambda each: (each[1].start, each[0].number)))


def _of_window(client: Client, window: Window, seed: int, span: tuple[int, int] | None) -> Drawn:
    if span is not None and (window.end <= span[0] or span[1] <= window.start):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing, nothing
    rng = np.random.default_rng([seed, client.number, window.start // SECOND])
    times, prompt_rng, output_rng = rng.spawn(3)
    arrival = window.arrivals(times)
    prompt = _at(client.prompts, window.start).draw(window.count, prompt_rng)
    output = _at(client.outputs, window.start).draw(window.count, output_rng)
    owner = np.full(window.count, client.number, dtype=np.int64)
    inside = slice(None) if span is None else slice(*np.searchsorted(arrival, span))
    return arrival[inside], prompt[inside], output[inside], owner[inside]


def _at(lengths: Sequence[tuple[int, Lengths]], time: int) -> Lengths:
    """The lengths that hold at a time: the last ones from before it, or the first of all."""
    known = [each for start, each in lengths if start <= time]
    return known[-1] if known else lengths[0][1]
