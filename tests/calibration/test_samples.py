"""Samples are gone on with where they stopped, and a file that holds something else is left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.grid import Point
from calibration.samples import Sample, SampleFile
from simulator.errors import InputError

WHAT = {"model": "tiny", "seed": 0}
HEAD = b'{"model": "tiny", "seed": 0}\n'
GOOD = '{"pass": 0, "kernel": "qkv", "dims": [8], "us": [1.5], "bytes": 10, "flops": 20}\n'
WRONG = [GOOD.replace(*change) for change in (
    ("[8]", "[-8]"), ("[8]", "[8.5]"), ("[8]", "[true]"), ('"pass": 0', '"pass": -1'), ("[1.5]", "[]"),
    ("[1.5]", "[-1.5]"), ("[1.5]", '["1.5"]'), ("[1.5]", "[1e18]"), ("10", "-10"), ("20", "null"))]
"""Lines that hold no sample."""


def test_a_line_that_was_cut_off_is_timed_again(tmp_path: Path) -> None:
    path = tmp_path / "samples"
    with SampleFile(path, WHAT) as kept:
        kept.add(0, Point("qkv", (8,)), Sample((1.5, 2.0), 10.0, 20.0))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"pass": 0, "ker')
    with SampleFile(path, WHAT, resume=True) as kept:
        assert kept.points() == {Point("qkv", (8,)): [Sample((1.5, 2.0), 10.0, 20.0)]}
    assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"", b"no end of a line", b"[]\nrest", b"7\n", b"\xff\xfe\n", b"{}\n{}\n",
                                     b'{"model": "large"}\nthe last line of a diary',
                                     *(HEAD + line.encode() for line in WRONG)])
def test_a_file_of_something_else_is_refused_and_keeps_every_byte(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    said = "does not say what was calibrated|holds no samples of a calibration|was begun with model 'large'"
    with pytest.raises(InputError, match=rf"diary.txt ({said})"):
        SampleFile(path, WHAT, resume=True)
    assert path.read_bytes() == content


def test_the_line_that_these_are_made_of_is_a_sample(tmp_path: Path) -> None:
    (tmp_path / "samples").write_bytes(HEAD + GOOD.encode())
    found = SampleFile(tmp_path / "samples", WHAT, resume=True)
    assert found.points() == {Point("qkv", (8,)): [Sample((1.5,), 10, 20)]}
