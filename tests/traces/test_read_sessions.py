"""Conversations: Qwen-Bailian, WEKA, TraceLab, tables with a session; increments and cumulative prompts."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from traces import TraceError, load

SAMPLES = Path(__file__).parent / "samples"
SECOND = 10**9
TURNS = "arrival,prompt,output,session\n0,100,50,a\n5,30,50,a\n9,30,50,a\n"


def test_increments_add_up_and_cumulative_prompts_stay(write):
    added = load(write(TURNS), unit="s", prompts="increments")
    assert added.prompt.tolist() == [100, 180, 260]
    assert added.shared.tolist() == [0, 150, 230]
    assert (added.report.prompts, added.parent.tolist()) == ("increments", [-1, 0, 1])
    written = load(write(TURNS), unit="s")
    assert (written.prompt.tolist(), written.shared, written.report.prompts) == ([100, 30, 30], None, "cumulative")


def test_increments_need_conversations(write):
    with pytest.raises(TraceError, match="increments need conversations; say --columns session=NAME"):
        load(write("arrival,prompt,output\n0,1,1\n"), unit="s", prompts="increments")
    with pytest.raises(TraceError, match="unknown kind of prompts 'increment': did you mean 'increments'"):
        load(write(TURNS), unit="s", prompts="increment")


def test_increments_without_end_are_refused(write):
    rows = "".join(f"{at},{1 << 52},1,a\n" for at in range(4))
    with pytest.raises(TraceError, match=r"t\.csv: prompts added up over a conversation exceed 2\^53 tokens"):
        load(write("arrival,prompt,output,session\n" + rows), unit="s", prompts="increments")


def test_turns_are_linked_in_order_of_time_and_rows_without_a_session_stand_alone(write):
    text = "arrival,prompt,output,session\n9,4,1,a\n1,1,1,a\n2,2,1,b\n3,3,1,\n4,3,1,\n5,5,1,b\n"
    trace = load(write(text), unit="s")
    assert trace.prompt.tolist() == [1, 2, 3, 3, 5, 4]
    assert trace.parent.tolist() == [-1, -1, -1, -1, 1, 0]


def test_think_times_need_a_unit_and_first_turns_have_none(write):
    text = "arrival,prompt,output,session,wait\n2026-01-01 00:00:00,1,1,a,7\n2026-01-01 00:00:09,1,1,a,1.5\n"
    with pytest.raises(TraceError, match="times in column wait are plain numbers"):
        load(write(text), columns={"think": "wait"})
    trace = load(write(text), columns={"think": "wait"}, unit="s")
    assert (trace.think.tolist(), trace.arrival.tolist()) == ([0, 3 * SECOND // 2], [0, 9 * SECOND])


def test_bailian_links_by_parent_chat_and_counts_seconds():
    trace = load(SAMPLES / "qwen_bailian.jsonl")
    assert (trace.report.format, trace.hash_block, trace.report.prompts) == ("qwen-bailian", 16, "cumulative")
    assert trace.arrival.tolist() == [0, 86_000_000, 31_386_000_000, 33_886_000_000, 37_886_000_000]
    assert trace.parent.tolist() == [-1, -1, 0, 0, -1]
    assert trace.session == ("159", "160", "159", "159", "163")
    assert trace.hash_ids[2] == (1089, 1090, 7001, 7002)
    assert trace.report.notes == ("1 turns start anew: the turn before them is not among the rows before them",)


def weka(**changed: object) -> dict:
    """A session of 3 requests and a sub-agent of 2, with blocks of 4 tokens."""
    agent = [{"t": 0.0, "in": 8, "out": 3, "hash_ids": [1, 9], "think_time": 0.0},
             {"t": 2.5, "in": 11, "out": 3, "hash_ids": [1, 9], "think_time": 1.0}]
    return {"id": "s", "block_size": 4, "hash_id_scope": "local", "requests": [
        {"t": 0.0, "in": 9, "out": 5, "hash_ids": [1, 2], "think_time": 0.0},
        {"t": 6.0, "type": "subagent", "agent_id": "x", "requests": agent},
        {"t": 20, "in": 17, "out": 0, "hash_ids": [1, 2, 3, 4], "think_time": 0.25},
        {"t": 21, "in": 17, "out": 1, "hash_ids": [1, 2, 3, 4], "think_time": 0.75}]} | changed


def test_weka_sessions_chains_and_failures(write):
    trace = load(write(json.dumps(weka())))
    assert (trace.report.format, trace.report.failed) == ("weka", 1)
    assert trace.arrival.tolist() == [0, 6 * SECOND, 17 * SECOND // 2, 21 * SECOND]
    assert trace.session == ("s", "s/x", "s/x", "s")
    assert trace.parent.tolist() == [-1, -1, 1, 0]
    assert trace.think.tolist() == [0, 0, SECOND, 3 * SECOND // 4]
    assert (trace.hash_block, trace.hash_ids.lengths.tolist()) == (4, [2, 2, 2, 4])
    assert trace.hash_ids[0][0] == trace.hash_ids[1][0]
    assert "all of them start at 0" in trace.report.notes[0]


def test_a_sub_agent_with_absolute_times_keeps_them(write):
    absolute = weka()
    for request, time in zip(absolute["requests"][1]["requests"], (6.5, 9), strict=True):
        request["t"] = time
    assert load(write(json.dumps(absolute))).arrival.tolist() == [0, 13 * SECOND // 2, 9 * SECOND, 21 * SECOND]


@pytest.mark.parametrize(("scope", "alike"), [("local", False), ("global", True)])
def test_ids_of_sessions_are_told_apart_unless_they_are_global(tmp_path, scope, alike):
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as archive:
        for name in ("a", "b"):
            content = json.dumps(weka(id=name, hash_id_scope=scope)).encode()
            entry = tarfile.TarInfo(f"traces/{name}.json")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    trace = load(tmp_path / "two.tar.gz")
    assert (len(trace), set(trace.session)) == (8, {"a", "b", "a/x", "b/x"})
    first, second = trace.session.index("a"), trace.session.index("b")
    assert (trace.hash_ids[first] == trace.hash_ids[second]) is alike


@pytest.mark.parametrize(("change", "message"), [
    ({"requests": 3}, "column requests: 3 must be a list of requests"),
    ({"requests": [3]}, "column requests: 3 must hold objects"),
    ({"requests": [{"t": None, "in": 1, "out": 1, "hash_ids": []}]}, "column t: None is empty"),
    ({"requests": [{"t": 0, "in": 9, "out": 1, "hash_ids": [1]}]}, "must hold 2 or 3 ids, one for each 4 of 9"),
    ({"block_size": 0}, "column hash_block: 0 must be 1 or more"),
    ({"requests": [{"t": 0, "requests": 4}]}, "column requests: 4 must be a list of requests"),
])
def test_a_session_of_another_shape_is_refused(write, change, message):
    with pytest.raises(TraceError) as refusal:
        load(write(json.dumps(weka(**change))))
    assert message in str(refusal.value)


def test_the_weka_table_counts_blocks_that_repeat(write):
    header = ("session,subagent,idx,t_s,input_tokens,output_tokens,n_blocks64,shared_prefix_blocks64_with_prev,"
              "think_time_s")
    text = f"{header}\n1,,0,0,700,10,10,0,0.0\n1,,1,5,900,10,14,10,2.5\n1,/1,0,0,700,4,10,9,0\n1,,2,9,950,0,14,14,1\n"
    trace = load(write(text))
    assert (trace.report.format, trace.report.failed) == ("weka-table", 1)
    assert (trace.session, trace.parent.tolist()) == (("1", "1/1", "1"), [-1, -1, 0])
    assert (trace.shared.tolist(), trace.think.tolist()) == ([0, 0, 640], [0, 0, 5 * SECOND // 2])


def tracelab(at: int, session: str = "s", **changed: object) -> str:
    events = [{"event_type": "text", "timestamp": f"2026-06-01T05:40:{at + 2:02}.500Z"},
              {"event_type": "user_message", "timestamp": f"2026-06-01T05:40:{at:02}.250Z"}]
    return json.dumps({"provider": "p", "session_id": session, "round_index": at, "input_tokens_total": 100 + at,
                       "prefix_tokens": 90, "output_tokens": 7, "timing_events": events} | changed) + "\n"


def test_tracelab_rounds_start_with_their_first_event(write):
    trace = load(write(tracelab(1) + tracelab(5, "other") + tracelab(10)))
    assert (trace.report.format, trace.arrival.tolist()) == ("tracelab", [0, 4 * SECOND, 9 * SECOND])
    assert (trace.parent.tolist(), trace.shared.tolist()) == ([-1, -1, 0], [0, 0, 90])
    assert trace.tenant == ("p", "p", "p")


def test_tracelab_needs_its_events(write):
    for events in (None, [], [3], [{"timestamp": None}]):
        with pytest.raises(TraceError, match="line 1, column timing_events"):
            load(write(tracelab(1, timing_events=events)))
