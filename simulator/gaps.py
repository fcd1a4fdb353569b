"""Gaps between tokens, read off the spans without listing a token: hundreds of millions of them stay a few columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.columns import Ints, Packed, packed
from simulator.distribution import Distribution
from simulator.record import Record


def unordered_spans_of(record: Record, requests: Ints) -> Packed:
    """The spans of these requests, as the record lists them, without tries that were cancelled."""
    spans = record.last_spans
    return spans[np.isin(spans[:, 0], requests)]


def spans_of(record: Record, requests: Ints) -> Packed:
    """The spans of these requests, request by request and each in the order of time."""
    spans = unordered_spans_of(record, requests)
    return spans[np.argsort(spans[:, 0], kind="stable")]


def coverage(first: Packed, last: Packed, steps: int) -> Ints:
    """How many of the spans from `first` to `last` contain each of the `steps` steps.

    An empty span has first = last + 1.
    """
    change = np.bincount(first, minlength=steps + 1) - np.bincount(last + 1, minlength=steps + 1)
    return np.cumsum(change)[:steps]


def tokens_per_step(record: Record, spans: Packed) -> Ints:
    """Tokens that these spans emit in each step."""
    steps = len(record.ends)
    turns = record.step("paused") == 0
    return np.bincount(spans[:, 1], minlength=steps) + coverage(spans[:, 1] + 1, spans[:, 2], steps) * turns


def token_gaps(record: Record, spans: Packed) -> Distribution:
    """Every gap between two tokens that follow one another in a request, in ns, for spans as `spans_of` orders them.

    Inside a span a token's gap is the time since the decoding set last took part, so it occurs as often as spans go on
    through the step. A span that begins while the set pauses has a first gap of its own, and so has a request's next
    span: the time for which it was stalled.
    """
    ends = record.ends
    paused = record.step("paused") > 0
    turns = np.flatnonzero(~paused)    # steps in which the set took part
    inside = coverage(spans[:, 1] + 1, spans[:, 2], len(ends))[turns]
    begun = np.flatnonzero(paused[spans[:, 1]] & (spans[:, 2] > spans[:, 1]))    # several tokens, the first in a pause
    first_turn = np.searchsorted(turns, spans[begun, 1])    # the place in `turns` of that token
    inside -= np.bincount(first_turn, minlength=len(turns))
    resumed = np.flatnonzero(spans[1:, 0] == spans[:-1, 0]) + 1
    own = np.concatenate((ends[spans[resumed, 1]] - ends[spans[resumed - 1, 2]],
                          ends[turns[first_turn]] - ends[spans[begun, 1]]))
    return Distribution.of(np.concatenate((np.diff(ends[turns], prepend=0), own)),
                           packed(np.concatenate((inside, np.ones(len(own), np.int64)))))


def gap_lists(record: Record, spans: Packed, requests: Ints) -> Iterator[list[int]]:
    """The gaps of each of `requests`, in ns: all of them are as many as tokens, so one request is listed at a time."""
    at = np.searchsorted(spans[:, 0], requests, side="left")
    to = np.searchsorted(spans[:, 0], requests, side="right")
    for a, b in zip(at, to, strict=True):
        steps = [_token_steps(record, first, last) for _, first, last in spans[a:b]]
        yield np.diff(record.ends[np.concatenate(steps)]).tolist()


def _token_steps(record: Record, first: int, last: int) -> Ints:
    """The steps of a span in which there is a token."""
    without = slice(*np.searchsorted(record.pauses, (first, last), side="right"))
    return np.delete(np.arange(first, last + 1), record.pauses[without] - first)
