"""Details: what the JSON of a run tells beyond the flat summary: by request, by replica and by tenant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.balance import shares
from simulator.columns import Ints
from simulator.facts import facts_of, trust_in
from simulator.gaps import gap_lists, spans_of
from simulator.plausible import ARRAYS
from simulator.remarks import band_remark, remarks

if TYPE_CHECKING:
    from simulator.result import Result

BESIDE = ("scenario", "batch_over_time", "ttft_tail", "replica_stats", "tenant_stats", "facts", "remarks", *ARRAYS)
"""Names in the JSON that stand beside the flat record."""
FEW = 16
"""Entries of an array that are written at once."""


def parts(result: Result, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the JSON has beside the flat record: the batch over time, the slowest first tokens, parts of it, and words.

    None where no step ran, where nobody was answered, without a router, and where no tenant is named.
    """
    replicas = [asdict(share) for share in shares(result)] or None
    return {"batch_over_time": result.fullness and result.fullness.plain(),
            "ttft_tail": result.ttft_tail and result.ttft_tail.plain(), "replica_stats": replicas,
            "tenant_stats": [asdict(tenant) for tenant in result.tenants] or None,
            "facts": [*facts_of(result.setup), *trust_in(result.setup.cost)],
            "remarks": [*remarks(result, summary), *filter(None, [band_remark(result)])]}


def details(result: Result) -> dict[str, Iterable[Any]]:
    """The arrays of the detailed JSON, an entry a row of the trace, in seconds; None for what was not served.

    There is one gap a token, so that no more of them are listed than those of one request.
    """
    setup, line, record = result.setup, result.timeline, result.record
    rows = len(setup.output)
    lists: Iterable[list[int]] = repeat([], len(line))
    if line.streams:
        lists = gap_lists(record, spans_of(record, line.request), line.request)
    times = {"ttfts": line.ttft, "latencies": line.e2el, "queue_times": line.queue_time}
    return {"input_lens": setup.prompt.tolist(), "output_lens": _at(rows, line.request, line.output.tolist()),
            **{name: _at(rows, line.request, (ns / 1e9).tolist()) for name, ns in times.items()},
            "itls": _at(rows, line.request, ([ns / 1e9 for ns in gaps] for gaps in lists)),
            "start_times": [None if ns < 0 else ns / 1e9 for ns in result.outcomes.sent.tolist()],
            "errors": [reason or "" for reason in result.outcomes.reason]}


def array_pieces(arrays: Mapping[str, Iterable[Any]]) -> Iterator[str]:
    """Arrays as the last entries of a JSON object that is indented by 1, piece by piece, each after a comma."""
    for name, entries in arrays.items():
        yield f',\n {json.dumps(name)}: '
        mark = "["
        for some in _some(entries):
            inside = json.dumps(some, indent=1, allow_nan=False).replace("\n", "\n ")
            yield mark + inside.removeprefix("[").removesuffix("\n ]")
            mark = ","
        yield "[]" if mark == "[" else "\n ]"


def _some(entries: Iterable[Any]) -> Iterator[list[Any]]:
    """The entries, a few at a time."""
    rest = iter(entries)
    while some := list(islice(rest, FEW)):
        yield some


def _at(rows: int, where: Ints, values: Iterable[Any]) -> Iterator[Any]:
    """The values at these rows, which are in order, and None at the others."""
    there, following = np.zeros(rows, bool), iter(values)
    there[where] = True
    return (next(following) if here else None for here in there.tolist())
