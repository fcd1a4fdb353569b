"""Reading a scenario from a file: YAML, or the JSON of a saved result, which carries its own.

Files that a scenario names are looked for from where one stands, as those of a flag are. It runs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.documents import json_of, text_of
from simulator.errors import Change, InputError, choose
from simulator.kinds import BASELINE, OURS, RESULT, SCENARIO, meant_as
from simulator.scenario import FIELDS, Scenario, scenario_of
from simulator.scenarios.named import altered, paths_of
from simulator.scenarios.recording import FILES, IN_MEMORY
from simulator.scenarios.values import fitted
from simulator.scenarios.yaml_text import parse

OWNERS = {"reading": "trace", "knobs": "policy"}
CHANGES: dict[Change, str] = {
    "changed": "has changed since this result was written: restore it",
    "gone": "was there when this result was written, and is not here now: restore it",
    "new": "was not there when this result was written: take it away"}
RIVALS = {"rate_scale": "request_rate", "request_rate": "rate_scale"}


@dataclass(frozen=True)
class ScenarioFile:
    """What a file says of a scenario.

    Attributes:
        path: The file.
        fields: Those that it sets.
        files: Digests of the files that these name, by path, as they were when a result was written.
        in_memory: Fields that were objects of a Python program, so that no file says them.
    """

    path: str
    fields: Mapping[str, Any]
    files: Mapping[str, str]
    in_memory: tuple[str, ...]

    def with_changes(self, changes: Mapping[str, Any], but: Iterable[str] = ()) -> dict[str, Any]:
        """The fields of this file with some replaced, and without those named in `but`.

        Another trace is read in its own way, another policy has knobs of its own, and request_rate and rate_scale
        exclude each other. Raises InputError where what was not replaced cannot be had again: see `check`.
        """
        kept = {name: value for name, value in self.fields.items()
                if name not in but and name not in changes and not _outdated(name, changes, self.fields)}
        self.check(*(name for name in (*kept, *self.in_memory) if name not in changes and name not in but))
        return {**kept, **changes}

    def check(self, *names: str) -> None:
        """Refuse those of these fields that were in memory, or whose file has changed since the result was written."""
        for name in names:
            if name in self.in_memory:
                raise InputError(f"{self.path}: the {name} of this result was an object in memory, which no file "
                                 f"holds: give --{name.replace('_', '-')}")
        told = {name: self.fields[name] for name in names if name in self.fields} if self.files else {}
        now = paths_of(told)
        for name, path, how in altered(told, self.files):
            if how != "gone" or path not in now[name]:    # of what is still named its reader tells
                raise InputError(f"{self.path}: {path} {CHANGES[how]}, or give {_flag(name, self.fields[name])} to "
                                 "take it as it is")

    def scenario(self, **changes: Any) -> Scenario:
        """The scenario, with some fields replaced."""
        return scenario_of(**self.with_changes(changes))


def _flag(name: str, value: Any) -> str:
    """The flag that says a field anew."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={number:g}" for key, number in value.items() if isinstance(number, int | float))
    return f"{flag} {value}" if isinstance(value, str) else flag


def _outdated(name: str, changes: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether a field goes with another one that is replaced."""
    if RIVALS.get(name) in changes:
        return True
    owner = OWNERS.get(name)
    return owner is not None and owner in changes and changes[owner] != fields.get(owner, getattr(Scenario, owner))


def read_scenario(path: str | os.PathLike[str]) -> ScenarioFile:
    """Read a scenario from YAML, or from the JSON of a saved result.

    Raises InputError, one line, for a key that no scenario has, a value that cannot be, and text that is neither.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"read_scenario takes the path of a file, not a {type(path).__name__}: sim.Scenario(**fields) "
                         "takes fields")
    with meant_as(SCENARIO, path, BASELINE, RESULT):
        return _read(os.fspath(path))


def _read(where: str) -> ScenarioFile:
    content, lines = _content(Path(where), where)
    content = _only_scenario(content, where)
    files, in_memory = content.pop(FILES, {}), content.pop(IN_MEMORY, [])
    if not isinstance(files, Mapping) or not isinstance(in_memory, list):
        raise InputError(f"{where}: {FILES} must map paths to digests, and {IN_MEMORY} must list fields")
    files = {str(path): digest for path, digest in files.items()}
    return ScenarioFile(where, _fields(content, lines, where), files, tuple(map(str, in_memory)))


def _fields(content: Mapping[str, Any], lines: Mapping[str, int], where: str) -> dict[str, Any]:
    """The fields that are set, each as its kind of value; together they make a scenario."""
    for name in content:
        _at(where, lines.get(name), choose, "key", name, FIELDS, "batchsim init -o scenario.yaml")
    fields = {name: _at(where, lines.get(name), fitted, name, value) for name, value in content.items()
              if value is not None}
    try:
        Scenario(**fields)
    except InputError as error:
        name = str(error).partition(" ")[0]
        raise InputError(f"{_place(where, lines.get(name))}: {error}") from None
    return fields


def _content(path: Path, where: str) -> tuple[Any, dict[str, int]]:
    """What a file holds, and the lines of the keys at its top."""
    text = text_of(path, where)
    if text.lstrip().startswith(("{", "[")) and path.suffix not in (".yaml", ".yml"):
        return json_of(text, where), {}
    return parse(text, where)


def _only_scenario(content: Any, where: str) -> dict[str, Any]:
    """The scenario itself, where it stands among other things in a saved result."""
    if content is None:
        return {}
    if isinstance(content, Mapping) and isinstance(content.get("scenario"), Mapping):
        content = content["scenario"]
    elif isinstance(content, Mapping) and not str(content.get("backend", OURS)).startswith(OURS):
        raise InputError(f"{where}: holds what another tool measured, without a scenario: batchsim validate takes it")
    elif isinstance(content, Mapping) and "backend" in content:
        raise InputError(f"{where}: holds a result without its scenario: run it again with this version")
    if not isinstance(content, Mapping):
        raise InputError(f"{where}: must map fields of a scenario to values: `batchsim init` writes an example")
    return dict(content)


def _at(where: str, line: int | None, check: Any, *given: Any) -> Any:
    """What a check gives, with the place in front of its complaint."""
    try:
        return check(*given)
    except InputError as error:
        raise InputError(f"{_place(where, line)}: {error}") from None


def _place(where: str, line: int | None) -> str:
    return where if line is None else f"{where}, line {line}"
