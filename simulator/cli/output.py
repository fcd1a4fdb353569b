"""A result directory: it replaces only what an earlier run wrote there, and holds no half-written file.

`manifest.json` lists each file with its checksum; a file that no longer has it is somebody's work. While files are
being replaced it lists old and new checksums, so that an interrupted run locks nobody out. Two commands that write into
one directory do so in turn, and its manifest lists the files of both.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from simulator.cli.console import as_json
from simulator.cli.turns import in_turn
from simulator.documents import document_of
from simulator.errors import InputError
from simulator.result import Result
from simulator.saved import MANIFEST, write_whole
from simulator.version import __version__

WRITER = "batchsim"
Content = bytes | Iterable[str]
"""Of a file; a text may come in pieces, so that it need never be in memory as one."""


class ResultDirectory:
    """Where a command writes.

    Args:
        path: The directory; made when the first file is written.
        force: Replace files that no earlier run wrote.
    """

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        if str(path).strip() in ("", "-") or "\0" in str(path):
            raise InputError(f"--result-dir must name a directory, not {str(path)!r}")
        self.path, self._force = Path(path), force

    def check(self, names: Iterable[str], outdated: Iterable[str] = ()) -> None:
        """Refuse, before any work is done, what `write` would refuse."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file, not a directory: give another --result-dir")
        _check_writable(self.path)
        with in_turn(self.path):    # or another command is replacing what is looked at
            self._known(names, outdated)

    def refuse_as_place_of(self, flag: str, path: Path, names: Iterable[str]) -> None:
        """Refuse a single file that this run would write over a file of the directory, or over its manifest."""
        real = path.resolve()
        if real in {(self.path / name).resolve() for name in (*names, MANIFEST)}:
            raise InputError(f"{flag} {path} is a file that this run writes itself: give another {flag}")

    def write(self, files: Mapping[str, Content], outdated: Iterable[str] = ()) -> None:
        """Write all files and the manifest; each appears whole or not at all.

        Of the `outdated` names, those that an earlier run wrote and that are not written anew are removed: they would
        go with its answer.
        """
        outdated = set(outdated) - set(files)
        self.check(files, outdated)
        self.path.mkdir(parents=True, exist_ok=True)
        with in_turn(self.path), closing(_Stage(self.path)) as stage:
            known = self._known(files, outdated)
            gone = outdated & known.keys()
            new = {name: {stage.add(name, content)} for name, content in files.items()}
            both = known | {name: known.get(name, set()) | checksums for name, checksums in new.items()}
            kept = {name: checksums for name, checksums in (known | new).items() if name not in gone}
            stage.add(MANIFEST, _listing(kept))
            write_whole(self.path / MANIFEST, _listing(both))
            for name in gone:
                (self.path / name).unlink(missing_ok=True)
            stage.move()

    def _known(self, names: Iterable[str], outdated: Iterable[str]) -> dict[str, set[str]]:
        """What the manifest lists; InputError where a name must not be replaced, or one that is outdated removed."""
        known = self._manifest()
        for name in (*names, *(name for name in outdated if name in known)):
            self._check_one(name, known)
        return known

    def _check_one(self, name: str, known: Mapping[str, set[str]]) -> None:
        path = self.path / name
        if name != Path(name).name or name.strip() in ("", "..", MANIFEST) or not name.isprintable():
            raise InputError(f"'{name}' is no name for a result file: give a plain name such as run.json")
        if path.is_dir():
            raise InputError(f"{path} is a directory: remove it, or give another --result-dir")
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise InputError(f"{path} is not a regular file: remove it, or give another --result-dir")
        if path.exists() and not self._force and _checksum_of(path) not in known.get(name, ()):
            raise InputError(f"{path} was not written by an earlier run, or was changed since: give --force to "
                             "replace it, or another --result-dir")

    def _manifest(self) -> dict[str, set[str]]:
        """Checksums by file name of what earlier runs wrote here."""
        path = self.path / MANIFEST
        if not path.exists():
            return {}
        if not path.is_file():
            raise InputError(f"{path} is not a regular file: remove it, or give another --result-dir")
        try:
            found: dict[str, Any] = document_of(path)
            if found["written_by"] == WRITER:
                return {str(name): set(str(checksums).split()) for name, checksums in found["sha256"].items()}
        except (InputError, TypeError, KeyError, AttributeError):
            pass
        if self._force:
            return {}
        raise InputError(f"{path} was not written by batchsim: give --force to replace it, or another --result-dir")


def _checksum_of(path: Path) -> str:
    """Of a file, however large."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listing(checksums: Mapping[str, set[str]]) -> bytes:
    """The manifest; of a file that is being replaced it has two checksums."""
    listed = {name: " ".join(sorted(known)) for name, known in sorted(checksums.items())}
    return as_json({"written_by": WRITER, "version": __version__, "sha256": listed}).encode()


class _Stage:
    """Files beside their places in a directory, until all of them are there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._places: dict[Path, Path] = {}

    def add(self, name: str, content: Content) -> str:
        """Write one; returns its checksum."""
        part, place = self._directory / f".{name}.{os.getpid()}.part", self._directory / name
        checksum = hashlib.sha256()
        self._places[part] = place
        try:
            with part.open("wb") as file:
                for piece in (content,) if isinstance(content, bytes) else (text.encode() for text in content):
                    file.write(piece)
                    checksum.update(piece)
        except OSError as error:
            error.filename = str(place)    # a full disk names none
            raise
        return checksum.hexdigest()

    def move(self) -> None:
        """Bring them to their places, the last one last."""
        for part, place in self._places.items():
            part.replace(place)

    def close(self) -> None:
        """Remove what has not been moved."""
        for part in self._places:
            part.unlink(missing_ok=True)


def _check_writable(path: Path) -> None:
    """Refuse a place below which nothing can be made."""
    there = next((each for each in (path, *path.parents) if each.exists()), Path())
    if not os.access(there, os.W_OK):
        raise InputError(f"{there} is not writable, so {path} cannot be written: give another place")


def free_path(flag: str, text: str, *, force: bool) -> Path:
    """The path of a single file, if it may be written there; whatever is wrong is said before any work is done.

    What a link leads to is replaced, and never the link.
    """
    path = Path(text)
    if not text.strip() or "\0" in text or path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{flag} must name a file in a directory that exists, not {text!r}")
    if text == "-":
        raise InputError(f"{flag} must name a file, not '-': --json prints to stdout")
    if os.path.lexists(path) and not path.is_file():
        raise InputError(f"{path} is not a regular file: remove it, or give another {flag}")
    if path.exists() and not force:
        raise InputError(f"{path} exists: give --force to replace it, or another {flag}")
    _check_writable(path.parent)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def run_name(policy: str, load: str) -> str:
    """The file of a run: the policy's name as far as a file can bear it, and the load."""
    return f"{bearable(policy) or 'policy'}-{load}.json"


def bearable(name: str) -> str:
    """A name as far as that of a file can bear it."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip(".-")


def detail_name(name: str) -> str:
    """The table of requests that goes with the file of a run."""
    return f"{name.removesuffix(Path(name).suffix)}.requests.csv"


def run_files(result: Result, name: str, *, detailed: bool, asked: Mapping[str, Any]) -> dict[str, Content]:
    """The files of a run: its JSON, and with `detailed` also a table of its requests."""
    files: dict[str, Content] = {name: result.json_pieces(detailed, **asked)}
    if detailed:
        files[detail_name(name)] = result.csv_pieces()
    return files
