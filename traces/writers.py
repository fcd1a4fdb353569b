"""A trace to a file: Mooncake JSON lines for other tools, CSV and Parquet for ourselves, exact to the ns.

Mooncake's format is what vLLM's and guidellm's replays read. They make the prompts from the hash ids, so a trace
without any gets ids that nobody shares, and says so; what else the format has no word for stands in members that they
pass over. All three hold every column, so that reading them again gives the same trace; its name, its licence and how
it was read are not kept. No file is written here: the caller gets bytes.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from traces.errors import TraceError, plain, shown
from traces.readers.mooncake import BLOCK, MOONCAKE
from traces.readers.own import NAMES
from traces.trace import Trace

MS = 1_000_000
Columns = dict[str, Sequence[Any]]


def convert(trace: Trace, suffix: str) -> bytes:
    """The content of a file with this ending: .jsonl (Mooncake), .csv or .parquet; raises TraceError for others.

    >>> convert(Trace("one", arrival=[0], prompt=[100], output=[10]), ".csv")
    b'arrival_ns,prompt_tokens,output_tokens\\n0,100,10\\n'
    """
    if suffix not in WRITERS:
        given = plain(suffix) or "a file without an ending"
        raise TraceError(f"a trace is written as {', '.join(WRITERS)}, not as {given}")
    for column in ("tenant", "session"):
        for name in set(getattr(trace, column) or ()):
            if not name.isprintable():
                raise TraceError(f"column {column}: {shown(name)} is not a printable name")
    return WRITERS[suffix](trace)


def _columns(trace: Trace) -> Columns:
    """The columns of a trace by role, with an id for each row where turns refer to them."""
    found: Columns = {role: values.tolist() if isinstance(values, np.ndarray) else list(values)
                      for role, values in trace.columns().items() if role != "original"}
    if trace.hash_ids is not None:
        found["hash_block"] = [trace.hash_block] * len(trace)
    if trace.parent is not None:
        found["id"] = list(range(len(trace)))
    return found


def _mooncake(trace: Trace) -> bytes:
    columns = _columns(trace)
    if trace.hash_ids is None:
        columns |= {"hash_ids": _filled(trace), "filled": [True] * len(trace)}
    elif trace.hash_block == BLOCK and np.array_equal(trace.hash_ids.lengths, -(-trace.prompt // BLOCK)):
        del columns["hash_block"]    # what the format takes for granted
    written = {role: list(map(_milliseconds if role in ("arrival", "think") else json.dumps, values))
               for role, values in columns.items()}
    names = {**MOONCAKE.columns, **MOONCAKE.optional}
    members = [(f"{json.dumps(names[role])}: ", written[role]) for role in names if role in written]
    rows = zip(*(values for _, values in members), strict=True)
    return "".join(f"{{{', '.join(_member(members, row))}}}\n" for row in rows).encode()


def _member(members: Sequence[tuple[str, Any]], row: Sequence[str]) -> Iterator[str]:
    return (name + value for (name, _), value in zip(members, row, strict=True))


def _milliseconds(time: int) -> str:
    """ns as ms, with as many decimals as it takes."""
    whole, rest = divmod(time, MS)
    return f"{whole}.{rest:06}".rstrip("0") if rest else str(whole)


def _filled(trace: Trace) -> list[list[int]]:
    """Ids for a trace that has none, since a replay makes prompts of them; a turn begins with what it repeats."""
    found: list[list[int]] = []
    parents = [-1] * len(trace) if trace.parent is None else trace.parent.tolist()
    shared = [0] * len(trace) if trace.shared is None else trace.shared.tolist()
    fresh = count()
    for parent, common, prompt in zip(parents, shared, trace.prompt.tolist(), strict=True):
        known = found[parent][:common // BLOCK] if parent >= 0 else []
        found.append(known + list(islice(fresh, -(-prompt // BLOCK) - len(known))))
    return found


def _csv(trace: Trace) -> bytes:
    columns = _columns(trace)
    if trace.hash_ids is not None:
        columns["hash_ids"] = [" ".join(map(str, ids)) for ids in trace.hash_ids]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(NAMES[role] for role in NAMES if role in columns)
    writer.writerows(zip(*(columns[role] for role in NAMES if role in columns), strict=True))
    return text.getvalue().encode()


def _parquet(trace: Trace) -> bytes:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise TraceError("Parquet is written with pyarrow: pip install 'batchsim[parquet]'") from None
    columns = _columns(trace)
    if trace.hash_ids is not None:
        ids = trace.hash_ids
        columns["hash_ids"] = arrow.LargeListArray.from_arrays(arrow.array(ids.starts), arrow.array(ids.values))
    sink = io.BytesIO()
    parquet.write_table(arrow.table({NAMES[role]: columns[role] for role in NAMES if role in columns}), sink)
    return sink.getvalue()


WRITERS: Mapping[str, Callable[[Trace], bytes]] = {".jsonl": _mooncake, ".csv": _csv, ".parquet": _parquet}
