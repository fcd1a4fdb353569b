"""Logs of services: BurstGPT, LiteLLM's spend logs, OpenTelemetry spans. The samples are written by us."""

import json
from pathlib import Path

import pytest

from traces import TraceError, load

SAMPLES = Path(__file__).parent / "samples"
SECOND = 10**9


def test_burstgpt_counts_its_failures_and_keeps_both_logs():
    trace = load(SAMPLES / "burstgpt.csv")
    assert (trace.report.format, trace.report.rows_in, trace.report.failed) == ("burstgpt", 5, 2)
    assert trace.arrival.tolist() == [0, 40 * SECOND, 115 * SECOND]
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([472, 1087, 12], [18, 230, 3])
    assert trace.tenant == ("Conversation log", "Conversation log", "API log")
    assert (trace.session, trace.report.prompts) == (None, None)


def test_later_burstgpt_files_are_read_by_name_and_have_sessions():
    trace = load(SAMPLES / "burstgpt_sessions.csv")
    assert trace.prompt.tolist() == [100, 30, 190, 30]
    assert trace.session == ("7", "", "7", "")
    assert trace.parent.tolist() == [-1, -1, 0, -1]


def test_an_answer_without_a_prompt_is_no_failure_but_a_bad_row(write):
    text = (SAMPLES / "burstgpt.csv").read_text() + "130,GPT-4,0,7,7,API log\n"
    with pytest.raises(TraceError, match="line 7, column Request tokens: 0 must be 1 or more"):
        load(write(text))
    trace = load(write(text), lenient=True)
    assert (len(trace), trace.report.failed, len(trace.report.rejected), trace.report.rows_in) == (3, 2, 1, 6)


def test_only_failures_are_no_trace(write):
    header = (SAMPLES / "burstgpt.csv").read_text().splitlines()[0]
    with pytest.raises(TraceError, match=r"no usable rows \(2 failed requests\)"):
        load(write(f"{header}\n1,GPT-4,5,0,5,API log\n2,GPT-4,0,0,0,API log\n"))


@pytest.mark.parametrize(("sample", "failed"), [("litellm.csv", 1), ("litellm_page.json", 0)])
def test_litellm_as_a_table_and_as_its_api_answers(sample, failed):
    trace = load(SAMPLES / sample)
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, 9 * SECOND], [100, 200],
                                                                                   [50, 50])
    assert (trace.tenant, trace.session, trace.parent.tolist()) == (("ann", "ann"), ("s1", "s1"), [-1, 0])
    assert (trace.report.failed, trace.report.rows_in) == (failed, 2 + failed)


def test_litellm_rows_may_stand_in_one_array(write):
    rows = json.loads((SAMPLES / "litellm_page.json").read_text())["data"]
    assert load(write(json.dumps(rows))).digest == load(SAMPLES / "litellm_page.json").digest


def test_otel_takes_the_spans_that_count_tokens():
    trace = load(SAMPLES / "otel.jsonl")
    assert (trace.arrival.tolist(), trace.prompt.tolist(), trace.output.tolist()) == ([0, 4 * SECOND], [120, 170],
                                                                                   [30, 12])
    assert (trace.max_tokens.tolist(), trace.session) == ([64, 64], ("conv-1", "conv-1"))
    assert (trace.report.format, trace.report.failed, trace.report.rows_in) == ("otel", 1, 3)


def test_otel_without_a_limit_on_some_spans_has_none(write):
    text = (SAMPLES / "otel.jsonl").read_text().replace(
        '{"key": "gen_ai.request.max_tokens", "value": {"intValue": "64"}}, ', "", 1)
    assert load(write(text)).max_tokens is None


def test_a_whole_otel_document_reads_like_its_lines(write):
    lines = [json.loads(line) for line in (SAMPLES / "otel.jsonl").read_text().splitlines()]
    merged = {"resourceSpans": [resource for line in lines for resource in line["resourceSpans"]]}
    assert load(write(json.dumps(merged, indent=1))).digest == load(SAMPLES / "otel.jsonl").digest


def test_a_bad_span_is_named_by_its_line_and_place(write):
    text = (SAMPLES / "otel.jsonl").read_text().replace('"170"', "170").replace('"intValue": 170', '"intValue": -1')
    with pytest.raises(TraceError, match="line 2, request 1, column prompt: -1 must be 1 or more"):
        load(write(text))
    assert len(load(write(text), lenient=True)) == 1
