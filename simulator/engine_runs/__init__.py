"""Recorded runs of real engines, to hold a simulation against.

    >>> from simulator.engine_runs import read_run
    >>> len(read_run("bench.json").ttft)
    3

A module a dialect: `vllm_bench`, `ours`, `llmservingsim`. Which one a file is in is found from what stands in it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from simulator.engine_runs import llmservingsim, ours, vllm_bench
from simulator.engine_runs.run import EngineRun, Served, engine_run
from simulator.errors import InputError

__all__ = ["DIALECTS", "EngineRun", "Served", "read_run"]

DIALECTS = (ours.NAME, vllm_bench.NAME, llmservingsim.NAME)
"""What can be read."""


def read_run(path: str | os.PathLike[str]) -> EngineRun:
    """The run in a file. Raises InputError, one line, if it is none or says what cannot be."""
    where = str(path)
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: is not a text file") from None
    record = _json(text)
    if isinstance(record, dict):
        for dialect in (ours, vllm_bench):
            if dialect.recognises(record):
                return engine_run(where, dialect.NAME, dialect.rows(where, record), dialect.MEASURED_FROM)
    lines = [(f"{where}, line {number}", line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and llmservingsim.recognises(_json(lines[0][1])):
        rows = llmservingsim.rows((place, _line(place, line)) for place, line in lines)
        return engine_run(where, llmservingsim.NAME, rows, llmservingsim.MEASURED_FROM)
    raise InputError(f"{where}: is no recorded run that is known (known: {'; '.join(DIALECTS)})")


def _line(where: str, text: str) -> Any:
    found = _json(text)
    if found is None:
        raise InputError(f"{where}: is not JSON")
    return found


def _json(text: str) -> Any:
    """What the text says; None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
