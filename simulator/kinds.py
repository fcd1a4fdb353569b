"""Kinds: what a file looks like, and what takes it, for somebody who gave it to something else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import traces
from cost_models import CostModelError
from cost_models.strict import parse_yaml
from simulator.documents import json_of, readable, text_of
from simulator.errors import InputError
from simulator.scenario import FIELDS
from traces import Trace, TraceError


class Kind(NamedTuple):
    """A kind of file, what takes it, and the names by which it is known."""

    name: str
    taker: str
    names: frozenset[str]


PROFILE, SHAPE, SPEC = "a calibrated profile", "the shape of a model", "a trace spec"
BASELINE, RESULT, SCENARIO, SUMMARY, TRACE = "a baseline", "a result", "a scenario", "the records of a sweep", "a trace"
KINDS = (
    Kind(PROFILE, "--cost-model takes it", frozenset(["schema_version", "fit", "origin"])),
    Kind(SHAPE, "--model takes it", frozenset(["layers", "hidden", "heads"])),
    Kind(SPEC, "--trace gen:FILE takes it", frozenset(["prompt", "output", "arrivals"])),
    Kind(BASELINE, "batchsim regress --baseline takes it", frozenset(["format", "tolerances", "history"])),
    Kind(RESULT, "--scenario, batchsim validate and batchsim regress --result take it",
         frozenset(["backend", "completed", "duration"])),
    Kind("a study", "batchsim report takes the folder that it is in", frozenset(["account"])),
    Kind("the config.json of a model", "batchsim init --from 'vllm serve FOLDER' takes the folder that it is in",
         frozenset(["architectures", "num_hidden_layers"])),
)
"""Of one record."""
OF_A_SCENARIO = Kind(SCENARIO, "--scenario takes it", frozenset())
OF_RECORDS = Kind(SUMMARY, "batchsim plot takes the folder that it is in", frozenset(["run_number"]))
OF_A_TRACE = Kind(TRACE, "--trace takes it", frozenset())
TOKENS = ("tokens", "token_size", "length", "input_", "prompt")
"""What stands in the names of a trace's columns."""
MOST_CHARACTERS = (1 << 16, 1 << 22)
"""Of YAML and of JSON that is looked at; what is larger is not guessed at."""
MOST_FILES = 8
"""Of a folder, that are looked at."""
DRAWN, OURS = "gen:", "batchsim:"
"""What the name of a spec, and the backend of a result of ours, begin with."""


@contextmanager
def meant_as(wanted: str, path: object, *also: str) -> Iterator[None]:
    """Where a file is refused as one kind, and looks like another one, say that instead. What is no path is no file.

    `also` are kinds that are taken in its place.
    """
    try:
        yield
    except (InputError, TraceError, CostModelError) as error:
        found = kind_of(path) if isinstance(path, str | os.PathLike) else None
        if found is None or found.name in (wanted, *also):
            raise
        assert isinstance(path, str | os.PathLike)
        raise InputError(f"{readable(path)} looks like {found.name}, not {wanted}: {found.taker}") from error


def load_trace(name: str, **reading: Any) -> Trace:
    """`traces.load`, which says of a file of another kind what it is."""
    with meant_as(SPEC if name.startswith(DRAWN) else TRACE, name.removeprefix(DRAWN)):
        return traces.load(name, **reading)


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What a file looks like; None if like nothing that is known, or if it cannot be read. Of a folder see below."""
    if os.path.isdir(path):
        return _of_folder(path)
    try:
        text = text_of(path)
    except InputError:
        return None
    first = text[:MOST_CHARACTERS[0]].lstrip().partition("\n")[0]
    for part in (text, first):
        if (found := _of(_content(part))) is not None:
            return found
    return OF_A_TRACE if first[:1] not in ("{", "[") and _is_trace(first.split(",")) else None


def _of_folder(path: str | os.PathLike[str]) -> Kind | None:
    """What its files look like, where one of the first few is no trace."""
    try:
        files = [file for entry in sorted(os.listdir(path)) if os.path.isfile(file := os.path.join(path, entry))]
    except OSError:
        return None
    found = (kind_of(file) for file in files[:MOST_FILES])
    first = next((kind for kind in found if kind not in (None, OF_A_TRACE)), None)
    return first and Kind(f"a folder with {first.name} in it", "name the file that is meant", frozenset())


def _content(text: str) -> Any:
    for read in (json_of, parse_yaml):
        try:
            return read(text, "") if len(text) <= MOST_CHARACTERS[read is json_of] else None
        except (InputError, CostModelError):
            continue
    return None


def _of(content: Any) -> Kind | None:
    if isinstance(content, list):
        return OF_RECORDS if content and _has(content[0], OF_RECORDS) else None
    if not isinstance(content, Mapping) or not content:
        return None
    if found := next((kind for kind in KINDS if _has(content, kind)), None):
        return found
    if set(map(str, content)) <= set(FIELDS):
        return OF_A_SCENARIO
    return OF_A_TRACE if _is_trace(list(map(str, content))) else None


def _has(content: Any, kind: Kind) -> bool:
    return isinstance(content, Mapping) and kind.names <= content.keys()


def _is_trace(names: list[str]) -> bool:
    return sum(any(part in name.lower() for part in TOKENS) for name in names) >= 2
