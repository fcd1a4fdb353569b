"""Baseline: a side that is kept in a file, with its tolerances and with what was accepted since. It compares nothing.

The file has the scenario, so that `--scenario BASELINE` runs it, and `read_scenario` reads it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from simulator.documents import document_of, quoted, readable
from simulator.errors import InputError
from simulator.kinds import BASELINE, RESULT, meant_as
from simulator.plausible import check
from simulator.saved import write_whole
from simulator.scenarios import read_scenario
from simulator.scenarios.recording import IN_MEMORY
from simulator.studies.regression.recorded import read_side
from simulator.studies.regression.side import Side, number
from simulator.studies.regression.tolerances import stated
from simulator.summary import date
from simulator.version import __version__

FORMAT, FORMAT_VERSION = "batchsim baseline", 1
MOST_SPREAD = 100
"""How far measurements may lie apart, as a share of their mean: as a hundred of which one is not 0."""
MAPPINGS = ("definitions", "conditions", "origin", "spread")
Entry = Mapping[str, Any]
"""Of the history: date, version of batchsim, reason, and by metric what it was and what it became."""


@dataclass(frozen=True)
class Baseline:
    """What a run must come to.

    Attributes:
        path: The file.
        side: What it came to when it was saved, or last accepted.
        tolerances: As they were stated: by metric, name of the JSON, or "all".
        history: How it came about, oldest first.
        kept: Whether the file is a baseline; else it is a plain result, which accepts nothing.
    """

    path: str
    side: Side
    tolerances: Mapping[str, str]
    history: tuple[Entry, ...] = ()
    kept: bool = True

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return Path(readable(self.path)).stem

    def to_json(self) -> str:
        """The file's text."""
        side = asdict(self.side)
        scenario, notes = side.pop("scenario"), side.pop("notes")
        document = {"format": FORMAT, "format_version": FORMAT_VERSION, **side, "notes": list(notes),
                    "tolerances": dict(self.tolerances), "history": list(self.history), "scenario": scenario}
        return json.dumps(document, indent=1, allow_nan=False) + "\n"

    def write(self) -> None:
        """Write the file, whole or not at all; where it is a link, the file that it leads to."""
        write_whole(Path(self.path).resolve(), self.to_json())

    def accepted(self, side: Side, reason: str, changes: Mapping[str, Sequence[float | None]]) -> Baseline:
        """The same with another side, and with why in its history."""
        return replace(self, side=side, history=(*self.history, entry(reason, changes)))


def entry(reason: str, changes: Mapping[str, Sequence[float | None]] | None = None) -> Entry:
    """An entry of a history, of today. Raises InputError for a reason that is none."""
    if not reason.strip():
        raise InputError("a change is accepted for a reason: give --accept 'why it is right'")
    return {"date": date(), "simulator_version": __version__, "reason": reason.strip(),
            "changes": {name: list(values) for name, values in (changes or {}).items()}}


def new_baseline(path: str | os.PathLike[str], side: Side, texts: Mapping[str, str]) -> Baseline:
    """A baseline that nobody has written yet. Raises InputError for one that could not be run again."""
    stated(texts)
    if side.scenario is not None and side.scenario.get(IN_MEMORY):
        raise InputError(f"the {' and '.join(side.scenario[IN_MEMORY])} of this run is an object in memory, which no "
                         "file holds: give it by name or as a file")
    return Baseline(os.fspath(path), side, dict(texts), (entry("saved"),))


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """The baseline in a file, or a result that stands for one. Raises InputError, one line."""
    with meant_as(BASELINE, path, RESULT):
        return _read(os.fspath(path))


def _read(where: str) -> Baseline:
    document = document_of(where, nan=True)
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        return Baseline(where, read_side(where), {}, kept=False)
    if document.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{where}: is a baseline of format {document.get('format_version')!r}, and this version reads "
                         f"{FORMAT_VERSION}: save it again")
    try:
        return _baseline(where, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: is a damaged baseline ({type(error).__name__}: {error}): restore it, or save it "
                         "again") from None


def _baseline(where: str, document: Mapping[str, Any]) -> Baseline:
    metrics, told = dict(document["metrics"]), {name: dict(document[name]) for name in MAPPINGS}
    _check_numbers(where, metrics)
    check(metrics, where)
    for name, value in (*told["spread"].items(), ("step_error", told["origin"].get("step_error") or 0.0)):
        if number(value) is None or not 0 <= value <= MOST_SPREAD:
            raise InputError(f"{where}: '{name}' must scatter by a share from 0 to {MOST_SPREAD}, not {quoted(value)}")
    if document["kind"] not in ("simulated", "measured"):
        raise InputError(f"{where}: its kind must be simulated or measured, not {document['kind']!r}")
    side = Side(document["kind"], metrics, **told, scenario=document["scenario"],
                notes=tuple(map(str, document["notes"])))
    if not isinstance(side.origin.get("effective", {}), Mapping):
        raise TypeError("what was in force must be a mapping")
    if side.scenario is not None:
        read_scenario(where)    # says what is wrong with it
    texts = {name: str(text) for name, text in document["tolerances"].items()}
    stated(texts)
    return Baseline(where, side, texts, tuple(map(dict, document["history"])))


def _check_numbers(where: str, found: Mapping[str, Any]) -> None:
    for name, value in found.items():
        if value is not None and number(value) is None:
            raise InputError(f"{where}: '{name}' must be a number or null, not {value!r}")
