"""`load`: a trace from a file or from the bundled stand-ins.

The format is found from the first lines, never from the file name. `READERS` lists the dialects: the exact
ones come first, the tables that take any columns last.
"""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from traces.errors import TraceError, shown, unknown
from traces.readers.azure import AZURE
from traces.readers.dialect import Dialect
from traces.readers.file import read_file
from traces.readers.mooncake import MOONCAKE
from traces.readers.table import CSV, JSONL
from traces.standins import names, stand_in
from traces.trace import Trace

READERS: dict[str, Dialect] = {dialect.name: dialect for dialect in (AZURE, MOONCAKE, CSV, JSONL)}


def load(
    name_or_path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    lenient: bool = False,
    limit: int | None = None,
    seed: int = 0,
) -> Trace:
    """The trace of that name, or in that file (plain or gzip, UTF-8).

    name_or_path: a bundled name (see `available`), else a file; "./NAME" is always a file.
    format: one of READERS, to overrule what the first lines say.
    columns: column names by role (arrival, prompt, output, max_tokens, tenant, priority) where they are not the
        customary ones. An empty name says that the file has no such column; without arrivals all requests come at 0.
    unit: "s", "ms", "us" or "ns", for arrivals that are plain numbers. A date and time needs none.
    lenient: leave bad rows out and report them, instead of refusing the file.
    limit: stop after so many good rows of the file, before they are sorted.
    seed: for stand-ins only.

    Rows out of order are sorted by arrival, equal times in file order; the first arrival becomes 0.
    Raises TraceError, in one line: for a row with file, line, column, value and rule.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        raise TraceError(f"limit must be 1 or more rows, not {shown(limit)}")
    if format is not None and format not in READERS:
        raise unknown("trace format", format, READERS)
    if name_or_path in names():
        if format or columns or unit:
            raise TraceError(f"{name_or_path} is a bundled trace: format, columns and unit are for files")
        trace = stand_in(str(name_or_path), seed)
        return trace if limit is None else trace.head(limit)
    path = _existing(name_or_path)
    return read_file(path, _candidates(format), columns, unit, lenient, limit)


def _candidates(format: str | None) -> Sequence[Dialect]:
    return list(READERS.values()) if format is None else [READERS[format]]


def _existing(name: str | os.PathLike[str]) -> Path:
    """The path, if there is something there; otherwise an error with the nearest bundled name."""
    try:
        path = Path(name)
        if os.fspath(name) and path.exists():
            return path
    except (ValueError, OSError):
        pass  # a name that no file can have
    near = get_close_matches(str(name), names(), n=1)
    hint = f": did you mean {near[0]!r}?" if near else ""
    raise TraceError(f"no trace file or bundled trace {shown(str(name))}{hint} (bundled: {', '.join(names())})")
