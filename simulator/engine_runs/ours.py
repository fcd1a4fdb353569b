"""What `batchsim run --save-detailed` writes: a simulated run in the place of a recorded one, in seconds.

With it one simulation is held against another, or against itself. A request without a latency was not served.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.engine_runs.columns import Record, columns
from simulator.engine_runs.run import Served, number, tokens

NAME = "batchsim --save-detailed"
MEASURED_FROM = "the simulated client: sent to delivered"
ARRAYS = ("start_times", "input_lens", "output_lens", "ttfts", "latencies")


def recognises(record: Record) -> bool:
    """Whether it is such a record, as far as its names say."""
    return str(record.get("backend", "")).startswith("batchsim:")


def rows(where: str, record: Record) -> Iterator[tuple[str, Served | None]]:
    """Each request and where it stands; None if it was not served."""
    for at, (start, prompt, output, ttft, latency) in enumerate(zip(*columns(where, record, ARRAYS), strict=True)):
        place = f"{where}, request {at}"
        if latency is None:
            yield place, None
            continue
        arrival = number(place, "start_times", start)
        yield place, Served(arrival, tokens(place, "input_lens", prompt), tokens(place, "output_lens", output),
                            arrival + number(place, "ttfts", ttft), arrival + number(place, "latencies", latency))
