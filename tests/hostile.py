"""Files that mean harm, made by hand: what each holds, and which readers it is for.

`HOSTILE` says what stands in the file; `PLACES` are things in its place that are no file. They know no reader's rules.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import corpus

LOL = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x]",
                 *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]) + "\n"
DEEP = 100_000
MIB = 1 << 20
JSON_ENDS, YAML_ENDS = (".json", ".jsonl"), (".yaml", ".yml")


def any_file(name: str) -> bool:
    """For every reader."""
    return bool(name)


def of_yaml(name: str) -> bool:
    """For readers of YAML."""
    return name.endswith(YAML_ENDS)


def of_json(name: str) -> bool:
    """For readers of JSON, and of traces, which may be."""
    return name.endswith(JSON_ENDS) or name == "t"


def of_traces(name: str) -> bool:
    """For readers of traces."""
    return name in ("t", "t.gz")


@cache
def bomb(megabytes: int) -> bytes:
    """So many MiB of zeros in gzip, a thousandth of it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(packer.compress(bytes(MIB)) for _ in range(megabytes)), packer.flush()])


def tar(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    """An archive of one member that is not what it should be, and a good one."""
    sink, content = io.BytesIO(), json.dumps(corpus.WEKA).encode()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for member, of_kind in ((name, kind), ("good.json", tarfile.REGTYPE)):
            entry = tarfile.TarInfo(member)
            entry.type, entry.linkname = of_kind, link
            entry.size = len(content) if of_kind == tarfile.REGTYPE else 0
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


Made = Callable[[bytes], bytes]
"""From a good file to one that means harm."""
HOSTILE: Mapping[str, tuple[Callable[[str], bool], Made]] = {
    "nothing at all": (any_file, lambda good: b""),
    "blanks": (any_file, lambda good: b" \n\t\n"),
    "NUL bytes": (any_file, lambda good: bytes(1000)),
    "no UTF-8": (any_file, lambda good: b"\xff\xfe\xfd" * 50),
    "UTF-16": (any_file, lambda good: good.decode(errors="replace").encode("utf-16")),
    "UTF-16 without a mark": (any_file, lambda good: good.decode(errors="replace").encode("utf-16-le")),
    "a byte order mark": (any_file, lambda good: b"\xef\xbb\xbf" + good),
    "Windows line ends": (any_file, lambda good: good.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")),
    "line ends of old Macs": (any_file, lambda good: good.replace(b"\r\n", b"\n").replace(b"\n", b"\r")),
    "half of it": (any_file, lambda good: good[:len(good) // 2]),
    "its first line": (any_file, lambda good: good.partition(b"\n")[0] + b"\n"),
    "garbage at its end": (any_file, lambda good: good + b"\n\x00}]garbage"),
    "twice in a row": (any_file, lambda good: good + good),
    "escapes for a terminal": (any_file, lambda good: b"\x1b]0;owned\x07\x1b[31m: [red]\n"),
    "the source of a program": (any_file, lambda good: b"#!/bin/sh\nrm -rf /\n"),
    "a pickle": (any_file, lambda good: b"\x80\x04\x95\x1e\x00\x00\x00cos\nsystem\n(S'true'\ntR."),
    "a line of 4 MiB": (any_file, lambda good: b"x" * 4 * MIB),
    "YAML: a billion laughs": (of_yaml, lambda good: LOL.encode()),
    "YAML: an alias": (of_yaml, lambda good: good + b"\nx: &x 1\ny: *x\n"),
    "YAML: merged keys": (of_yaml, lambda good: b"x: &x {a: 1}\n<<: *x\n" + good),
    "YAML: a tag of Python": (of_yaml, lambda good: good + b"\nx: !!python/object/apply:os.system [true]\n"),
    "YAML: a tag of no type": (of_yaml, lambda good: good + b"\nx: !!int ''\ny: !!timestamp x\nz: !!bool x\n"),
    "YAML: a key twice": (of_yaml, lambda good: good + b"\n" + good),
    "YAML: a key that is a list": (of_yaml, lambda good: good + b"\n? [a, b]\n: 1\n"),
    "YAML: two documents": (of_yaml, lambda good: good + b"\n---\n" + good),
    "YAML: 2,000 keys": (of_yaml, lambda good: b"".join(b"k%d: 1\n" % n for n in range(2000))),
    "YAML: nested 100,000 deep": (of_yaml, lambda good: b"[" * DEEP),
    "YAML: a number of 10,000 digits": (of_yaml, lambda good: b"x: 0x" + b"f" * 10_000 + b"\n"),
    "JSON: nested 100,000 deep": (of_json, lambda good: b"[" * DEEP + b"]" * DEEP),
    "JSON: objects 100,000 deep": (of_json, lambda good: b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "JSON: a name twice": (of_json, lambda good: b'{"a": 1, "a": 2}\n'),
    "JSON: NaN": (of_json, lambda good: b'{"duration": NaN, "completed": Infinity, "backend": "batchsim:x"}\n'),
    "JSON: 1e999": (of_json, lambda good: b'{"duration": 1e999, "completed": 1e999, "backend": "batchsim:x"}\n'),
    "JSON: a number of 10,000 digits": (of_json, lambda good: b'{"duration": ' + b"9" * 10_000 + b"}\n"),
    "JSON: half a character": (of_json, lambda good: b'{"backend": "\\ud800", "duration": 1, "completed": 1}\n'),
    "gzip: cut off": (of_traces, lambda good: gzip.compress(corpus.MOONCAKE, mtime=0)[:-9]),
    "gzip: 256 MiB of zeros in 256 KiB": (of_traces, lambda good: bomb(256)),
    "gzip: within gzip": (of_traces, lambda good: gzip.compress(gzip.compress(corpus.MOONCAKE))),
    "tar: a name that climbs out": (of_traces, lambda good: tar("../../x.json")),
    "tar: an absolute name": (of_traces, lambda good: tar("/etc/x.json")),
    "tar: a link out of it": (of_traces, lambda good: tar("x.json", tarfile.SYMTYPE, "/etc/passwd")),
    "tar: a device": (of_traces, lambda good: tar("x.json", tarfile.CHRTYPE)),
    "Parquet: its first bytes": (of_traces, lambda good: b"PAR1" + bytes(100)),
    "zstd: its first bytes": (of_traces, lambda good: b"\x28\xb5\x2f\xfd" + bytes(100)),
}
"""What stands in the file: for which readers, by the name of their file, and how it is made from a good one."""


def _fifo(path: Path) -> None:
    os.mkfifo(path)


PLACES: Mapping[str, Callable[[Path], object]] = {
    "nothing there": lambda path: None,
    "a folder": lambda path: path.mkdir(),
    "a pipe that nobody writes to": _fifo,
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
}
"""What stands in the place of the file."""
