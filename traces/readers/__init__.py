"""`load`: a trace from a file, from the bundled stand-ins, from a spec, or one that was fetched.

The format is found from the content, never from the file name. `READERS` lists the formats: the exact ones come
first, the table that takes any columns last.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from traces.describe import time_of_day
from traces.errors import TraceError, shown, unknown
from traces.fetching import Public, catalogue
from traces.readers.aiperf import AIPERF
from traces.readers.asked import Asked, window_ns
from traces.readers.azure import AZURE
from traces.readers.bailian import BAILIAN
from traces.readers.burstgpt import BURSTGPT
from traces.readers.content import Content, content_of
from traces.readers.guidellm import GUIDELLM
from traces.readers.litellm import LITELLM, LITELLM_PAGE
from traces.readers.mooncake import MOONCAKE
from traces.readers.otel import OTEL
from traces.readers.own import OWN
from traces.readers.servegen import Pools
from traces.readers.splitwise import SPLITWISE
from traces.readers.table import TABLE
from traces.readers.tracelab import TRACELAB
from traces.readers.vidur import LENGTHS, VIDUR
from traces.readers.vllm_bench import VLLM_BENCH
from traces.readers.weka import WEKA, WEKA_TABLE
from traces.standins import drawn, is_drawn, names
from traces.trace import Trace


class Reader(Protocol):
    """One format: what it is, whether a file is of it, and how it is read."""

    @property
    def name(self) -> str:
        """As the report and `format` call it."""

    @property
    def about(self) -> str:
        """What it is, in a line."""

    def recognises(self, content: Content) -> bool:
        """Whether this is surely a file of this format."""

    def read(self, content: Content, asked: Asked, path: Path) -> Trace:
        """The trace in it; raises TraceError."""


_ALL: tuple[Reader, ...] = (
    AZURE, BURSTGPT, BAILIAN, MOONCAKE, OWN, WEKA, WEKA_TABLE, TRACELAB, VIDUR, LENGTHS, SPLITWISE, VLLM_BENCH,
    GUIDELLM, AIPERF, LITELLM, LITELLM_PAGE, OTEL, Pools(), TABLE,
)
READERS: dict[str, Reader] = {reader.name: reader for reader in _ALL}
MOST_ENTRIES, ALIKE = 10_000, 0.75
"""Files beside one that is not there whose names are looked at, and how alike a name must be."""


def load(
    name_or_path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    lenient: bool = False,
    limit: int | None = None,
    window: str | None = None,
    prompts: str | None = None,
    seed: int = 0,
) -> Trace:
    """The trace of that name, or in that file (plain, gzip or zstd).

    name_or_path: a bundled name (see `available`), that of a public trace that was fetched, "gen:FILE" with a spec to
        draw from, or a file; "./NAME" is always a file.
    format: one of READERS, to overrule what the content says.
    columns: column names by role (arrival, prompt, output, max_tokens, tenant, priority, session, think, id, parent)
        where they are not the customary ones. An empty name says that the file has no such column; without arrivals
        all requests come at 0.
    unit: "s", "ms", "us" or "ns", for times that are plain numbers. A date and time needs none.
    lenient: leave bad rows out and report them, instead of refusing the file.
    limit: stop after so many good rows of the file, before they are sorted.
    window: "10:00-11:00": only the requests of that time, counted from the midnight before the file's first row
        (UTC, or the zero of plain numbers); hours may exceed 24. The limit counts those inside.
    prompts: "cumulative" or "increments": whether a later turn's prompt has the turns before it, or only what is
        new, where the file says otherwise than its format does.
    seed: for stand-ins, and for formats that are drawn.

    Rows out of order are sorted by arrival, equal times in file order; the first arrival becomes 0.
    Raises TraceError, in one line: for a row with file, line, column, value and rule.

    >>> load("azure-conv-2023", limit=100)
    <Trace azure-conv-2023: 100 requests over 30.0 s, median prompt 1,010 and output 130 tokens>
    """
    asked = Asked(columns or {}, unit, lenient, limit, window, prompts, seed)
    if format is not None and format not in READERS:
        raise unknown("trace format", format, READERS)
    if is_drawn(name_or_path):
        if format or columns or unit or prompts or lenient:
            raise TraceError(f"{name_or_path} is drawn, not read: format, columns, unit, prompts and lenient are for "
                             "files")
        return _cut(drawn(str(name_or_path), seed), asked)
    found = catalogue().get(str(name_or_path))
    path = _existing(name_or_path) if found is None else _fetched(found)
    with content_of(path) as content:
        trace = _reader(format, content).read(content, asked, path)
    return trace if found is None else found.labelled(trace)


def _cut(trace: Trace, asked: Asked) -> Trace:
    """The part of a bundled trace that was asked for."""
    if asked.window is not None:
        whole, trace = trace, trace.between(*window_ns(asked.window))
        if not len(trace):
            ends = " to ".join(time_of_day(int(time)) for time in whole.arrival[[0, -1]])
            raise TraceError(f"{trace.name}: no requests in the window {asked.window}, for they come from {ends}")
    return trace if asked.limit is None else trace.head(asked.limit)


def _reader(format: str | None, content: Content) -> Reader:
    """The reader of that name, or the first that recognises the content, or the one for any table."""
    if format is not None:
        return READERS[format]
    return next((reader for reader in _ALL if reader.recognises(content)), TABLE)


def _fetched(found: Public) -> Path:
    """The file of a public trace, if it has been fetched."""
    if not found.here:
        raise TraceError(f"{found.name} is not here yet: batchsim trace fetch {found.name}")
    return found.path


def _existing(name: str | os.PathLike[str]) -> Path:
    """The path, if there is something there; otherwise an error with the nearest file or bundled name."""
    try:
        path = Path(name)
        if os.fspath(name) and path.exists():
            return path
    except (ValueError, OSError):
        pass  # a name that no file can have
    near = [*_beside(os.fspath(name)), *get_close_matches(str(name), [*names(), *catalogue()], n=1)]
    hint = f": did you mean {near[0]!r}?" if near else ""
    raise TraceError(f"no trace file or bundled trace {shown(str(name))}{hint} (bundled: {', '.join(names())})")


def _beside(name: str) -> list[str]:
    """The file of the same folder with the name most alike, as a path of the same kind; none where there is none."""
    folder, base = os.path.split(name)
    try:
        entries = sorted(os.listdir(folder or "."))[:MOST_ENTRIES]
    except (ValueError, OSError):
        return []
    near = [os.path.join(folder, each) for each in get_close_matches(base, entries, cutoff=ALIKE)]
    return [each for each in near if os.path.isfile(each)][:1]
