"""Frames: what happened as pandas tables, times in seconds. They show the columns and compute no statistic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.columns import Ints
from simulator.metrics import tpot
from simulator.outcomes import Outcomes, words
from simulator.record import Record
from simulator.recorder import OBSTACLES
from simulator.setup import Setup
from simulator.timeline import Timeline

if TYPE_CHECKING:
    import pandas as pd

REQUEST_COLUMNS: dict[str, str] = {
    "status": "finished, rejected before it was sent, failed because the engine refused it, aborted by its client, "
              "skipped because the turn before was not answered, or unfinished",
    "reason": "why it was rejected, refused, aborted or skipped",
    "tries": "how often it was sent; what follows is of the last try",
    "replica": "which one had its last try, counted from 1; empty if it was never handed to one",
    "tenant": "as the trace names it",
    "priority": "as the trace has it; lower is more urgent",
    "arrival": "its time in the trace, with the load applied",
    "sent": "the client sent it, to be refused or not; not at its arrival if the client's concurrency held it back, or "
            "if it waited for the turn before",
    "admitted": "it took a slot for the first time",
    "first_token": "the step ended that emitted its first token",
    "last_token": "the step ended that emitted its last token",
    "delivered": "its last token reached the client",
    "left": "it gave up its slot for good",
    "prompt_tokens": "tokens",
    "output_tokens": "tokens, after every cut",
    "max_tokens": "declared output tokens",
    "preemptions": "how often it lost its slot before it finished",
    "queue_time": "admitted - sent",
    "ttft": "first token delivered - sent",
    "tpot": "(e2el - ttft) / (output tokens - 1)",
    "e2el": "last token delivered - sent",
    "ttft_preemption": "part of the TTFT lost to preemption",
    "ttft_prefill": "part of the TTFT in the stay that emits the first token",
    "ttft_delivery": "part of the TTFT for which the token is kept back",
}
"""Columns of the requests frame; a row a row of the trace, times in seconds, empty where there is nothing to tell."""
STEP_COLUMNS: dict[str, str] = {
    "replica": "counted from 1",
    "start": "s",
    "end": "s",
    "decodes": "rows that compute a new output token",
    "chunks": "rows that compute prompt or lost tokens",
    "prompt": "tokens those compute",
    "redone": "of these, tokens that a preemption had thrown away",
    "redoing": "rows that compute such tokens",
    "spent": "rows of finished requests that compute all the same",
    "padding": "token positions computed for nothing",
    "context": "KV tokens that the decoding rows read",
    "running": "requests that hold a slot",
    "held": "of these, finished ones",
    "waiting": "requests in the queue at the start",
    "resident": "tokens with KV at the start",
    "promised": "tokens that reservations cover; empty without reservations",
    "used": "blocks of KV cache held",
    "empty": "free blocks that hold nothing; empty where no KV outlives its holder",
    "blocked": "what keeps the head of the queue out: cap, budget, memory, fragmentation or batch",
}
"""Columns of the steps frame; a row a step."""
ROWS_AT_ONCE = 10_000
"""Rows of a frame that are written as one text."""


def requests_frame(setup: Setup, ended: Outcomes, line: Timeline, last: Ints | None = None) -> pd.DataFrame:
    """A row a row of the trace; see REQUEST_COLUMNS. `last` is the number of each row's replica; None: there is one."""
    import pandas as pd
    rows = len(setup.output)
    replica = np.where(ended.sent < 0, 0, 1) if last is None else last + 1
    trace, parts, at = setup.trace, line.ttft_parts, line.request
    several = line.output > 1 if line.streams else np.zeros(len(line), bool)
    columns: dict[str, Any] = {
        "status": ended.status, "reason": ended.reason, "tries": ended.tries,
        "replica": pd.array(replica, "Int64"), "tenant": trace.tenant or [None] * rows,
        "priority": [None] * rows if trace.priority is None else trace.priority,
        "arrival": trace.arrival / 1e9, "sent": np.where(ended.sent < 0, np.nan, ended.sent / 1e9),
        "admitted": _spread(rows, at, line.admitted), "first_token": _spread(rows, at, line.first_token),
        "last_token": _spread(rows, at, line.last_token), "delivered": _spread(rows, at, line.last_delivered),
        "left": _spread(rows, at, line.left),
        "prompt_tokens": setup.prompt, "output_tokens": setup.output, "max_tokens": setup.max_tokens,
        "preemptions": pd.array([pd.NA] * rows, "Int64"),
        "queue_time": _spread(rows, at, line.queue_time), "ttft": _spread(rows, at, line.ttft),
        "tpot": _spread(rows, at[several], tpot(line)), "e2el": _spread(rows, at, line.e2el),
        **{f"ttft_{part}": _spread(rows, at, parts[part]) for part in ("preemption", "prefill", "delivery")},
    }
    columns["preemptions"][at] = line.preemptions
    columns["replica"][replica == 0] = pd.NA
    return pd.DataFrame(columns, index=pd.RangeIndex(rows, name="request"))[list(REQUEST_COLUMNS)]


def steps_frame(records: Sequence[Record]) -> pd.DataFrame:
    """A row a step, replica by replica; see STEP_COLUMNS."""
    import pandas as pd
    frames = [_steps_of(record, number) for number, record in enumerate(records, 1)]
    whole = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return whole.rename_axis("step")


def _steps_of(record: Record, number: int) -> pd.DataFrame:
    import pandas as pd
    columns: dict[str, Any] = {name: record.step(name) for name in STEP_COLUMNS if name != "replica"}
    columns |= {"start": columns["start"] / 1e9, "end": columns["end"] / 1e9,
                "blocked": words(OBSTACLES, columns["blocked"])}
    for name in ("promised", "empty"):
        columns[name] = pd.array(np.maximum(columns[name], 0), "Int64")
        columns[name][record.step(name) < 0] = pd.NA
    return pd.DataFrame({"replica": np.full(len(record.ends), number), **columns})


def csv_pieces(frame: pd.DataFrame) -> Iterator[str]:
    """A frame as CSV, some rows at a time, the names of the columns first."""
    for first in range(0, max(len(frame), 1), ROWS_AT_ONCE):
        yield frame.iloc[first:first + ROWS_AT_ONCE].to_csv(header=not first, lineterminator="\n")


def _spread(rows: int, at: NDArray[np.int64], ns: NDArray[Any]) -> NDArray[np.float64]:
    """Seconds at these rows, nothing at the others."""
    column = np.full(rows, np.nan)
    column[at] = ns / 1e9
    return column
