"""ServeGen's pools of clients: an archive or a folder of chunk-N-trace.csv and chunk-N-dataset.json.

Source: github.com/alibaba/ServeGen (arXiv:2505.09999). There are no rows of requests in it, so a trace is drawn
(`traces.pools`). A line of the CSV is start (s), requests a second, CV, family, shape and scale; a window without a
family is idle. Probabilities of lengths are text in the notation of a Python dict. Of multimodal requests only the
text counts. Every client is a tenant.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from traces.arrivals import MOST_REQUESTS, SECOND
from traces.errors import TraceError, plain, shown
from traces.pools import FAMILIES, Client, Lengths, Window, draw
from traces.readers.asked import Asked, window_ns
from traces.readers.content import Content, Members
from traces.readers.rows import BadRow
from traces.readers.text import json_object
from traces.report import ReadReport
from traces.trace import Trace

FILE = re.compile(r"(?:.*/)?chunk-(\d{1,9})-(trace\.csv|dataset\.json)", re.ASCII)
PAIRS = re.compile(r"\{ *(?:\d{1,15} *: *[\d.eE+-]{1,30} *(?:, *|(?=\})))*\}", re.ASCII)
PROMPT, OUTPUT = ("input_tokens", "text_tokens"), ("output_tokens",)
USUAL_WINDOW = 600 * SECOND
NOTES = (
    "drawn from rates and probabilities: prompts and outputs apart from each other, so they are not correlated",
    "each client has its published number of requests in each window",
)


class Pools:
    """The reader of such archives and folders."""

    name = "servegen"
    about = "ServeGen's pools of clients, an archive or a folder, drawn with --seed"

    def recognises(self, content: Content) -> bool:
        """Whether the first file is one of a pool."""
        return isinstance(content, Members) and FILE.fullmatch(content.keys[0]) is not None

    def read(self, content: Content, asked: Asked, path: Path) -> Trace:
        """The trace drawn from all clients."""
        if asked.columns or asked.unit or asked.prompts:
            raise TraceError(f"{content.label}: drawn from pools of clients, which have no columns to name")
        if not isinstance(content, Members):
            raise TraceError(f"{content.label}: no archive or folder of chunk-N-trace.csv and chunk-N-dataset.json")
        span = None if asked.window is None else window_ns(asked.window)
        drawn = draw(_clients(content), asked.seed, span, asked.limit)
        if drawn is None:
            raise TraceError(f"{content.label}: no requests{'' if span is None else f' in the window {asked.window}'}")
        arrival, prompt, output, owner = drawn
        names = {number: f"chunk-{number}" for number in set(owner.tolist())}
        return Trace(
            name=plain(path.name), arrival=arrival - arrival[0], prompt=prompt, output=output,
            tenant=tuple(names[number] for number in owner.tolist()), source=f"{content.label} (seed {asked.seed})",
            report=ReadReport(self.name, len(arrival), notes=NOTES),
        )


def _clients(content: Members) -> list[Client]:
    windows: dict[int, list[Window]] = {}
    lengths: dict[int, tuple[str, Mapping[int, Any]]] = {}
    for name, data in content.found:
        if (match := FILE.fullmatch(name)) is None:
            raise TraceError(f"{content.label}: {name} is no file of a pool (chunk-N-trace.csv, chunk-N-dataset.json)")
        where = f"{content.label}, {name}"
        try:
            text = data.decode()
        except UnicodeDecodeError as fault:
            raise TraceError(f"{where} is not UTF-8 ({fault.reason} at byte {fault.start})") from None
        if match[2] == "trace.csv":
            windows[int(match[1])] = list(_windows(where, text))
        else:
            lengths[int(match[1])] = where, _by_start(where, text)
    return [_client(content.label, number, windows[number], lengths) for number in sorted(windows) if windows[number]]


def _client(label: str, number: int, windows: list[Window], lengths: Mapping[int, tuple[str, Any]]) -> Client:
    if number not in lengths:
        raise TraceError(f"{label}: chunk-{number} has requests but no chunk-{number}-dataset.json with their lengths")
    where, fields = lengths[number]
    prompts, outputs = (_known(where, fields, names) for names in (PROMPT, OUTPUT))
    return Client(number, windows, prompts, outputs)


def _known(where: str, fields: Mapping[int, Any], names: tuple[str, ...]) -> list[tuple[int, Lengths]]:
    """The lengths by their start; those of a time without requests are all 0 and left out."""
    found = [(start, known) for start in sorted(fields) if (known := _lengths(where, fields[start], names)) is not None]
    if not found:
        raise TraceError(f"{where}: no {names[0]} with a probability above 0")
    return found


def _windows(where: str, text: str) -> Iterator[Window]:
    """The windows in which the client sends something; the last one is as long as the one before it."""
    rows = [_row(f"{where}, line {number}", row) for number, row in enumerate(csv.reader(text.splitlines()), 1) if row]
    starts = [start for start, *_ in rows]
    if any(later <= earlier for earlier, later in pairwise(starts)):
        raise TraceError(f"{where}: windows must follow each other in time")
    last = starts[-1] - starts[-2] if len(starts) > 1 else USUAL_WINDOW
    ends = [*starts[1:], *(start + last for start in starts[-1:])]
    for (start, rate, family, shape), end in zip(rows, ends, strict=True):
        count = round(rate * (end - start) / SECOND)
        if count > MOST_REQUESTS:
            raise TraceError(f"{where}: {count:,} requests in one window; rates are requests a second")
        if count and family:
            yield Window(start, end, count, family, shape)


def _row(where: str, row: list[str]) -> tuple[int, float, str, float]:
    """Start in ns, requests a second, family and shape of one line."""
    try:
        start, rate, _, family, shape, _ = row
        values = float(start), float(rate), float(shape)
        if not (0 <= values[0] < 1e9 and 0 <= values[1] < 1e9 and family in ("", *FAMILIES)):
            raise ValueError
        if family and not 1e-3 <= values[2] < 1e9:
            raise ValueError
    except ValueError:
        raise TraceError(f"{where}: {shown(','.join(row))} must hold start, rate, CV, family ({' or '.join(FAMILIES)} "
                         "or nothing), shape and scale") from None
    return round(values[0] * SECOND), values[1], family, values[2]


def _by_start(where: str, text: str) -> Mapping[int, Any]:
    """Fields of lengths, still as text, by the start of their window in ns."""
    try:
        found: Mapping[str, Any] = json_object(text)
        return {int(start) * SECOND: dict(fields) for start, fields in found.items()}
    except (ValueError, TypeError, BadRow):
        raise TraceError(f"{where} must be a JSON object of windows by their start in s") from None


def _lengths(where: str, fields: Mapping[str, Any], names: tuple[str, ...]) -> Lengths | None:
    """Tokens and probabilities of the first of these fields that is there; None where all probabilities are 0."""
    text = next((fields[name] for name in names if name in fields), None)
    if not isinstance(text, str) or not PAIRS.fullmatch(text.strip()):
        raise TraceError(f"{where}: {names[0]} must be text such as '{{45: 0.25, 46: 0.75}}', not {shown(text)}")
    pairs = [pair.split(":") for pair in text.strip(" {}").split(",") if pair.strip()]
    try:
        tokens, shares = [int(pair[0]) for pair in pairs], [float(pair[1]) for pair in pairs]
        return Lengths(np.array(tokens), np.array(shares)) if any(shares) else None
    except ValueError as fault:
        raise TraceError(f"{where}: {names[0]}: {fault}") from None
