"""Throughput: how much is served, over which time. A rate without its window is not a number one can compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.gaps import tokens_per_step, unordered_spans_of
from simulator.record import Record
from simulator.timeline import Timeline

Ints = NDArray[np.int64]
SECOND = 10 ** 9


@dataclass(frozen=True)
class Window:
    """What was completed in a stretch of time.

    Attributes:
        duration: Nanoseconds.
        requests: Requests completed: their last token reached the client.
        input_tokens, output_tokens: Tokens of those requests.
    """

    duration: int
    requests: int
    input_tokens: int
    output_tokens: int

    def rate(self, count: int) -> float | None:
        """So many a second; None if the window is empty."""
        return count * SECOND / self.duration if self.duration > 0 else None

    @property
    def request_rate(self) -> float | None:
        """Requests a second."""
        return self.rate(self.requests)

    @property
    def output_rate(self) -> float | None:
        """Output tokens a second."""
        return self.rate(self.output_tokens)

    @property
    def total_rate(self) -> float | None:
        """Prompt and output tokens a second."""
        return self.rate(self.input_tokens + self.output_tokens)


def _window(line: Timeline, duration: int, counted: NDArray[np.bool_]) -> Window:
    return Window(duration, int(counted.sum()), int(line.prompt[counted].sum()), int(line.output[counted].sum()))


def whole_run(line: Timeline) -> Window:
    """From the first request sent to the last token delivered."""
    if not len(line):
        return Window(0, 0, 0, 0)
    return _window(line, int(line.last_delivered.max() - line.sent.min()), np.ones(len(line), bool))


def steady_window(line: Timeline) -> Window:
    """From the first completion to the last; what completes at its first instant is the work of the time before."""
    if not len(line):
        return Window(0, 0, 0, 0)
    first, last = int(line.last_delivered.min()), int(line.last_delivered.max())
    return _window(line, last - first, line.last_delivered > first)


def before_tail(line: Timeline) -> Window:
    """The first three quarters of the whole run. Stragglers that stretch the run fall into the rest, the tail."""
    duration = whole_run(line).duration
    before = duration * 3 // 4
    return _window(line, before, line.last_delivered - line.sent.min(initial=1 << 62) <= before)


def tail_requests(line: Timeline) -> int | None:
    """How many requests complete in the last quarter of the whole run; if they are few, stragglers set its length."""
    return len(line) - before_tail(line).requests if len(line) else None


def offered_rate(arrival: Ints) -> float | None:
    """Requests a second that come, served or not, by the gaps between them; None if there are none."""
    span = int(arrival[-1] - arrival[0]) if len(arrival) else 0
    return (len(arrival) - 1) * SECOND / span if span else None


def most_tokens_in_a_second(record: Record, line: Timeline) -> int | None:
    """The most output tokens delivered in one second, seconds counted from the first request sent."""
    if not len(line):
        return None
    if line.streams:
        overhead = line.first_delivered[0] - line.first_token[0]    # the same for every token
        at, tokens = record.ends + overhead, tokens_per_step(record, unordered_spans_of(record, line.request))
    else:
        order = np.argsort(line.last_delivered)
        at, tokens = line.last_delivered[order], line.output[order]
    second = (at - line.sent.min()) // SECOND
    begins = np.flatnonzero(np.diff(second, prepend=second[0] - 1))
    seconds, place = np.unique(second[begins], return_inverse=True)    # each replica's own seconds follow one another
    sums = np.zeros(len(seconds), np.int64)
    np.add.at(sums, place, np.add.reduceat(tokens, begins))
    return int(sums.max())


def most_requests_in_a_second(line: Timeline) -> int | None:
    """The most requests outstanding at any time within one second, counted as `vllm bench serve` does."""
    if not len(line):
        return None
    start = line.sent.min()
    begun = np.sort((line.sent - start) // SECOND)
    ended = np.sort((line.last_delivered - start) // SECOND)
    active = np.searchsorted(begun, begun, side="right") - np.searchsorted(ended, begun, side="left")
    return int(active.max())
