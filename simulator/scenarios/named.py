"""The files that a scenario names, and their digests. It knows of no field what is in its file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import traces
from traces.standins import names

DIGITS = 16


def digests(fields: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By field, the digest of each file or folder that it names and that is there, by its path."""
    named = {"trace": _trace_files([fields.get("trace")]), "mix": _trace_files(fields.get("mix", ())),
             "policy": _code(fields.get("policy")), "model": _yaml(fields.get("model")),
             "cost_model": _yaml(fields.get("cost_model"))}
    return {name: {path: digest_of(path) for path in paths if _exists(path)} for name, paths in named.items()}


def _trace_files(given: Any) -> Iterator[str]:
    """What is neither bundled nor public; a drawn one names its spec."""
    for name in given:
        if isinstance(name, str) and _exists(path := name.removeprefix("gen:")) and not _is_known(name):
            yield path


def _is_known(name: str) -> bool:
    return name in names() or name in traces.catalogue()


def _code(policy: Any) -> Iterator[str]:
    if isinstance(policy, str) and ".py" in policy:
        yield policy.rpartition(":")[0]


def _yaml(name: Any) -> Iterator[str]:
    if isinstance(name, str) and name.endswith((".yaml", ".yml")):
        yield name


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False    # a name that no file can have


def digest_of(path: str) -> str:
    """The first digits of the SHA-256 of a file, or of the names and digests of all files in a folder."""
    place = Path(path)
    if place.is_dir():
        inside = sorted(each for each in place.rglob("*") if each.is_file())
        told = "".join(f"{each.relative_to(place).as_posix()} {digest_of(str(each))}\n" for each in inside)
        return hashlib.sha256(told.encode()).hexdigest()[:DIGITS]
    stat = place.stat()
    return _digest(str(place.resolve()), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _digest(path: str, changed: int, size: int) -> str:
    """Of a file as it is at that time; several results of one command need not read it again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
