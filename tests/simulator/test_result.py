"""The Result: its names, its tables, its files, and the same bytes from a fast and an exact run."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from worlds import trace_of

from cost_models import Constant
from simulator import plausible
from simulator.errors import InputError
from simulator.frames import REQUEST_COLUMNS, STEP_COLUMNS, csv_pieces
from simulator.ledger import SLOT_PARTS
from simulator.metrics import METRICS, json_keys
from simulator.policies import StaticBatching, Vllm
from simulator.remarks import unserved
from simulator.result import Result, load
from simulator.simulation import simulate

ROWS = [(0, 4, 1), (0, 4, 3), (0, 4, 2)]
INF = float("inf")


@pytest.fixture(autouse=True)
def _epoch(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")


def run(policy, rows=ROWS, **options) -> Result:
    options = {"cost_model": Constant(10), "kv_capacity_tokens": INF, "max_tokens": "exact", **options}
    return simulate(trace_of(rows), policy, **options)


def static(**options) -> Result:
    return run(StaticBatching(max_batch_size=2), **options)


def vllm(**options) -> Result:
    return run(Vllm(max_num_seqs=2, max_num_batched_tokens=64), **options)


def crowded(exact: bool, policy=None) -> Result:
    rng = np.random.default_rng(3)
    rows = [(int(at), int(prompt), int(output)) for at, prompt, output in
            zip(np.sort(rng.integers(0, 900, 60)), rng.integers(1, 40, 60), rng.integers(1, 30, 60), strict=True)]
    policy = policy or Vllm(max_num_seqs=8, max_num_batched_tokens=32, block_size=4)
    return run(policy, rows, kv_capacity_tokens=200, exact=exact)


# --- the summary ----------------------------------------------------------------------------------------------------

def test_the_summary_of_a_small_run():
    found = vllm().summary()
    expected = {
        "date": "19700102-000000", "backend": "batchsim:vllm", "label": None, "model_id": "llama-3.1-8b",
        "num_prompts": 3, "request_rate": None, "burstiness": None, "max_concurrency": None, "policy": "vllm",
        "memory": "paged-prefix", "kv_capacity_tokens": "inf", "cost_model": "constant:1e-05", "gpu": "h100-80",
        "seed": 0,
        "trace": "made", "completed": 3, "failed": 0, "rejected": 0, "rejected_reasons": None,
        "largest_rejected_tokens": None, "clipped": 0, "cut": 0, "total_input_tokens": 12, "total_output_tokens": 6,
        "duration": 30e-9, "request_throughput": 1e8, "request_goodput": None, "output_throughput": 2e8,
        "total_token_throughput": 6e8, "steady_duration": 20e-9, "steady_request_throughput": 1e8,
        "max_output_tokens_per_s": 6, "max_concurrent_requests": 3, "percentile_method": "linear",
        "mean_ttft_ms": pytest.approx(40e-6 / 3), "median_ttft_ms": 10e-6, "mean_tpot_ms": 10e-6, "mean_itl_ms": 10e-6,
        "std_itl_ms": 0, "p99_e2el_ms": 30e-6, "median_queue_time_ms": 0, "preemptions": 0, "recomputed_tokens": 0,
        "padding_tokens": 0, "mean_batch_size": 2, "slot_utilization": 1, "slots": 2, "kv_usage_mean": None,
        "kv_usage_max": None, "steps": 3, "out_of_range_steps": None}
    assert {name: found[name] for name in expected} == expected
    assert found["policy_args"].startswith("max_num_seqs=2,")


def test_what_was_not_measured_is_null_and_never_0():
    found = static().summary()
    assert all(found[key] is None for name in ("tpot", "itl") for key in json_keys(name))
    assert all(found[f"{stem}_ttft_ms"] == found[f"{stem}_e2el_ms"] > 0 for stem in ("mean", "median", "p99"))
    nobody = run(Vllm(max_num_seqs=1, max_num_batched_tokens=8), [(0, 400, 1)], max_model_len=8).summary()
    numbers = ("duration", "request_throughput", "steady_duration", "mean_ttft_ms", "p99_itl_ms", "mean_batch_size",
               "slot_utilization", "max_output_tokens_per_s", "tail_requests", "kv_usage_mean")
    assert [name for name in numbers if nobody[name] is not None] == []
    assert (nobody["completed"], nobody["rejected"]) == (0, 1)


def test_every_metric_stands_in_the_summary():
    found = vllm().summary(percentiles=(50, 99.9))
    assert [key for name in METRICS for key in json_keys(name, (50, 99.9)) if key not in found] == []
    assert "p99_ttft_ms" not in found


def test_latencies_can_be_chosen():
    found = vllm().summary(metrics=("ttft",))
    assert "mean_ttft_ms" in found
    assert "mean_itl_ms" not in found
    with pytest.raises(InputError, match="did you mean 'ttft'"):
        vllm().summary(metrics=("tft",))
    with pytest.raises(InputError, match="between 0 and 100, not at 101"):
        vllm().summary(percentiles=(101,))


def test_rates_are_named_as_given():
    assert vllm(load="saturated").summary()["request_rate"] == "inf"
    assert vllm(request_rate=2.5, burstiness=INF).summary()["request_rate"] == 2.5
    assert vllm(request_rate=2.5, burstiness=INF).summary()["burstiness"] == "inf"


def test_rejects_are_counted_named_and_measured():
    found = run(Vllm(max_num_seqs=1, max_num_batched_tokens=64, block_size=4), [(0, 4, 2), (0, 30, 9), (1, 90, 20)],
                kv_capacity_tokens=32, max_model_len=100).summary()
    assert (found["completed"], found["rejected"], found["num_prompts"]) == (1, 2, 3)
    assert found["rejected_reasons"] == "longer than max_model_len: 1,never fits the KV pool: 1"
    assert (found["largest_rejected_request"], found["largest_rejected_tokens"]) == (2, 110)
    assert (found["total_input_tokens"], found["total_output_tokens"]) == (4, 2)


@pytest.mark.parametrize(("policy", "max_tokens", "reserved", "remedy"), [
    ("static --set reserve=model", None, 1000, "give a shorter --max-model-len, or a reserve of declared lengths"),
    ("orca", "model", 1000, "give shorter declared lengths (--max-tokens, --max-model-len), or more KV cache"),
    ("static", "model", 1000, "give shorter declared lengths (--max-tokens, --max-model-len), or more KV cache")])
def test_who_is_rejected_for_what_is_reserved_is_told_of_that(policy: str, max_tokens: str | None, reserved: int,
                                                               remedy: str) -> None:
    name, _, setting = policy.partition(" --set ")
    found = simulate(trace_of([(0, 4, 2), (0, 30, 9)]), name, knobs=dict([setting.split("=")] if setting else []),
                     cost_model=Constant(10), max_tokens=max_tokens, kv_capacity_tokens=500,
                     max_model_len=1000).summary()
    assert (found["completed"], found["reserved_beyond_pool"]) == (0, reserved)
    told = unserved(found) or ""
    assert f"the largest has 39 tokens, and up to {reserved:,} are reserved for one that would fit): {remedy}" in told
    assert "shorter requests" not in told


def test_who_is_larger_than_the_pool_is_told_of_the_pool() -> None:
    found = simulate(trace_of([(0, 4, 2), (0, 600, 9)]), "static", knobs={"reserve": "model"}, cost_model=Constant(10),
                     kv_capacity_tokens=500, max_model_len=1000).summary()
    assert (found["rejected"], found["reserved_beyond_pool"]) == (2, None)
    assert (unserved(found) or "").endswith("--kv-capacity-tokens), or a trace with shorter requests")


def test_goodput_needs_an_objective():
    found = vllm(goodput={"ttft": 15e-6}).summary()    # 10, 10 and 20 ns
    assert found["request_goodput"] == pytest.approx(2 / 30e-9)


# --- the same bytes -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("policy", [None, StaticBatching(max_batch_size=3, padded=True, max_wait=1e-4)])
def test_fast_and_exact_runs_give_the_same_bytes(policy):
    fast, exact = crowded(False, policy), crowded(True, policy)
    asked = exact.to_json(detailed=True).replace('"exact": true', '"exact": false')    # in the scenario that it carries
    assert fast.to_json(detailed=True) == asked
    assert fast.requests.to_csv() == exact.requests.to_csv()
    assert fast.steps.to_csv() == exact.steps.to_csv()
    assert policy is not None or fast.summary()["preemptions"] > 0


def test_the_date_is_all_that_the_clock_decides(monkeypatch):
    one = json.loads(vllm().to_json(detailed=True))
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    other = json.loads(vllm().to_json(detailed=True))
    assert [name for name in one if one[name] != other[name]] == ["date"]


def test_a_date_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH must be a whole number of seconds"):
        vllm().summary()


# --- details --------------------------------------------------------------------------------------------------------

def test_details_are_in_seconds_and_have_an_entry_a_row():
    found = json.loads(run(Vllm(max_num_seqs=2, max_num_batched_tokens=64), [*ROWS, (7, 4, 9)],
                           max_model_len=10).to_json(detailed=True))
    assert found["input_lens"] == [4, 4, 4, 4]
    assert found["output_lens"] == [1, 3, 2, None]
    assert found["ttfts"] == [10e-9, 10e-9, 20e-9, None]
    assert found["itls"] == [[], [10e-9, 10e-9], [10e-9], None]
    assert found["latencies"] == [10e-9, 30e-9, 30e-9, None]
    assert found["queue_times"] == [0, 0, 10e-9, None]
    assert found["start_times"] == [0, 0, 0, None]
    assert found["errors"] == ["", "", "", "longer than max_model_len"]


def test_details_agree_with_the_statistics():
    result = crowded(False)
    found = json.loads(result.to_json(detailed=True))
    for name, values in (("ttft", found["ttfts"]), ("e2el", found["latencies"]), ("queue_time", found["queue_times"]),
                         ("itl", [gap for gaps in found["itls"] for gap in gaps])):
        assert found[f"mean_{name}_ms"] == pytest.approx(np.mean(values) * 1e3)
        assert found[f"p99_{name}_ms"] == pytest.approx(np.percentile(values, 99) * 1e3)
        assert found[f"std_{name}_ms"] == pytest.approx(np.std(values) * 1e3)


def test_details_in_pieces_are_the_bytes_of_the_whole():
    rows = [*ROWS * 9, (7, 4, 9)]
    for result in (run(Vllm(max_num_seqs=2, max_num_batched_tokens=64), rows, max_model_len=10), static()):
        text = result.to_json(detailed=True)
        assert text == json.dumps(json.loads(text), indent=1) + "\n"
        assert "".join(result.csv_pieces()) == result.requests.to_csv(lineterminator="\n")


def test_a_table_in_pieces_is_the_bytes_of_the_whole(monkeypatch):
    monkeypatch.setattr("simulator.frames.ROWS_AT_ONCE", 2)
    for frame in (static().requests, static().steps, static().requests.iloc[:0]):
        assert "".join(csv_pieces(frame)) == frame.to_csv(lineterminator="\n")


def test_details_are_never_in_memory_as_a_whole(tmp_path):
    """Of 320 answers of 2,000 tokens each, a few are written at once."""
    policy = Vllm(max_num_seqs=320, max_num_batched_tokens=2000)
    result = run(policy, [(0, 4, 2000)] * 320, cost_model=Constant(12_345_678))
    assert len(result.requests) == 320
    result.to_json()
    tracemalloc.start()
    try:
        written = result.save(tmp_path / "run.json", detailed=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < written[0].stat().st_size / 2


def test_no_note_takes_the_name_of_an_array():
    with pytest.raises(InputError, match="metadata 'itls' is a name of the result itself"):
        static().to_json(metadata={"itls": "mine"})


def test_whole_answers_have_no_gaps():
    assert json.loads(static().to_json(detailed=True))["itls"] == [[], [], []]


# --- tables ---------------------------------------------------------------------------------------------------------

def test_the_requests_table():
    frame = run(StaticBatching(max_batch_size=2), [*ROWS, (7, 4, 9)], max_model_len=10).requests
    assert list(frame.columns) == list(REQUEST_COLUMNS)
    assert frame.index.name == "request"
    assert frame["status"].tolist() == ["finished"] * 3 + ["rejected"]
    assert frame["reason"].fillna("").tolist()[2:] == ["", "longer than max_model_len"]
    assert frame.loc[1, ["sent", "admitted", "first_token", "last_token", "delivered", "left"]].tolist() == [
        0, 0, 10e-9, 30e-9, 30e-9, 30e-9]
    assert frame.loc[2, ["queue_time", "ttft", "e2el", "ttft_prefill", "ttft_delivery"]].tolist() == [
        30e-9, 50e-9, 50e-9, 10e-9, 10e-9]
    assert frame["tpot"].isna().all()
    assert frame.loc[3, ["sent", "admitted", "ttft", "preemptions"]].isna().all()


def test_tpot_stands_with_its_request():
    assert vllm().requests["tpot"].fillna(0).tolist() == [0, 10e-9, 10e-9]


def test_the_steps_table():
    frame = static().steps
    assert list(frame.columns) == list(STEP_COLUMNS)
    assert frame["held"].tolist() == [0, 1, 1, 0, 0]
    assert frame["blocked"].tolist() == ["batch"] * 5
    assert frame["end"].tolist() == [10e-9, 20e-9, 30e-9, 40e-9, 50e-9]
    assert frame["promised"].tolist() == [12, 12, 12, 6, 6]
    assert vllm().steps["promised"].isna().all()


def test_ledgers_speak_of_the_same_run():
    result = crowded(False)
    assert list(result.slot_ledger.parts) == list(SLOT_PARTS)
    took = (result.steps["end"] - result.steps["start"]) * 1e9
    assert result.slot_ledger.parts["decode"] == round((result.steps["decodes"] * took).sum())
    assert 0 < result.summary()["kv_usage_mean"] <= result.summary()["kv_usage_max"] <= 1
    assert result.summary()["recomputed_tokens"] == result.token_ledger.parts["recompute"] > 0


def test_a_result_knows_who_finished():
    result = run(Vllm(max_num_seqs=1, max_num_batched_tokens=8), [(0, 4, 1), (0, 40, 1)], max_model_len=8)
    assert (result.has_finished(0), result.has_finished(1)) == (True, False)
    assert result.block_size == 16


def test_it_introduces_itself_in_a_line_and_in_a_table():
    assert repr(vllm()) == "<Result vllm on made, trace: 3 of 3 requests in 0.000 s, 3 steps>"
    assert "<td>TPOT</td><td>1e-05</td><td>1e-05</td>" in vllm()._repr_html_()
    assert "<td>TPOT</td><td>-</td><td>-</td>" in static()._repr_html_()
    assert "slots that compute new tokens, over 3e-08 s; at most 2" in vllm()._repr_html_()
    assert str(vllm()).startswith(repr(vllm()) + "\n\nWhat was served")


# --- files ----------------------------------------------------------------------------------------------------------

def test_saved_and_loaded_again(tmp_path):
    written = vllm().save(tmp_path / "run.json", detailed=True, label="night", metadata={"site": "B"})
    assert written == [tmp_path / "run.json", tmp_path / "run.requests.csv"]
    assert sorted(tmp_path.iterdir()) == written
    found = load(tmp_path / "run.json")
    assert (found["label"], found["site"], found["completed"]) == ("night", "B", 3)
    assert (tmp_path / "run.json").read_text().endswith("}\n")
    assert (tmp_path / "run.requests.csv").read_text().startswith("request,status,reason")


def test_a_plain_save_writes_one_file(tmp_path):
    assert vllm().save(tmp_path / "run.json") == list(tmp_path.iterdir())
    assert "ttfts" not in load(tmp_path / "run.json")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    target = tmp_path / "run.json"
    target.write_text("old")

    def fail(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        vllm().save(target)
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]
    assert target.read_text() == "old"


def test_metadata_may_not_hide_a_name_of_the_result():
    with pytest.raises(InputError, match="'completed' is a name of the result itself"):
        vllm().to_json(metadata={"completed": "all"})


@pytest.mark.parametrize(("text", "message"), [
    (None, "No such file"), ("{", "is not JSON"), ("[1]", "holds a list"),
    ('{"backend": 1}', "lacks completed, duration")])
def test_what_is_no_result_is_refused_in_one_line(tmp_path, text, message):
    file = tmp_path / "run.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        load(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


def test_importing_loads_neither_pandas_nor_matplotlib():
    code = "import sys, simulator.result; print([name for name in ('pandas', 'matplotlib') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(("record", "told"), [
    ({"num_prompts": "many", "completed": 2, "duration": 1.0, "request_throughput": 7.0},
     ["its counts and its duration must be numbers of at least 0, not 'many'"]),
    ({"num_prompts": 3, "completed": 2, "duration": 1.0, "request_throughput": 7.0},
     ["completed, rejected, failed, skipped, aborted must come to num_prompts, 3, and come to 2",
      "request_throughput must be completed over duration, not 7.0"])])
def test_where_a_count_is_none_nothing_is_counted(record, told):
    assert list(plausible._disagreeing(record)) == told
