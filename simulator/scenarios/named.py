"""The files that a scenario names, and their digests. It knows of no field what is in its file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import traces
from simulator.documents import DIGITS, MOST_BYTES, short_digest
from simulator.errors import Change
from simulator.policies.beside import beside
from traces.spec import files_in_spec
from traces.standins import OWN, names

MOST_FILES, MOST_IN_FOLDER = 100_000, 64 << 30
"""Files of a folder, and their bytes."""
MOST_SEEN = 10_000
"""Files of a folder that are looked at without being read."""
RECENT_NS = 2 * 10 ** 9
"""A file that was changed no longer ago is read anew each time."""


def digests(fields: Mapping[str, Any], known: Mapping[str, str], *, held: Mapping[str, str],
            large: bool = True) -> dict[str, dict[str, str]]:
    """By field, the digest of each file or folder that it names, by its path: the `known` one, else as it is now.

    What is not there has none; nor have, unless they are known or `large` is asked for, folders and files of more than
    256 MiB: until its reader has taken it, a folder may be a whole disk. `held`: see `paths_of`.
    """
    return {name: {path: digest for path in paths if (digest := known.get(path) or digest_now(path, large=large))}
            for name, paths in paths_of(fields, held).items()}


def paths_of(fields: Mapping[str, Any], held: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """By field, what it names that may be a file.

    Where the policy's file is among those `held`, so are its modules, whatever is beside it now.
    """
    return {"trace": [*_trace_files([fields.get("trace")])], "mix": [*_trace_files(fields.get("mix", ()))],
            "policy": _code(fields.get("policy"), held or {}), "model": [*_yaml(fields.get("model"))],
            "cost_model": [*_yaml(fields.get("cost_model"))]}


def altered(fields: Mapping[str, Any], held: Mapping[str, str]) -> Iterator[tuple[str, str, Change]]:
    """By field, the first of its files that is not as it was when those `held` were read, and how that is.

    A module that a policy would import now, and that was not there, is one of them.
    """
    for name, paths in paths_of(fields, held).items():
        known = ((name, path, how) for path in paths if path in held and (how := _change(path, held[path])))
        yield from islice(chain(known, _new(paths, held) if name == "policy" else ()), 1)


def _change(path: str, was: str) -> Change | None:
    now = digest_now(path)
    return None if now == was else "gone" if now is None else "changed"


def _new(code: list[str], held: Mapping[str, str]) -> Iterator[tuple[str, str, Change]]:
    """Modules that a policy whose file is held would import now, and that are not held with it."""
    if code and code[0] in held:
        yield from (("policy", path, "new") for path in beside(code[0])
                    if path not in held and digest_now(path, large=False))


def _trace_files(given: Any) -> Iterator[str]:
    """What is neither bundled nor public; a drawn one names its spec, and that the files with lengths."""
    for name in given:
        if isinstance(name, str) and not _is_known(name):
            yield (path := name.removeprefix(OWN))
            if name.startswith(OWN):
                yield from _behind(path, *as_it_is(path))


def _is_known(name: str) -> bool:
    return name in names() or name in traces.catalogue()


@lru_cache(maxsize=64)
def _behind(spec: str, *as_it_is: object) -> tuple[str, ...]:
    """The files that a spec names; none where it cannot be read, which is for its reader to complain of."""
    try:
        return files_in_spec(Path(spec)) if as_it_is else ()
    except traces.TraceError:
        return ()


def _code(policy: Any, held: Mapping[str, str]) -> list[str]:
    """A policy file, and the modules beside it that it imports: all sources that are held with it."""
    if not (isinstance(policy, str) and ".py" in policy):
        return []
    path = policy.rpartition(":")[0]
    modules = sorted(each for each in held if each.endswith(".py")) if path in held else beside(path)
    return [path, *(each for each in modules if each != path)]


def _yaml(name: Any) -> Iterator[str]:
    if isinstance(name, str) and name.endswith((".yaml", ".yml")):
        yield name


def digest_now(path: str, *, large: bool = True) -> str | None:
    """The digest of what is there; None if nothing is, or nothing that can be read."""
    try:
        return digest_of(path) if path and (large or _is_small(Path(path))) else None
    except (OSError, ValueError):
        return None    # it is for the reader to complain of it, also of a name that no file can have


def _is_small(place: Path) -> bool:
    return place.is_file() and place.stat().st_size <= MOST_BYTES


def as_it_is(path: str) -> tuple[object, ...]:
    """What tells a file from what it was before, or a folder by its files, without reading them; nothing if neither is
    there. Of a folder with very many files, the first ones found.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return tuple((str(each), as_it_is(str(each))) for each in islice(place.rglob("*"), MOST_SEEN)
                         if each.is_file())
        return _times(place.stat()) if place.is_file() else ()
    except (OSError, ValueError):
        return ()


def _times(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


def digest_of(path: str) -> str | None:
    """The first digits of the SHA-256 of a file, or of the names and digests of all files in a folder; None for what
    is neither, and for a folder with more in it than any trace has.
    """
    place = Path(path)
    if place.is_dir():
        there = list(islice(place.rglob("*"), MOST_FILES + 1))
        inside = sorted(each for each in there if each.is_file())
        if len(there) > MOST_FILES or sum(each.stat().st_size for each in inside) > MOST_IN_FOLDER:
            return None
        told = "".join(f"{each.relative_to(place).as_posix()} {digest_of(str(each))}\n" for each in inside)
        return short_digest(told.encode())
    if not place.is_file():
        return None
    stat = place.stat()
    if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) < RECENT_NS:
        return _digest(str(place))    # a coarse clock may give the next change the same time
    return _known_digest(os.path.abspath(place), *_times(stat))


@lru_cache(maxsize=1024)
def _known_digest(path: str, *as_it_is: int) -> str:
    """Of a file that is the same by its times, size and number; it need not be read again."""
    return _digest(path)


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:DIGITS]
