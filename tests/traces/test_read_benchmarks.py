"""What load generators write: vllm bench serve, guidellm, AIPerf. The samples are written by us."""

import json
from pathlib import Path

import pytest

from traces import TraceError, load

SAMPLES = Path(__file__).parent / "samples"


def test_vllm_bench_serve_with_details():
    trace = load(SAMPLES / "vllm_bench.json")
    assert (trace.report.format, trace.report.failed, trace.report.rows_in) == ("vllm-bench", 1, 4)
    assert trace.arrival.tolist() == [0, 250_000_000, 2_750_000_000]
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([100, 200, 10], [20, 30, 5])


def test_an_older_vllm_saved_no_start_times(write):
    document = json.loads((SAMPLES / "vllm_bench.json").read_text())
    del document["start_times"]
    path = write(json.dumps(document))
    with pytest.raises(TraceError, match="line 1, request 1, column arrival: None is missing"):
        load(path)
    trace = load(path, columns={"arrival": ""})
    assert (trace.arrival.tolist(), trace.prompt.tolist()) == ([0, 0, 0], [100, 200, 10])
    assert "no arrival times" in trace.report.notes[0]


@pytest.mark.parametrize(("change", "message"), [
    ({"output_lens": [1]}, "column input_lens: 4 must be as long as output_lens, start_times and errors"),
    ({"output_lens": 7}, "column output_lens: 7 must be a list, as --save-detailed writes it"),
    ({"start_times": [1, 2, 3]}, "column input_lens: 4 must be as long"),
    ({"input_lens": [1, 2, 3, "x"]}, "request 4, column prompt: 'x' is not a number"),
    ({"start_times": [1, 2, 3, float("nan")]}, "request 4, column arrival: 'NaN' is not a number"),
])
def test_lists_that_do_not_fit_are_named(write, change, message):
    document = json.loads((SAMPLES / "vllm_bench.json").read_text()) | change
    with pytest.raises(TraceError) as refusal:
        load(write(json.dumps(document)))
    assert message in str(refusal.value)


def test_guidellm_reads_what_was_served():
    trace = load(SAMPLES / "guidellm.json")
    assert (trace.report.format, trace.report.failed, trace.report.rows_in) == ("guidellm", 2, 4)
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, 500_000_000], [256, 255],
                                                                                   [128, 64])


@pytest.mark.parametrize("broken", [{"benchmarks": 1}, {"benchmarks": [1]}, {"benchmarks": [{"requests": [1]}]},
                                    {"benchmarks": [{"requests": {"successful": 3}}]},
                                    {"benchmarks": [{"requests": {"successful": [3]}}]}])
def test_a_report_of_another_shape_is_refused(write, broken):
    with pytest.raises(TraceError, match=r"must (be|hold)"):
        load(write(json.dumps(broken)))


def test_aiperf_by_the_time_of_sending_or_of_scheduling():
    trace = load(SAMPLES / "aiperf.jsonl")
    assert (trace.report.format, trace.report.failed) == ("aiperf", 1)
    assert trace.arrival.tolist() == [0, 860_000_001]
    assert (trace.session, trace.parent.tolist()) == (("s0", "s0"), [-1, 0])
    assert "arrival=request_start_ns" in trace.report.columns
    scheduled = load(SAMPLES / "aiperf.jsonl", columns={"arrival": "credit_issued_ns"})
    assert scheduled.arrival.tolist() == [0, 1_000_000_000]
    assert "arrival=credit_issued_ns" in scheduled.report.columns


def test_a_record_without_lengths_is_named(write):
    record = {"metadata": {"request_start_ns": 5}, "metrics": {"input_sequence_length": {"value": 5}}, "error": None}
    with pytest.raises(TraceError, match="line 1, column output_sequence_length: None must be an object with a value"):
        load(write(json.dumps(record)))
