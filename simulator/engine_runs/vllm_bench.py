"""What `vllm bench serve --save-result --save-detailed` writes: times of the benchmark client, in seconds.

`start_times` says when a request was sent, `ttfts` and `itls` what passed until the first token and between the others.
A request with an error, or without a token, was not answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulator.engine_runs.columns import Record, columns
from simulator.engine_runs.run import Served, number, tokens
from simulator.errors import InputError

NAME = "vllm bench serve --save-detailed"
MEASURED_FROM = "the benchmark client: sent to received"
ARRAYS = ("start_times", "input_lens", "output_lens", "ttfts", "itls")


def recognises(record: Record) -> bool:
    """Whether it is such a record, as far as its names say."""
    return "ttfts" in record and "itls" in record


def rows(where: str, record: Record) -> Iterator[tuple[str, Served | None]]:
    """Each request and where it stands; None if it was not answered."""
    known = {"errors": [""] * len(columns(where, record, ARRAYS)[0]), **record}
    for at, (error, *entry) in enumerate(zip(*columns(where, known, ("errors", *ARRAYS)), strict=True)):
        place = f"{where}, request {at}"
        yield place, None if error or not entry[2] else _served(place, *entry)


def _served(where: str, start: Any, prompt: Any, output: Any, ttft: Any, gaps: Any) -> Served:
    if not isinstance(gaps, list):
        raise InputError(f"{where}: 'itls' must be a list of numbers")
    arrival = number(where, "start_times", start)
    first = arrival + number(where, "ttfts", ttft)
    last = first + sum(number(where, "itls", gap) for gap in gaps)
    return Served(arrival, tokens(where, "input_lens", prompt), tokens(where, "output_lens", output), first, last)
