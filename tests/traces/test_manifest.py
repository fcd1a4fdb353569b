"""What the catalogue of the published files says of them is what we read, where they are at hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from simulator.prefixes import prefixes
from traces import Trace, load

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "traces"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the published traces are not here")

FORMATS = {
    "azure2023_code": "azure", "azure2023_conv": "azure", "mooncake_conversation": "mooncake",
    "mooncake_synthetic": "mooncake", "vidur_arxiv_summarization": "lengths", "vidur_splitwise_code": "vidur",
    "vidur_splitwise_conv": "vidur", "sarathi_sharegpt_8k": "lengths", "splitwise_sim_test_trace": "splitwise-sim",
    "weka_claude_code": "weka-table", "weka_raw_sample": "weka", "tracelab_sample": "tracelab",
    "servegen_deepseek-r1": "servegen", "servegen_mm-image": "servegen",
}


def facts_of(name: str) -> dict:
    files = json.loads((SHARED / "MANIFEST.json").read_text())["files"]
    return next(facts for facts in files if facts["name"] == name)


def published(name: str, **options: object) -> Trace:
    return load(SHARED / facts_of(name)["file"], **options)


def test_every_published_trace_is_known_here():
    files = json.loads((SHARED / "MANIFEST.json").read_text())["files"]
    traces = {facts["name"] for facts in files if not facts["name"].startswith(("quantile", "servegen_pooled"))}
    assert traces == FORMATS.keys()


ROWS = [name for name in FORMATS if not name.startswith(("weka_raw", "servegen"))]


@pytest.mark.parametrize("name", ROWS)
def test_rows_span_and_format(name):
    facts, trace = facts_of(name), published(name)
    assert (trace.report.format, trace.report.rows_in, trace.report.rejected) == (FORMATS[name], facts["rows"], ())
    assert len(trace) + trace.report.failed == facts["rows"]
    if facts["span_s"] is not None:
        assert trace.arrival[-1] == round(facts["span_s"] * 10**9)


@pytest.mark.parametrize("name", ["vidur_arxiv_summarization", "sarathi_sharegpt_8k"])
def test_lengths_alone_come_at_0_and_say_so(name):
    trace = published(name)
    assert (trace.span_s, len(np.unique(trace.arrival))) == (0.0, 1)
    assert trace.report.notes[0].startswith("no arrival times: every request comes at 0")


def test_quirks_of_lengths():
    arxiv, chat = published("vidur_arxiv_summarization"), published("sarathi_sharegpt_8k")
    assert (arxiv.prompt.min(), (arxiv.prompt + arxiv.output).max()) == (1, 4096)
    assert chat.output.max() == 1024
    assert (chat.prompt + chat.output).max() <= 8192
    follows = chat.prompt[1:] >= (chat.prompt + chat.output)[:-1]
    assert follows.mean() == pytest.approx(0.81, abs=0.01)


def test_quirks_of_azure():
    code, conv = published("azure2023_code"), published("azure2023_conv")
    assert (code.output.min(), conv.output.min()) == (6, 7)
    gaps = np.diff(code.arrival)
    assert gaps.std() / gaps.mean() == pytest.approx(13, abs=0.5)
    assert gaps.max() / 1e9 == pytest.approx(217, abs=1)


def test_quirks_of_mooncake():
    chat, made = published("mooncake_conversation"), published("mooncake_synthetic")
    assert (len(np.unique(chat.arrival)), chat.output.max(), int((chat.output == 1).sum())) == (1_180, 2_000, 72)
    assert {ids[0] for ids in chat.hash_ids} == {0}
    assert len(made) - len(np.unique(made.arrival)) == 11


def test_quirks_of_weka():
    table = published("weka_claude_code")
    assert (table.report.failed, table.report.prompts) == (27, "cumulative")
    assert table.shared.sum() / table.prompt.sum() == pytest.approx(0.96, abs=0.005)
    raw = published("weka_raw_sample")
    assert len({name.partition("/")[0] for name in raw.session}) == facts_of("weka_raw_sample")["rows"] == 12
    assert len({name for name in raw.session if "/" in name}) == 6
    assert (raw.hash_ids.lengths == raw.prompt // 64).all()


def test_the_raw_sessions_are_those_of_the_table():
    table, raw = published("weka_claude_code"), published("weka_raw_sample")
    mine = [row for row, session in enumerate(raw.session) if session == "trace_0002"]
    theirs = [row for row, session in enumerate(table.session) if session == "0002"]
    for column in ("prompt", "output", "think"):
        assert getattr(raw, column)[mine].tolist() == getattr(table, column)[theirs].tolist()
    assert (table.arrival[theirs] // 10**9).tolist() == (raw.arrival[mine] // 10**9).tolist()
    by_ids = [len(path) * 64 for row, path in enumerate(prefixes(raw.take(np.array(mine)))) if row]
    assert by_ids[-1] >= table.shared[theirs][-1]


def test_quirks_of_tracelab():
    trace = published("tracelab_sample")
    assert len(set(trace.session)) == 2
    assert trace.shared.max() == 47_506
    assert set(trace.tenant) == {"claude", "codex"}


@pytest.mark.parametrize(("name", "requests"), [("servegen_deepseek-r1", 1_383_669), ("servegen_mm-image", 818_610)])
def test_pools_keep_the_number_of_clients_and_requests(name, requests):
    facts, trace = facts_of(name), published(name)
    # Two files a client; some clients of the pool send nothing all day.
    assert len(set(trace.tenant)) <= facts["rows"] // 2
    assert len(trace) == requests
    assert trace.span_s <= facts["span_s"]
    assert abs(np.corrcoef(trace.prompt[:50_000], trace.output[:50_000])[0, 1]) < 0.6


def test_a_histogram_is_no_trace():
    with pytest.raises(ValueError, match="which column is the prompt"):
        load(SHARED / "servegen" / "pooled_hist_mm-image_input.csv.gz")
