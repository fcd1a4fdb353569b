"""Recorded runs of real engines, to hold a simulation against.

    >>> from simulator.engine_runs import read_run
    >>> len(read_run("bench.json").ttft)
    3

A module a dialect: `vllm_bench`, `ours`, `llmservingsim`. Which one a file is in is found from what stands in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from simulator.documents import json_of, text_of
from simulator.engine_runs import llmservingsim, ours, vllm_bench
from simulator.engine_runs.run import EngineRun, Served, engine_run
from simulator.errors import InputError
from simulator.kinds import RESULT, meant_as

__all__ = ["DIALECTS", "EngineRun", "Served", "read_run"]

DIALECTS = (ours.NAME, vllm_bench.NAME, llmservingsim.NAME)
"""What can be read."""


def read_run(path: str | os.PathLike[str]) -> EngineRun:
    """The run in a file. Raises InputError, one line, if it is none or says what cannot be."""
    with meant_as(RESULT, path):
        return _read(str(path))


def _read(where: str) -> EngineRun:
    text = text_of(where)
    if (lines := _lines(text, where)) is not None:
        return engine_run(where, llmservingsim.NAME, llmservingsim.rows(lines), llmservingsim.MEASURED_FROM)
    record = json_of(text, where, nan=True) if text.lstrip()[:1] == "{" else None
    for dialect in (ours, vllm_bench):
        if isinstance(record, dict) and dialect.recognises(record):
            return engine_run(where, dialect.NAME, dialect.rows(where, record), dialect.MEASURED_FROM)
    raise InputError(f"{where}: is no recorded run that is known (known: {'; '.join(DIALECTS)})")


def _lines(text: str, where: str) -> Iterator[tuple[str, Any]] | None:
    """Each line and where it stands, if the first one tells of a request; else None."""
    lines = [(f"{where}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        first = json_of(lines[0][1], where) if lines else None
    except InputError:
        return None
    return ((place, json_of(line, place)) for place, line in lines) if llmservingsim.recognises(first) else None
