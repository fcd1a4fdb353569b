"""Members of a tar archive, or files of a folder, one after the other; nothing is ever written to the disk.

A member is refused if its name points outside of the archive; links and devices are passed over. What the members
hold is not known here.
"""

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from traces.errors import TraceError, plain
from traces.readers.source import LONGEST_LINE, one_line_errors, opened, read_all


class Member(NamedTuple):
    """One file: its path inside of the archive, and all of it."""

    name: str
    content: bytes


def is_tar(start: bytes) -> bool:
    """Whether a file that starts so is a tar archive."""
    return start[257:262] == b"ustar"


def members(stream: IO[bytes], label: str) -> Iterator[Member]:
    """The regular files of the archive in `stream`, in order."""
    with one_line_errors(label), tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            if not entry.isfile() or (file := archive.extractfile(entry)) is None:
                continue
            name = plain(entry.name)
            if PurePosixPath(entry.name).is_absolute() or ".." in PurePosixPath(entry.name).parts:
                raise TraceError(f"{label}: member {name} points outside of the archive")
            yield Member(name, read_all(file, LONGEST_LINE))


def members_of_folder(path: Path, label: str) -> Iterator[Member]:
    """The files of a folder by name, unpacked; folders in it are passed over."""
    with one_line_errors(label):
        files = sorted(entry for entry in path.iterdir() if entry.is_file())
    for file in files:
        with opened(file) as stream, one_line_errors(plain(str(file))):
            content = read_all(stream, LONGEST_LINE)
        yield Member(plain(file.name), content)
