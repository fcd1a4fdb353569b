"""Timeline: the instants of every finished request, as columns of integer nanoseconds. It knows no statistic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.frozen import Kept
from simulator.record import Record
from simulator.setup import Setup

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Timeline(Kept):
    """One entry a finished request, in the order of the trace. All instants are ns on the clock of the run.

    Attributes:
        request: Row of the trace.
        prompt, output: Tokens.
        sent: The client sent it; if it was sent several times, the last one.
        admitted: Its first stay in a slot began.
        served: The stay began in which it emitted its first token.
        first_token, last_token: The step ended that emitted the token.
        first_delivered, last_delivered: The client received the token: at once from a policy that streams,
            else when the request leaves; and later by the overhead of a request.
        left: It gave up its slot for good.
        preemptions: How often it lost its slot before.
        streams: Whether tokens reach the client as they are made.
    """

    request: Ints
    prompt: Ints
    output: Ints
    sent: Ints
    admitted: Ints
    served: Ints
    first_token: Ints
    last_token: Ints
    first_delivered: Ints
    last_delivered: Ints
    left: Ints
    preemptions: Ints
    streams: bool

    def __len__(self) -> int:
        return len(self.request)

    @property
    def ttft(self) -> Ints:
        """First token delivered - sent, ns."""
        return self.first_delivered - self.sent

    @property
    def e2el(self) -> Ints:
        """Last token delivered - sent, ns."""
        return self.last_delivered - self.sent

    @property
    def queue_time(self) -> Ints:
        """Admitted - sent, ns."""
        return self.admitted - self.sent

    @property
    def ttft_parts(self) -> dict[str, Ints]:
        """Where the TTFT went, in ns; the parts add up to it.

        ``queue``: sent until first admitted. ``preemption``: from there until the stay that emits the first token;
        whatever was computed before is lost. ``prefill``: from there to that token. ``delivery``: the token is made,
        but kept back until the request leaves if the policy does not stream; and the overhead of a request.
        """
        return {"queue": self.queue_time, "preemption": self.served - self.admitted,
                "prefill": self.first_token - self.served, "delivery": self.first_delivered - self.first_token}


def timeline(setup: Setup, record: Record) -> Timeline:
    """The instants of those requests that have emitted all their tokens and left."""
    rows = len(setup.output)
    ends = record.ends
    spanned, first_step, last_step = record.last_spans.T
    stayed, since, until = record.last_stays.T
    request = finished(setup, record)
    first_token = ends[_earliest(rows, spanned, first_step)[request]]
    last_token = ends[_latest(rows, spanned, last_step)[request]]
    admitted, left = _earliest(rows, stayed, since)[request], _latest(rows, stayed, until)[request]
    emission = np.zeros(rows, np.int64)
    emission[request] = first_token
    before = since < emission[stayed]
    served = np.maximum(_latest(rows, stayed[before], since[before])[request], admitted)
    streams, overhead = setup.policy.streams, setup.request_overhead
    first, last = (first_token, last_token) if streams else (left, left)
    if overhead:
        first, last = first + overhead, last + overhead
    return Timeline(
        request, setup.prompt[request], setup.output[request], _latest(rows, *record.sent.T)[request], admitted, served,
        first_token, last_token, first, last, left,
        np.bincount(stayed, minlength=rows)[request] - 1, streams)


def finished(setup: Setup, record: Record) -> Ints:
    """Rows of the trace whose requests have emitted all their tokens and left, in order."""
    rows = len(setup.output)
    emitted = np.bincount(record.last_spans[:, 0], record.tokens_of(record.last_spans), rows)
    left = np.bincount(record.last_stays[:, 0], minlength=rows) > 0
    return np.flatnonzero((emitted == setup.output) & left)


def departures(setup: Setup, record: Record) -> tuple[Ints, Ints]:
    """Rows of the trace whose requests were answered, in order, and when each gave up its slot for good, ns."""
    request = finished(setup, record)
    stayed, _, until = record.last_stays.T
    return request, _latest(len(setup.output), stayed, until)[request]


def _earliest(rows: int, keys: Ints, values: Ints) -> Ints:
    """The first of the values of each key; of the same key, the record lists earlier ones first. 0 for other rows."""
    return _latest(rows, keys[::-1], values[::-1])


def _latest(rows: int, keys: Ints, values: Ints) -> Ints:
    """The last of the values of each key: where an index repeats, the last assignment stands."""
    column = np.zeros(rows, np.int64)
    column[keys] = values
    return column
