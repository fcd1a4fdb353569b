"""An open trace file as numbered lines of bytes: plain or gzip, with or without a byte order mark.

It turns every fault of the file system or of the compression into one TraceError. It knows nothing of rows.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, cast

from traces.errors import TraceError, plain

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source:
    """Lines of one file, in order. `number` is the line number of the next one, counted from 1."""

    def __init__(self, label: str, stream: IO[bytes]) -> None:
        self.label = label
        self.number = 1
        self._stream = stream
        self._ahead: list[bytes] = []

    def take(self, n: int) -> list[bytes]:
        """The next `n` lines with their endings, fewer at the end of the file."""
        lines = self.peek(n)
        del self._ahead[:n]
        self.number += len(lines)
        return lines

    def peek(self, n: int) -> list[bytes]:
        """The same lines, which stay to be taken."""
        with one_line_errors(self.label):
            self._ahead += islice(self._stream, max(n - len(self._ahead), 0))
        return self._ahead[:n]


@contextmanager
def one_line_errors(label: str) -> Iterator[None]:
    """Turn what opening and reading may raise into a TraceError that names the file."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise TraceError(f"{label}: damaged gzip data ({fault})") from None
    except OSError as fault:
        raise TraceError(f"{label}: cannot be read ({fault.strerror or fault})") from None


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """Open `path` for reading; gzip is recognised by its first two bytes."""
    label = plain(str(path))
    with one_line_errors(label):
        raw = path.open("rb")
    with raw:
        with one_line_errors(label):
            stream = _unpacked(raw)
            if stream.peek(3).startswith(BYTE_ORDER_MARK):
                stream.read(3)
        yield Source(label, stream)


def _unpacked(raw: io.BufferedReader) -> io.BufferedReader:
    if not raw.peek(2).startswith(GZIP_MAGIC):
        return raw
    return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw)))
