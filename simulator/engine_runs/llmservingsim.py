"""JSON lines that LLMServingSim's bench recorder writes beside a vLLM engine: one request a line, in seconds.

`queued_ts` (the engine took the request), `first_token_ts` and `last_token_ts` are of one clock. `arrival_time` is of
another, which nothing ties to it, so that a request arrives here when the engine takes it: at the next step boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from simulator.engine_runs.run import Served, number, tokens
from simulator.errors import InputError

NAME = "LLMServingSim's bench recorder"
MEASURED_FROM = "the engine: queued to token made"
FIELDS = ("input_toks", "output_toks", "queued_ts", "first_token_ts", "last_token_ts")


def recognises(line: Any) -> bool:
    """Whether its first line is of this kind."""
    return isinstance(line, dict) and "first_token_ts" in line


def rows(lines: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Served | None]]:
    """Each request and where it stands; None if it made no token."""
    for where, line in lines:
        if not isinstance(line, dict):
            raise InputError(f"{where}: is no record of a request")
        if missing := [field for field in FIELDS if field not in line]:
            when = ", without which nobody knows when it arrived" if missing[0] == "queued_ts" else ""
            raise InputError(f"{where}: lacks '{missing[0]}'{when}")
        if not line["output_toks"] or line["first_token_ts"] is None:
            yield where, None
            continue
        times = (number(where, field, line[field]) for field in FIELDS[2:])
        arrival, first, last = times
        yield where, Served(arrival, tokens(where, "input_toks", line["input_toks"]),
                            tokens(where, "output_toks", line["output_toks"]), first, last)
