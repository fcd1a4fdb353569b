"""What files may be packed in, and what they may not expand to."""

import gzip
import io
import json
import sys
import tarfile
import tracemalloc
from types import SimpleNamespace
from unittest import mock

import pytest

from traces import TraceError, load
from traces.readers import source

ROWS = "arrival,prompt,output\n0,1,1\n1,2,2\n2,3,3\n"


def test_zstd_reads_like_plain_text(write):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(ROWS.encode())
    assert load(write(packed + packed[:0]), unit="s").digest == load(write(ROWS, "p"), unit="s").digest
    two = zstandard.ZstdCompressor().compress(b"3,4,4\n")
    assert len(load(write(packed + two), unit="s")) == 4


@pytest.mark.parametrize("cut", [5, 20])
def test_damaged_zstd_is_named(write, cut):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor(level=1).compress(ROWS.encode() * 2000)
    with pytest.raises(TraceError, match=r"damaged zstd data|the file is empty"):
        load(write(packed[:cut] + b"\xff" * 50), unit="s")


def test_without_a_package_for_zstd_the_next_move_is_told(write):
    with (mock.patch.dict(sys.modules, {"zstandard": None, "compression": None}),
          pytest.raises(TraceError, match=r"pip install 'batchsim\[zstd\]' reads it, or unpack it first")):
        load(write(b"\x28\xb5\x2f\xfd" + b"x" * 20))


def test_the_standard_library_unpacks_zstd_where_it_can(write):
    """It can from Python 3.14 on."""
    own = SimpleNamespace(zstd=SimpleNamespace(ZstdFile=lambda raw: io.BytesIO(ROWS.encode())))
    with mock.patch.dict(sys.modules, {"zstandard": None, "compression": own}):
        assert load(write(b"\x28\xb5\x2f\xfd"), unit="s").prompt.tolist() == [1, 2, 3]


def bomb(write, row: bytes, monkeypatch):
    monkeypatch.setattr(source, "FREE_BYTES", 1 << 20)
    return write(gzip.compress(b"arrival,prompt,output\n" + row))


def test_a_file_that_expands_without_end_is_refused(write, monkeypatch):
    path = bomb(write, b"0,1,1\n" * (5 << 20), monkeypatch)
    with pytest.raises(TraceError, match="expands to more than 250 times its size, as no trace does; unpack it first"):
        load(path, unit="s")
    assert len(load(path, unit="s", limit=100)) == 100, "what is read stays within bounds"


def test_a_line_without_end_is_refused(write, monkeypatch):
    monkeypatch.setattr(source, "LONGEST_LINE", 1 << 20)
    path = write(ROWS + "1" * (2 << 20))
    with pytest.raises(TraceError, match="holds a line of more than 1 MiB"):
        load(path, unit="s")


def test_a_member_larger_than_all_bounds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("traces.readers.archive.LONGEST_LINE", 1000)
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        entry = tarfile.TarInfo("big.json")
        entry.size = 2000
        archive.addfile(entry, io.BytesIO(b"{" + b" " * 1999))
    with pytest.raises(TraceError, match=r"p\.tar: holds a document of more than"):
        load(tmp_path / "p.tar")


def test_a_damaged_archive_is_named(write, tmp_path):
    with tarfile.open(tmp_path / "p.tar", "w") as archive:
        for name in ("a.json", "b.json"):
            entry = tarfile.TarInfo(name)
            entry.size = 700
            archive.addfile(entry, io.BytesIO(b'{"id": 1, "requests": []}' + b" " * 675))
    content = (tmp_path / "p.tar").read_bytes()
    with pytest.raises(TraceError, match=r"damaged tar archive \(unexpected end of data\)"):
        load(write(content[:900]))


def test_a_limit_reads_and_keeps_no_more_than_it_needs(write):
    path = write("arrival,prompt,output\n" + "1,2,3\n" * 1_000_000)
    tracemalloc.start()
    trace = load(path, unit="s", limit=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(trace) == 1000
    assert peak < 4 << 20, "the file has 6 MB"


def test_an_archive_of_json_lines(tmp_path):
    rows = [{"timestamp": at, "input_length": 1, "output_length": 1, "hash_ids": [at]} for at in range(3)]
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as archive:
        content = "\n".join(map(json.dumps, rows)).encode()
        entry = tarfile.TarInfo("m/part.jsonl")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    trace = load(tmp_path / "p.tar.gz")
    assert (trace.report.format, trace.arrival.tolist()) == ("mooncake", [0, 1_000_000, 2_000_000])
