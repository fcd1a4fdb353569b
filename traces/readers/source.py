"""An open trace file as a stream of bytes: plain, gzip or zstd, recognised by its first bytes.

It turns every fault of the file system or of the compression into one TraceError, and it bounds what a small file
may expand to. It knows nothing of rows.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, cast

from traces.errors import TraceError, plain

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

FREE_BYTES = 64 << 20
"""So much may come out of a compressed file whatever its size."""
MOST_EXPANSION = 250
"""Bytes from one compressed byte beyond that; traces reach some 50, gzip at most 1,032."""
LONGEST_LINE = 256 << 20
"""Bytes of one line or one JSON document."""


class TooLarge(Exception):
    """What is read exceeds a bound; the message reads on after the file's name."""


class Bounded(io.RawIOBase):
    """Bytes of `stream` as long as they stay within bounds: of `packed`, the file they come from, and of a line."""

    def __init__(self, stream: Any, packed: IO[bytes] | None) -> None:
        self._stream, self._packed = stream, packed
        self._read = self._line = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as there is something; whoever peeks then sees enough."""
        view, filled = memoryview(buffer), 0
        while filled < len(view) and (part := self._stream.read(len(view) - filled)):
            view[filled:filled + len(part)] = part
            filled += len(part)
        self._check(view[:filled])
        return filled

    def _check(self, part: memoryview) -> None:
        self._read += len(part)
        end = bytes(part).rfind(b"\n")
        self._line = self._line + len(part) if end < 0 else len(part) - end
        if self._line > LONGEST_LINE:
            raise TooLarge(f"holds a line of more than {LONGEST_LINE >> 20} MiB")
        if self._packed is not None and self._read > max(FREE_BYTES, MOST_EXPANSION * self._packed.tell()):
            raise TooLarge(f"expands to more than {MOST_EXPANSION} times its size, as no trace does; unpack it first")


class Lines:
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

    def place(self, before: int) -> str:
        """Where the line stands that was taken `before` lines ago."""
        return f"line {self.number - before}"

    def rest(self) -> bytes:
        """All that has not been taken; raises TooLarge."""
        with one_line_errors(self.label):
            start = b"".join(self._ahead)
            return start + read_all(self._stream, LONGEST_LINE - len(start))


def read_all(stream: IO[bytes], most: int) -> bytes:
    """The rest of a stream; raises TooLarge for more than `most` bytes."""
    content = stream.read(max(most, 0) + 1)
    if len(content) > most:
        raise TooLarge(f"holds a document of more than {LONGEST_LINE >> 20} MiB")
    return content


@contextmanager
def one_line_errors(label: str) -> Iterator[None]:
    """Turn what opening and reading may raise into a TraceError that names the file."""
    try:
        yield
    except TooLarge as bound:
        raise TraceError(f"{label}: {bound}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise TraceError(f"{label}: damaged gzip data ({plain(str(fault))})") from None
    except tarfile.TarError as fault:
        raise TraceError(f"{label}: damaged tar archive ({plain(str(fault))})") from None
    except OSError as fault:
        raise TraceError(f"{label}: cannot be read ({fault.strerror or fault})") from None
    except Exception as fault:
        if type(fault).__name__ != "ZstdError":    # of whichever package unpacks it
            raise
        raise TraceError(f"{label}: damaged zstd data ({plain(str(fault))})") from None


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open `path` for reading, unpacked and without a byte order mark."""
    label = plain(str(path))
    with one_line_errors(label):
        if not S_ISREG(path.stat().st_mode):
            raise TraceError(f"{label}: is no regular file: give one, such as a copy of what comes from there")
        raw = path.open("rb")
    with raw:
        with one_line_errors(label):
            stream: Any = io.BufferedReader(_unpacked(raw, label), 1 << 16)
            if stream.peek(3).startswith(BYTE_ORDER_MARK):
                stream.read(3)
        yield stream


def _unpacked(raw: io.BufferedReader, label: str) -> Bounded:
    magic = raw.peek(4)
    if magic.startswith(GZIP_MAGIC):
        return Bounded(gzip.GzipFile(fileobj=raw), raw)
    if magic.startswith(ZSTD_MAGIC):
        return Bounded(_zstd(raw, label), raw)
    return Bounded(raw, None)


def _zstd(raw: io.BufferedReader, label: str) -> Any:
    """A reader of zstd frames, of the standard library or of the package `zstandard`."""
    try:
        from compression import zstd
    except ImportError:
        pass
    else:
        return zstd.ZstdFile(raw)
    try:
        import zstandard
    except ImportError:
        raise TraceError(f"{label}: zstd data; pip install 'batchsim[zstd]' reads it, or unpack it first") from None
    return cast(Any, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False))
