"""Any bytes give a Trace or a TraceError of one line, and the fast way agrees with the one row at a time."""

import gzip
import json
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traces import Trace, TraceError, load
from traces.readers import rows

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
        "format": st.sampled_from([None, "azure", "mooncake", "csv", "jsonl"]),
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
    assert trace.report.rows_in == len(trace) + len(trace.report.rejected)
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
