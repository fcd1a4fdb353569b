"""Timed samples as they come in: kept line by line in a file, so that an interrupted calibration can go on.

The first line says what was being calibrated; every other one is a point in one pass.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from calibration.grid import Point
from simulator.documents import bytes_of, decoded, json_of
from simulator.errors import InputError

LARGEST = 1e18
"""No size and no time of a kernel is larger."""


@dataclass(frozen=True)
class Sample:
    """One point in one pass.

    Attributes:
        us: Microseconds of every repeat.
        bytes: That a call moves at least.
        flops: That it computes.
    """

    us: tuple[float, ...]
    bytes: float
    flops: float


def _sample(line: Mapping[str, Any]) -> tuple[tuple[int, Point], Sample]:
    """A point in a pass, and its sample. Raises TypeError, ValueError or KeyError for none."""
    dims, us = [tuple(line[name]) for name in ("dims", "us")]
    if not all(type(each) is int and 0 <= each < LARGEST for each in (line["pass"], *dims)):
        raise ValueError
    sizes = (*us, line["bytes"], line["flops"])
    if not us or not all(isinstance(each, int | float) and 0 <= each < LARGEST for each in sizes):
        raise ValueError
    return (line["pass"], Point(str(line["kernel"]), dims)), Sample(us, line["bytes"], line["flops"])


class SampleFile:
    """The samples of one calibration and the file that keeps them. Use it as a context.

    Args:
        path: The file, made anew unless `resume`.
        what: What is calibrated, and how; a file that says something else is not gone on with.
        resume: Go on with what the file has.

    Raises:
        InputError: There is nothing to go on with, or something else.
    """

    def __init__(self, path: Path, what: Mapping[str, Any], *, resume: bool = False) -> None:
        self._path, self._what = path, dict(what)
        self._found: dict[tuple[int, Point], Sample] = self._read() if resume else {}
        self._file: IO[str] | None = None

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a" if self._found else "w", encoding="utf-8")
        if not self._found:
            self._write(self._what)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()

    def __contains__(self, key: tuple[int, Point]) -> bool:
        return key in self._found

    def add(self, turn: int, point: Point, sample: Sample) -> None:
        """Keep a point of a pass."""
        self._found[turn, point] = sample
        self._write({"pass": turn, "kernel": point.kernel, "dims": point.dims, "us": [round(us, 3) for us in sample.us],
                     "bytes": sample.bytes, "flops": sample.flops})

    def points(self) -> dict[Point, list[Sample]]:
        """All passes of every point."""
        found: dict[Point, list[Sample]] = defaultdict(list)
        for (_, point), sample in sorted(self._found.items()):
            found[point].append(sample)
        return dict(found)

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def _read(self) -> dict[tuple[int, Point], Sample]:
        """What the file has; a last line that was cut off is dropped."""
        if not self._path.exists():
            raise InputError(f"{self._path}: nothing to resume: it is not there")
        content = bytes_of(self._path)
        whole = content[:content.rfind(b"\n") + 1]
        where = f"{self._path} holds no samples of a calibration"
        try:
            head, *lines = (json_of(line, where) for line in decoded(whole, where).splitlines())
            found = dict(map(_sample, lines))
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{where}: start without --resume") from None
        self._check(head)
        if whole != content:
            os.truncate(self._path, len(whole))
        return found

    def _check(self, head: Any) -> None:
        for key, value in self._what.items():
            if not isinstance(head, Mapping):
                raise InputError(f"{self._path} holds no samples of a calibration: start without --resume")
            if head.get(key) != value:
                raise InputError(f"{self._path} was begun with {key} {head.get(key)!r}, not {value!r}: say so again, "
                                 "or start without --resume")
