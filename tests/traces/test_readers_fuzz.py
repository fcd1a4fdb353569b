"""Any bytes give a Trace or a TraceError of one line, and the fast way agrees with the one row at a time."""

import gzip
import json
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from corpus import FILES, parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traces import Trace, TraceError, load
from traces.readers import READERS, rows

FIELDS = st.sampled_from(
    [
        "0",
        "1",
        "12",
        "12.0",
        "1.5",
        "-1",
        "",
        " 3 ",
        "nan",
        "1e400",
        "9" * 30,
        '"4"',
        '"',
        "x",
        "\r",
        "é",
        "\0",
        "2024-05-10 00:00:01.5",
    ]
)
HEADERS = st.sampled_from(
    ["arrival,prompt,output", "TIMESTAMP,ContextTokens,GeneratedTokens", "arrival,prompt,output,tenant", "a,b", '"']
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=3)
)
KEYS = st.sampled_from(["timestamp", "input_length", "output_length", "hash_ids", "arrival", "tenant", "max_tokens"])
OPTIONS = st.fixed_dictionaries(
    {
        "format": st.sampled_from([None, *READERS]),
        "unit": st.sampled_from([None, "s", "ns"]),
        "lenient": st.booleans(),
        "limit": st.sampled_from([None, 1, 3]),
        "columns": st.sampled_from([None, {"arrival": ""}, {"tenant": "tenant"}, {"prompt": "a"}]),
    }
)
patient = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(content: bytes, options: dict) -> str:
    """What load makes of `content`: a digest with its report, or an error line; nothing else may come out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(content)
        try:
            trace = load(path, **options)
        except TraceError as refusal:
            message = str(refusal)
            assert message.isprintable()
            assert len(message) < 2000
            return message.replace(folder, "")
    assert isinstance(trace, Trace)
    assert trace.arrival[0] == 0
    report = trace.report
    assert report.rows_in == len(trace) + len(report.rejected) + report.failed + report.outside
    return f"{trace.digest} {trace.report}"


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.lists(FIELDS, min_size=1, max_size=4).map(",".join), max_size=6))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join([draw(HEADERS), *lines]).encode()


json_files = (
    st.lists(st.dictionaries(KEYS, VALUES, max_size=6).map(json.dumps), max_size=5).map("\n".join).map(str.encode)
)


@patient
@given(st.one_of(st.binary(max_size=200), csv_files(), json_files), OPTIONS)
def test_any_bytes_give_a_trace_or_one_line(content, options):
    outcome(content, options)


@patient
@given(st.binary(max_size=60), st.integers(0, 80), OPTIONS)
def test_damaged_gzip_gives_a_trace_or_one_line(noise, cut, options):
    outcome(gzip.compress(b"arrival,prompt,output\n0,1,1\n")[:cut] + noise, options)


@patient
@given(st.one_of(csv_files(), json_files), st.booleans())
def test_batches_and_single_rows_agree(content, lenient):
    options = {"lenient": lenient, "unit": "s"}
    with mock.patch.object(rows, "BATCH", 1):
        single = outcome(content, options)
    assert outcome(content, options) == single


BITS = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"", b"\r", b"\r\n", b"\n\n", b"NaN", b"-Infinity", b"1e999", b"9" * 40, b"-1", b"null", b"[]",
                     b"{}", b'"', b"\0", b"0", b",", b"../x", "\u2028".encode(), b"{1: 1e400}", b"true"]),
)


def mutated(content: bytes, cuts: list[tuple[float, int, bytes]]) -> bytes:
    """The content with some bytes at each place replaced by others."""
    for place, length, bits in cuts:
        at = int(place * len(content))
        content = content[:at] + bits + content[at + length:]
    return content


def test_the_corpus_has_a_file_of_every_format(tmp_path):
    for format, content in FILES.items():
        (tmp_path / "t").write_bytes(content)
        assert load(tmp_path / "t").report.format == format
    assert FILES.keys() == READERS.keys()


@pytest.mark.parametrize("format", FILES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), BITS), max_size=3), st.booleans(),
       st.sampled_from([None, "00:00-48:00"]), st.sampled_from([None, "increments"]), st.integers(0, 400))
def test_every_reader_gives_a_trace_or_one_line(format, cuts, lenient, window, prompts, short):
    content = mutated(FILES[format], cuts)
    outcome(content[:len(content) - short] if short < 100 else content,
            {"lenient": lenient, "window": window, "prompts": prompts})


@patient
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), BITS), min_size=1, max_size=3))
def test_a_damaged_parquet_table_gives_a_trace_or_one_line(cuts):
    pytest.importorskip("pyarrow")
    outcome(mutated(parquet(), cuts), {})


@patient
@given(st.sampled_from(list(FILES.values())), st.binary(max_size=40), st.floats(0, 1))
def test_damaged_zstd_gives_a_trace_or_one_line(content, noise, share):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(content)
    outcome(packed[:int(share * len(packed))] + noise, {})
