"""Round trips: every row and every column of a trace survives in every format."""

import json
import sys
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traces import WRITERS, Trace, TraceError, convert, load

SAMPLES = Path(__file__).parent / "samples"
NAMES = st.text(st.characters(categories=("L", "N", "P", "Zs"), exclude_characters="\u00a0"), max_size=6).filter(
    str.isprintable)


def through(trace: Trace, suffix: str, folder: Path) -> Trace:
    """The trace after writing and reading it; its format must be found."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = folder / f"t{suffix}"
    path.write_bytes(convert(trace, suffix))
    return load(path)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    n = draw(st.integers(1, 6))
    gaps = draw(st.lists(st.integers(0, 10**15), min_size=n - 1, max_size=n - 1))
    prompt = draw(st.lists(st.integers(1, 3000), min_size=n, max_size=n))
    columns: dict = {"arrival": [sum(gaps[:at]) for at in range(n)], "prompt": prompt,
                     "output": draw(st.lists(st.integers(1, 1 << 53), min_size=n, max_size=n))}
    each = {"max_tokens": st.integers(1, 1 << 53), "tenant": NAMES, "priority": st.integers(-5, 5)}
    for column, values in each.items():
        if draw(st.booleans()):
            columns[column] = tuple(draw(st.lists(values, min_size=n, max_size=n)))
    if draw(st.booleans()):
        parent = [draw(st.integers(-1, at - 1)) for at in range(n)]
        columns |= {"parent": parent, "session": tuple(draw(st.lists(NAMES, min_size=n, max_size=n)))}
        columns["think"] = [0 if before < 0 else draw(st.integers(0, 10**15)) for before in parent]
        columns["shared"] = [0 if before < 0 else draw(st.integers(0, min(prompt[at], prompt[before])))
                             for at, before in enumerate(parent)]
    if draw(st.booleans()):
        block, up = draw(st.sampled_from([1, 16, 64, 512])), draw(st.booleans())
        counts = [-(-tokens // block) if up else tokens // block for tokens in prompt]
        columns |= {"hash_block": block, "hash_ids": [[draw(st.integers(-9, 1 << 62))] * count for count in counts]}
    return Trace("t", **columns)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(traces(), st.sampled_from(list(WRITERS)))
def test_any_trace_survives_a_round_trip(tmp_path, trace, suffix):
    again = through(trace, suffix, tmp_path)
    assert {name: list(values) for name, values in again.columns().items()} == {
        name: list(values) for name, values in trace.columns().items()}
    assert (again.hash_block, again.digest) == (trace.hash_block, trace.digest)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("sample", ["qwen_bailian.jsonl", "burstgpt_sessions.csv", "aiperf.jsonl", "otel.jsonl"])
def test_samples_survive_a_round_trip(tmp_path, sample, suffix):
    trace = load(SAMPLES / sample)
    assert through(trace, suffix, tmp_path).digest == trace.digest


def test_mooncake_rows_are_written_as_they_are_published(write):
    text = ('{"timestamp": 0, "input_length": 600, "output_length": 7, "hash_ids": [0, 1]}\n'
            '{"timestamp": 27482.25, "input_length": 512, "output_length": 1, "hash_ids": [0]}\n')
    assert convert(load(write(text)), ".jsonl").decode() == text


def test_a_trace_without_ids_gets_some_that_nobody_shares_and_loses_them_again(tmp_path):
    trace = Trace("t", arrival=[0, 1], prompt=[1025, 5], output=[1, 1])
    rows = [json.loads(line) for line in convert(trace, ".jsonl").splitlines()]
    assert [row["hash_ids"] for row in rows] == [[0, 1, 2], [3]]
    assert all(row["hash_ids_filled"] for row in rows)
    again = through(trace, ".jsonl", tmp_path)
    assert (again.hash_ids, again.knows_prefixes, again.digest) == (None, False, trace.digest)


def test_turns_get_ids_as_far_as_they_repeat():
    trace = Trace("t", arrival=[0, 1], prompt=[1500, 2000], output=[1, 1], parent=[-1, 0], shared=[0, 1400])
    rows = [json.loads(line) for line in convert(trace, ".jsonl").splitlines()]
    assert [row["hash_ids"] for row in rows] == [[0, 1, 2], [0, 1, 3, 4]]


@pytest.mark.parametrize("suffix", ["", ".json", ".tar"])
def test_other_endings_are_refused(tiny, suffix):
    with pytest.raises(TraceError, match=r"a trace is written as \.jsonl, \.csv, \.parquet, not as"):
        convert(tiny, suffix)


def test_a_name_that_does_not_print_is_refused():
    with pytest.raises(TraceError, match="column tenant: 'a\\\\nb' is not a printable name"):
        convert(Trace("t", arrival=[0], prompt=[1], output=[1], tenant=("a\nb",)), ".csv")


def test_prefix_blocks_of_several_sizes_are_no_trace(write):
    header = "arrival_ns,prompt_tokens,output_tokens,hash_ids,hash_block\n"
    with pytest.raises(TraceError, match=r"prefix blocks of several sizes \(16, 32, \.\.\.\) in one trace"):
        load(write(header + "0,16,1,7,16\n1,32,1,8,32\n"))
    assert load(write(header + "0,16,1,7,16\n1,32,1,8 9,16\n")).hash_ids == ((7,), (8, 9))


def test_without_pyarrow_the_next_move_is_told(tiny):
    with (mock.patch.dict(sys.modules, {"pyarrow": None}),
          pytest.raises(TraceError, match=r"Parquet is written with pyarrow: pip install 'batchsim\[parquet\]'")):
        convert(tiny, ".parquet")
