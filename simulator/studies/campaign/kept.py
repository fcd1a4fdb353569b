"""Kept: the text of a point's file, and whether what a file says is to be believed. It knows no directory.

A file is taken for a point only if it is whole, unchanged, of this version, and of all that is asked for now.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from simulator.documents import decoded, json_of, quoted
from simulator.errors import InputError
from simulator.saved import result_of
from simulator.scenario import FIELDS, Scenario
from simulator.scenarios.held import files_of, unread
from simulator.scenarios.recording import FILES, IN_MEMORY, record
from simulator.version import __version__

PARTS = ("point", "identity", "scenario", "simulator_version", "value", "sha256")
"""What a file holds: the key of the point, what stands for all that was asked, the record of it, who measured it, what
came of it, and the checksum of all that.
"""
BESIDE = ("trace", "reading", "mix", FILES, IN_MEMORY)
"""Of a record, what the identity tells in another way: by the digests of the trace and the files."""


def identity(scenario: Scenario, what: str = "") -> str:
    """16 hex digits that stand for all fields, the files that some of them name, and what is measured."""
    fields = {name: getattr(scenario, name) for name in FIELDS}
    if (trace := scenario.read) is not None:
        fields |= {"trace": (trace.name, trace.digest), "reading": {}, "mix": tuple(scenario.mix.values())}
    told = repr((__version__, what, fields, files_of(scenario, unread(scenario))))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def text_of_point(key: str, identity: str, scenario: Scenario, value: Any) -> str:
    """The text of its file."""
    told = _plain(dict(zip(PARTS, (key, identity, record(scenario), __version__, value), strict=False)))
    return json.dumps(told | {PARTS[-1]: _checksum(told)}, indent=1, allow_nan=False) + "\n"


def value_in(content: bytes, where: str, identity: str, scenario: Scenario) -> dict[str, Any]:
    """What this scenario came to. Raises InputError, which begins with `where`, for what does not say that."""
    try:
        told = json_of(decoded(content, where), where)
    except InputError:
        told = None
    if not isinstance(told, dict) or tuple(told) != PARTS:
        raise InputError(f"{where}: is half-written, or not ours")
    if told["simulator_version"] != __version__:
        raise InputError(f"{where}: is of batchsim {quoted(told['simulator_version'])}, and this is {__version__}")
    if told["sha256"] != _checksum(told):
        raise InputError(f"{where}: was changed since it was written")
    if told["identity"] != identity or _compared(told["scenario"]) != _compared(_plain(record(scenario))):
        raise InputError(f"{where}: holds another point than its name says")
    return result_of(where, told["value"])


def _compared(told: Any) -> Any:
    return {name: value for name, value in told.items() if name not in BESIDE} if isinstance(told, dict) else None


def _plain(value: Any) -> Any:
    """As it will be read."""
    return json.loads(json.dumps(value, allow_nan=False, default=str))


def _checksum(told: Mapping[str, Any]) -> str:
    """Of all parts but the last one, however they are laid out."""
    text = json.dumps([told[part] for part in PARTS[:-1]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
