"""Commands that answer: what they print, and that one JSON document is all there is if it is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import simulator
from cost_models import GPUS, MODELS
from simulator.cli.values import settings
from simulator.policies import POLICIES

Call = Callable[..., tuple[int, str, str]]


def answer(batchsim: Call, *arguments: str) -> str:
    status, out, err = batchsim(*arguments)
    assert (status, err) == (0, "")
    return out


def test_version(batchsim: Call) -> None:
    assert answer(batchsim, "--version") == f"batchsim {simulator.__version__}\n"


@pytest.mark.parametrize("line", ["", "--help", "-h", "run --help", "compare --help", "list -h", "bench -h",
                                  "trace describe -h"])
def test_help(line: str, batchsim: Call) -> None:
    assert " Usage: batchsim " in answer(batchsim, *line.split())


def test_help_names_every_group_of_flags(batchsim: Call) -> None:
    text = answer(batchsim, "run", "--help")
    titles = ("Traffic", "Model, GPU and engine", "Measures", "Files", "Common")
    assert [title for title in titles if title not in text] == []


@pytest.mark.parametrize("kind", ["policies", "models", "gpus", "traces", "cost-models"])
def test_a_list_names_the_same_in_all_its_forms(kind: str, batchsim: Call) -> None:
    rows = json.loads(answer(batchsim, "list", kind, "--json"))
    names = [row["name"] for row in rows]
    brief, verbose = answer(batchsim, "list", kind), answer(batchsim, "list", kind, "--verbose")
    assert names
    assert [name for name in names if name not in brief or name not in verbose] == []
    assert json.loads(answer(batchsim, "list", "--json"))[kind] == names


def test_a_default_is_listed_as_set_takes_it(batchsim: Call) -> None:
    verbose = answer(batchsim, "list", "policies", "--verbose")
    for name, kind in POLICIES.items():
        for knob, default in kind.knobs().items():
            if default is None:
                assert f"  {knob}, not set " in verbose
            else:
                listed = [settings([f"{knob}={text}"])[knob] for text in re.findall(rf"  {knob} = (\S+)", verbose)]
                assert default in listed, (name, knob)


def test_lists_come_from_the_libraries(batchsim: Call) -> None:
    names = json.loads(answer(batchsim, "list", "--json"))
    assert names["policies"] == list(POLICIES)
    assert names["models"] == list(MODELS)
    assert names["gpus"] == list(GPUS)
    assert "azure-conv-2023" in answer(batchsim, "list")


def test_every_knob_is_explained(batchsim: Call) -> None:
    policies = json.loads(answer(batchsim, "list", "policies", "--json"))
    unexplained = [(policy["name"], knob["name"]) for policy in policies for knob in policy["knobs"]
                   if not knob["meaning"]]
    assert unexplained == []
    assert "block_size = 16" in answer(batchsim, "list", "policies", "--verbose")


def test_describe_a_file(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("t,p,o\n1,10,5\n0,20,7\nx,1,1\n3,30,9\n")
    flags = ("mine.csv", "--columns", "arrival=t,prompt=p", "--columns", "output=o", "--unit", "s", "--lenient")
    facts = json.loads(answer(batchsim, "trace", "describe", *flags, "--json"))
    assert (facts["rows"], facts["rejects"], facts["out_of_order"], facts["span_s"]) == (3, 1, 1, 3.0)
    assert facts["prompt"]["p50"] == 20.0
    assert "left out: line 4, column t: 'x' " in answer(batchsim, "trace", "describe", *flags)


def test_a_run_says_what_it_takes_for_granted(batchsim: Call) -> None:
    lines = answer(batchsim, "run", "--num-prompts", "3", "--quiet").splitlines()
    assert lines[1:3] == [
        "trace: azure-conv-2023 (stand-in (seed 0) for: Azure LLM inference trace 2023, conversation)",
        "KV pool: 28,605 blocks of 16 tokens, 55.9 GiB"]
    assert " ".join(lines[3:5]) == (
        "cost model: llama-3.1-8b-h100-80-bf16; on average, its steps may be 1.1% shorter or longer, as held against "
        "kernel times: how far a running engine is from these is not known")
    lines = answer(batchsim, "run", "--num-prompts", "3", "--policy", "static", "--kv-capacity-tokens", "9000",
                   "--replicas", "2", "--cost-model", "roofline", "--quiet").splitlines()
    assert lines[2:4] == ["KV pool: 9,000 tokens, 1.1 GiB in each replica, as given",
                          "cost model: roofline; no error is stated"]


@pytest.mark.parametrize(("flags", "told"), [
    ("--kv-capacity-tokens 64", "3 rejected (never fits the KV pool: 3; the largest has 4,480 tokens): give more KV "
                               "cache (--gpu,"),
    ("--ttft-timeout 0.0001", "3 aborted: give a longer --ttft-timeout or --request-timeout"),
])
def test_a_run_that_serves_nobody_says_why(flags: str, told: str, batchsim: Call) -> None:
    line = ("run", "--num-prompts", "3", *flags.split())
    status, out, err = batchsim(*line)
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith(f"batchsim: nobody was served: of 3 requests, {told}")
    assert "What was served" in out
    status, out, again = batchsim(*line, "--json")
    assert (status, again, json.loads(out)["completed"]) == (1, err, 0)
    status, out, again = batchsim("compare", *line[1:], "--json", "--max-tokens", "exact")
    assert status == (1 if "kv" in flags else 0)    # saturated, nobody hangs up
    assert again.startswith("batchsim: nobody was served: of 3 requests, 3 rejected") == bool(status)


def test_describe_a_bundled_trace(batchsim: Call) -> None:
    one, other = (json.loads(answer(batchsim, "trace", "describe", "azure-code-2023", "--seed", seed, "--json"))
                  for seed in ("0", "1"))
    assert one["rows"] == other["rows"] == 8819
    assert one["digest"] != other["digest"]


def test_run_prints_tables(batchsim: Call, tmp_path: Path) -> None:
    out = answer(batchsim, "run", "--num-prompts", "50", "--policy", "static", "--load", "saturated")
    assert "static on azure-conv-2023, saturated: llama-3.1-8b on h100-80" in out
    assert "E2EL" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("flags", "title"), [
    ("", "at the trace's own times: llama-3.1-8b on h100-80"),
    ("--rate-scale 4 --max-concurrency 8", "at the trace's own times, 4 x as fast, at most 8 at once: llama-3.1-8b on"),
    ("--request-rate 3 --burstiness 2", "new arrivals, 3 requests/s, burstiness 2: llama-3.1-8b on h100-80"),
    ("--load saturated --max-concurrency 8", "saturated, at most 8 at once: llama-3.1-8b on h100-80"),
    ("--dtype fp8 --kv-dtype fp8", "at the trace's own times: llama-3.1-8b in fp8 with KV in fp8 on h100-80"),
    ("--kv-dtype fp8", "at the trace's own times: llama-3.1-8b with KV in fp8 on h100-80"),
])
def test_the_title_of_a_run_tells_it_from_others(flags: str, title: str, batchsim: Call) -> None:
    out = answer(batchsim, "run", "--num-prompts", "20", *flags.split())
    assert f"vllm on azure-conv-2023, {title}" in " ".join(out.split())



def test_run_gives_what_the_library_gives(batchsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    out = answer(batchsim, "run", "--json", "--num-prompts", "50", "--set", "max_num_seqs=8", "--gpu", "h200",
                 "--goodput", "ttft:500", "--metric-percentiles", "50,99.9", "--label", "here", "--metadata", "who=me")
    result = simulator.simulate("azure-conv-2023", "vllm", knobs={"max_num_seqs": 8}, num_prompts=50, gpu="h200",
                                goodput={"ttft": 500.0})
    assert json.loads(out) == json.loads(result.to_json(percentiles=(50, 99.9), label="here", metadata={"who": "me"}))


def test_replicas_and_tenants_have_tables(batchsim: Call) -> None:
    line = ("run", "--num-prompts", "60", "--replicas", "20", "--mix", "azure-code-2023", "--isolation", "--router",
            "least-outstanding", "--classes", "azure-conv-2023=priority:0,ttft:500")
    status, out, _ = batchsim(*line)
    assert status == 0
    assert "vllm on azure-conv-2023+azure-code-2023" in out
    assert "20 replicas behind least-outstanding, each on h100-80" in " ".join(out.split())
    assert "8 between" in out
    assert "azure-code-2023" in out.split("slowdown")[-1]
    found = json.loads(batchsim(*line, "--json")[1])
    assert (found["replicas"], found["router"], len(found["replica_stats"])) == (20, "least-outstanding", 20)
    assert [tenant["tenant"] for tenant in found["tenant_stats"]] == ["azure-conv-2023", "azure-code-2023"]
    assert found["classes"] == "azure-conv-2023=priority:0,ttft:500"
    assert found["worst_slowdown"] >= 1


def test_a_fleet_that_scales_says_so_above_its_answer(batchsim: Call) -> None:
    status, out, _ = batchsim("run", "--num-prompts", "60", "--autoscale", "queue:4", "--max-replicas", "3")
    assert status == 0
    assert ("1 replica to begin with, 1 to 3 by queue:4, behind round-robin, each on h100-80" in
            " ".join(out.split()))


def test_inf_is_taken_as_a_bound(batchsim: Call) -> None:
    out = answer(batchsim, "run", "--json", "--num-prompts", "50", "--request-rate", "inf", "--kv-capacity-tokens",
                 "inf", "--set", "max_num_seqs=inf", "--set", "vllm.max_num_batched_tokens=inf", "--max-concurrency",
                 "inf")
    record = json.loads(out)
    assert record["request_rate"] == record["kv_capacity_tokens"] == "inf"
    assert record["policy_args"].startswith("max_num_seqs=inf,max_num_batched_tokens=inf,block_size=16,")


def test_what_was_left_out_is_said(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"timestamp": 0, "input_length": 10, "output_length": 5}\n'
                                         '{"timestamp": 1, "input_length": 9000, "output_length": 5}\n')
    out = answer(batchsim, "run", "--trace", "mine.jsonl", "--unit", "ms", "--max-model-len", "100")
    assert out.replace("\n", " ").startswith(
        "1 of 2 requests can never be served (longer than max_model_len: 1; the largest has 9,005 tokens): give "
        "--too-long truncate or a model that holds more (--model, --max-model-len), or a trace with shorter requests "
        "vllm on mine.jsonl")
    assert out.count("longer than max_model_len: 1") == 1    # and not again among the remarks
    told = answer(batchsim, "run", "--trace", "mine.jsonl", "--unit", "ms", "--kv-capacity-tokens", "160", "--json")
    assert "rejected: never fits the KV pool: 1; the largest has 9,005 tokens" in json.loads(told)["remarks"]


@pytest.mark.parametrize(("flags", "advice", "not_told"), [
    ("--kv-capacity-tokens 160", "give more KV cache (--gpu, --tensor-parallel-size, --gpu-memory-utilization, "
     "--kv-capacity-tokens), or a trace", "--too-long"),
    ("--set max_model_len=100", "give a larger max_model_len or context_length of the engine (--set) or more KV cache, "
     "or a trace", "--too-long"),
    ("--policy tgi --set support_chunking=false --set max_batch_prefill_tokens=32", "an engine that takes longer "
     "prompts (--set;", "--too-long"),
    ("--max-model-len 8000 --kv-capacity-tokens 160", "give --too-long truncate or a model that holds more (--model, "
     "--max-model-len), or more KV cache (--gpu,", "context_length"),
])
def test_the_advice_follows_the_reason_of_a_rejection(flags: str, advice: str, not_told: str, batchsim: Call,
                                                      tmp_path: Path) -> None:
    """Of four requests one is short; two are longer than any of the bounds, and one than the tightest of them."""
    rows = (f'{{"timestamp": 0, "input_length": {prompt}, "output_length": 5}}\n' for prompt in (10, 9000, 9000, 200))
    (tmp_path / "mine.jsonl").write_text("".join(rows))
    told = " ".join(answer(batchsim, "run", "--trace", "mine.jsonl", "--unit", "ms", *flags.split()).split())
    assert advice in told
    assert not_told not in told


def test_later_turns_wait_or_come_as_recorded(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text(
        '{"timestamp": 0, "input_length": 10, "output_length": 5, "session_id": "a", "delay": 0}\n'
        '{"timestamp": 1, "input_length": 30, "output_length": 5, "session_id": "a", "delay": 90000}\n')
    told = ("run", "--trace", "talk.jsonl", "--trace-format", "mooncake")
    waits, cut, recorded = (answer(batchsim, *told, "--json", *flags) for flags in (
        [], ["--cap-gaps", "60"], ["--turns", "recorded"]))
    found = [json.loads(each) for each in (waits, cut, recorded)]
    assert [(each["turns"], each["skipped"], each["cap_gaps"]) for each in found] == [
        ("wait", 0, None), ("wait", 0, 60), ("recorded", None, None)]
    assert [round(each["duration"], -1) for each in found] == [90, 60, 0]
    assert "turns wait for the answer to the one before" in answer(batchsim, *told)
    assert "turns are sent at their own times" in answer(batchsim, *told, "--turns", "recorded")


def test_compare_gives_runs_and_ratios(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim("compare", "--num-prompts", "40", "--json", "--quiet", "-o", "there")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert [(run["policy"], run["load"]) for run in found["runs"]] == [
        ("static", "saturated"), ("vllm", "saturated"), ("static", "trace"), ("vllm", "trace")]
    assert set(found["speedup"]) == {"scheduling", "paged", "deployed"}
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "batch.svg", "comparison.json", "ladder.svg", "manifest.json", "static-saturated.json", "static-trace.json",
        "timeline.svg", "vllm-saturated.json", "vllm-trace.json"]


def test_compare_prints_tables_and_says_where_the_files_are(batchsim: Call) -> None:
    status, out, err = batchsim("compare", "--num-prompts", "40", "--set", "static.max_batch_size=4")
    assert status == 0
    assert "static" in out
    assert "vllm" in out
    assert err == "written to batchsim-out/: a JSON for each run, comparison.json and the figures\n"


def test_bench_prints_one_document(batchsim: Call) -> None:
    found = json.loads(answer(batchsim, "bench", "planning", "read", "--quick", "--repeat", "1", "--json"))
    planning, read = found["cases"]
    assert found["machine"]["batchsim"] == simulator.__version__
    assert (planning["workload"], planning["policy"], planning["rows"], planning["attempts"]) == (
        "planning", "vllm", 1000, 1)
    assert planning["steps"] >= planning["plans"] > 0
    assert (read["policy"], read["rows"], read["steps"], read["us_per_plan"]) == ("", 20_000, None, None)


def test_bench_prints_tables(batchsim: Call) -> None:
    out = answer(batchsim, "bench", "policies", "--policies", "static,vllm", "--quick", "--repeat", "1")
    assert "Every policy: all at time 0, 256 slots and no other bound" in out
    assert "The slowest step is that of " in out
    assert "What was done, the same on every machine" in out


def test_the_band_of_an_error_is_in_words_and_in_json(batchsim: Call) -> None:
    asked = ("run", "--num-prompts", "20", "--error-band")
    status, out, _ = batchsim(*asked, "5")
    assert status == 0
    assert "with every step 5% shorter or longer: output tokens/s " in out
    assert "mean TTFT in ms 32.19 to 35.94" in " ".join(out.split())
    found = json.loads(batchsim(*asked, "stated", "--json")[1])
    assert found["mean_tpot_ms_low"] < found["mean_tpot_ms"] < found["mean_tpot_ms_high"]
    _, out, _ = batchsim(*asked, "stated", "--cost-model", "roofline")
    assert "no error band: roofline states no error; --error-band 5 takes 5%" in out
