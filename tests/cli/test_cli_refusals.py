"""Whatever is wrong with a command line is one line that tells the next move."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.cli import run as run_module
from simulator.cli.main import main
from simulator.policies import POLICIES

KNOWN = ", ".join(POLICIES) + ")"
Call = Callable[..., tuple[int, str, str]]

Refused = Callable[..., str]

WORDS = [
    ("rn", "unknown command 'rn': did you mean 'run'? (known: compare, why, explain, run, plan, sweep, plot, "
           "report, init, list, regress, conformance, reproduce, caveats, bench, calibrate, validate, trace, baseline, "
           "cost)"),
    ("trace descrbe", "unknown command 'descrbe': did you mean 'describe'? (known: describe, convert, slice, "
     "generate, fit, fetch)"),
    ("run --shape stage:5", "cannot read shape 'stage:5' (there are ramp:1-10/300s (requests a second from 1 to 10 in "
     "300 s), stage:5/60s,10/60s, burst:x5/10s@60s (5 times the rate for 10 s from 60 s on), joined by '+')"),
    ("run --tenants chat", "azure-conv-2023 names no tenants; --columns tenant=NAME says which column does"),
    ("run --tenants chat=2,", "--tenants takes NAME or NAME=X, not ''"),
    ("run --scheduler-overhead foo:1,1", f"unknown policy of scheduler_overhead 'foo' (known: all, {KNOWN}"),
    ("run --mix azure-code-2023=x", "--mix azure-code-2023 must be a number, not 'x'"),
    ("plot sw --x=", "--x must be a name, not ''"),
    ("sweep --vary max_num_seqs=1 --backend dask --scheduler=", "--scheduler must be an address, not ''"),
    ("plan --goodput ttft:500 --confidence 1", "confidence must be below 1, not 1.0: 0.95 is usual"),
    ("run --sample 2", "--sample must be at most 1, not 2.0"),
    ("run --prompt-scale 0", "--prompt-scale must be above 0, not 0.0"),
    ("run --output-scale long", "--output-scale must be a number, not 'long'"),
    ("run --trace mooncake-conversation-turns --prompt-scale 2", "trace 'mooncake-conversation-turns' has "
     "conversations, and later prompts hold the answers before them: their lengths cannot change by themselves"),
    ("run --too-long cut", "--too-long must be reject or truncate, not 'cut'"),
    ("run --turns never", "--turns must be wait or recorded, not 'never'"),
    ("run --cap-gaps=-1", "--cap-gaps must be a number of at least 0, not -1.0"),
    ("run --require-prefixes", "trace 'azure-conv-2023' does not tell which prompts begin alike (no hash ids, no turns "
     "that repeat the one before), so what a prefix cache saves on it cannot be known; take a trace with hash ids"),
    ("run --ttft-timeout 0", "--ttft-timeout must be above 0, not 0.0"),
    ("run --max-retries 1.5", "--max-retries must be a whole number, not '1.5'"),
    ("run --request-overhead 1e300", "--request-overhead must be at most 1e+11 ms, not 1e+300"),
    ("run --scheduler-overhead all:1e300,1", "scheduler_overhead of all must be at most 1e+11 ms, not 1e+300"),
    ("run --router robin", "unknown router 'robin': did you mean 'round-robin'? (known: round-robin, random, "
     "least-outstanding, least-kv, power-of-two, session-affinity, prefix-affinity)"),
    ("run --replicas 0", "--replicas must be a whole number of at least 1, not 0"),
    ("run --replicas 2 --router session-affinity", "router session-affinity needs conversations, and azure-conv-2023 "
     "has none"),
    ("run --overflow fair", "overflow fair needs queue_limit: without it no request has to wait at the router"),
    ("run --queue-limit 4 --overflow fair", "overflow fair: tenants are needed, and azure-conv-2023 names none; "
     "--columns tenant=NAME says which column does"),
    ("run --autoscale queue:8", "autoscale needs max_replicas, the most replicas that may run"),
    ("run --autoscale queue:x --max-replicas 3", "autoscale takes queue:N, N requests outstanding a replica, or "
     "utilization:X, a share of the slots up to 1, not 'queue:x'"),
    ("run --classes chat", "--classes takes NAME=VALUE, not 'chat'"),
    ("run --classes chat=ttft", "--classes chat takes NAME:VALUE, not 'ttft'"),
    ("run --classes chat=ttft:fast", "--classes chat ttft must be a number, not 'fast'"),
    ("run --classes chat=ttft:500", "classes: tenants are needed, and azure-conv-2023 names none; "
     "--columns tenant=NAME says which column does"),
    ("compare --replicas 2", "compare looks into one replica: leave out replicas, queue_limit and autoscale, which run "
     "takes"),
    ("run --sed 3", "unknown option '--sed': did you mean '--seed'?"),
    ("run --output d", "unknown option '--output': here it is --result-dir DIR; `batchsim report`, `batchsim init`, "
     "`batchsim calibrate` and 5 more have it"),
    ("baseline save --out d", "unknown option '--out': here it is --output FILE"),
    ("run --slo p99_ttft:500", "unknown option '--slo': here limits are --goodput METRIC:MS; `batchsim plan` has it"),
    ("compare --load saturated", "unknown option '--load': here both loads are run; `batchsim why`, `batchsim run`, "
     "`batchsim sweep` and 3 more have it"),
    ("compare --batch 8", "unknown option '--batch': here it is --set static.max_batch_size=N; `batchsim why` has it"),
    ("run --batch 8", "unknown option '--batch': here it is --policy static --set max_batch_size=N; `batchsim why` has "
     "it"),
    ("run --policies static,vllm", "unknown option '--policies': here it is --policy NAME; `batchsim compare`, "
     "`batchsim explain`, `batchsim bench` have it"),
    ("run --tune", "unknown option '--tune': `batchsim sweep` has it"),
    ("run --max-num-seqs 8", "unknown option '--max-num-seqs': it is a knob of a policy: --set max_num_seqs=X"),
    ("run --tp 2", "unknown option '--tp': give --tensor-parallel-size N"),
    ("list --policy vllm", "unknown option '--policy': `batchsim run`, `batchsim plan`, `batchsim sweep` and 4 more "
     "have it"),
    ("run --set gpu_memory_utilization=0.9", "gpu_memory_utilization is no knob of vllm: give "
     "--gpu-memory-utilization"),
    ("compare --set vllm.num_prompts=9", "num_prompts is no knob of vllm: give --num-prompts"),
    ("sweep --vary max_num_seqs=8..64", "--vary max_num_seqs takes values between commas, not '8..64': --tune searches "
     "between two numbers"),
    ("plan --goodput p99_ttft:500", "unknown goodput objective 'p99_ttft' (known: ttft, tpot, e2el); `batchsim plan` "
     "keeps a percentile: --slo p99_ttft:500"),
    ("run --autoscale queue=64 --max-replicas 3", "--autoscale must be written queue:64, not 'queue=64'"),
    ("run --gpu-memory-utilization 0.1", "llama-3.1-8b in bf16 on 1 x h100-80 does not fit into 0.1 of the memory "
     "(gpu_memory_utilization): 9,708,137,216 bytes (9.7 GB) are missing for one token of KV cache; use more of the "
     "memory, dtype fp8, a larger tensor_parallel_size or a bigger GPU"),
    ("run --zzz", "unknown option '--zzz': see `batchsim run --help`"),
    ("--zzz", "unknown option '--zzz': see `batchsim --help`"),
    ("run x", "got unexpected extra argument(s) (x): see `batchsim run --help`"),
    ("trace describe", "missing argument 'NAME|FILE': see `batchsim trace describe --help`"),
    ("list polcies", "unknown list 'polcies': did you mean 'policies'? "
                     "(known: policies, models, gpus, traces, cost-models)"),
    ("run --policy vlm", "unknown policy 'vlm': did you mean 'vllm'? (known: " + KNOWN),
    ("compare --policies static,vlm", "unknown policy 'vlm': did you mean 'vllm'? (known: " + KNOWN),
    ("compare --policies static", "compare needs at least two policies, such as static,vllm"),
    ("compare --replications 1", "replications must be a whole number of at least 2, not 1"),
    ("sweep --vary max_num_seqs=1,2 --tune --replications 3", "--tune runs each point once: give --replications with "
     "what it found, in --vary or --list"),
    ("compare --replications few", "--replications must be a whole number, not 'few'"),
    ("compare --policies static,,vllm", "--policies takes words between commas, not 'static,,vllm'"),
    ("run --load full", "--load must be saturated or trace, not 'full'"),
    ("run --seed x", "--seed must be a whole number, not 'x'"),
    ("run --seed=-1", "--seed must be a whole number of at least 0, not -1"),
    ("run --num-prompts 0", "--num-prompts must be a whole number of at least 1, not 0"),
    ("run --num-prompts 1.5", "--num-prompts must be a whole number, not '1.5'"),
    ("run --rate-scale nan", "--rate-scale must be a number, not 'nan'"),
    ("run --burstiness 0", "--burstiness must be above 0, not 0.0"),
    ("run --error-band 0", "--error-band must be above 0, not 0.0"),
    ("run --error-band 100", "--error-band must be below 100 percent, not 100.0"),
    ("run --kv-capacity-tokens much", "--kv-capacity-tokens must be a whole number, not 'much'"),
    ("run --gpu-memory-utilization 2", "--gpu-memory-utilization must be at most 1, not 2.0"),
    ("run --goodput ttft", "--goodput takes NAME:VALUE, not 'ttft'"),
    ("run --goodput ttft:soon", "--goodput ttft must be a number, not 'soon'"),
    ("run --goodput p99:500", "unknown goodput objective 'p99' (known: ttft, tpot, e2el); `batchsim plan` keeps a "
     "percentile: --slo p99_ttft:500"),
    ("run --goodput p99.9_e2el_ms:1234567", "unknown goodput objective 'p99.9_e2el_ms' (known: ttft, tpot, e2el); "
     "`batchsim plan` keeps a percentile: --slo p99.9_e2el:1234567"),
    ("run --goodput p99_itl:500", "unknown goodput objective 'p99_itl' (known: ttft, tpot, e2el)"),
    ("run --goodput tft:1", "unknown goodput objective 'tft' (known: ttft, tpot, e2el)"),
    ("run --set max_num_seqs", "--set takes NAME=VALUE, not 'max_num_seqs'"),
    ("run --set max_num_seqs=1 --set max_num_seqs=2", "--set says 'max_num_seqs' twice"),
    ("run --set max_num_seqs=many", "vllm: max_num_seqs must be a whole number of at least 1, not 'many'"),
    ("run --set static.padded=true", 
     "setting static.padded is for static, and what runs here is vllm: choose static as policy, or leave that "
     "setting out"),
    ("run --metadata note", "--metadata takes NAME=VALUE, not 'note'"),
    ("run --metric-percentiles 101", "--metric-percentiles lie between 0 and 100, not at 101"),
    ("run --columns arrival", "--columns takes NAME=VALUE, not 'arrival'"),
    ("run --trace .", ".: holds no files"),
    ("run --result-filename a/b.json", "'a/b.json' is no name for a result file: give a plain name such as run.json"),
    ("run --policy mine.py", "policy 'mine.py' names no class: write FILE.py:CLASS, such as my_file.py:MyPolicy"),
    ("run --policy mine.py:P", "policy file mine.py: No such file or directory"),
    ("bench plannin", "unknown workload 'plannin': did you mean 'planning'? (known: planning, command, saturated-256, "
                      "saturated-128, million, read, policies)"),
    ("bench --policies vlm", "unknown policy 'vlm': did you mean 'vllm'? (known: " + KNOWN),
    ("bench --policies vllm,", "--policies takes words between commas, not 'vllm,'"),
    ("bench --repeat 0", "--repeat must be a whole number of at least 1, not 0"),
    ("bench --repeat often", "--repeat must be a whole number, not 'often'"),
    ("bench --seed=-1", "--seed must be a whole number of at least 0, not -1"),
]
STARTS = [
    ("run --set max_num_seq=3", "unknown knob of vllm 'max_num_seq': did you mean 'max_num_seqs'? (known: "),
    ("compare --set max_batch=3", "unknown knob of static, vllm 'max_batch': did you mean 'max_batch_size'? (known: "),
    ("run --gpu h10", "unknown GPU 'h10': did you mean 'h100-80'? (known: "),
    ("run --model lama-3.1-8b", "unknown model 'lama-3.1-8b': did you mean 'llama-3.1-8b'? (known: "),
    ("run --cost-model rofline", "unknown cost model 'rofline': did you mean 'roofline'? (known: "),
    ("run --dtype int4", "unknown dtype 'int4' (known: "),
    ("run --tensor-parallel-size 3", "tensor_parallel_size 3 does not deal the "),
    ("run --trace azure-conv", "no trace file or bundled trace 'azure-conv': did you mean 'azure-conv-2023'? "),
    ("trace describe nowhere.csv", "no trace file or bundled trace 'nowhere.csv'"),
    ("run --max-tokens some", "unknown rule 'some' for max_tokens"),
    ("run --percentile-metrics ttf", "unknown latency metric 'ttf': did you mean 'ttft'? (known: "),
]


@pytest.mark.parametrize(("line", "told"), WORDS)
def test_refused_with_these_words(line: str, told: str, refused: Refused) -> None:
    assert refused(*line.split()) == told


@pytest.mark.parametrize(("line", "start"), STARTS)
def test_refused_with_the_nearest_name(line: str, start: str, refused: Refused) -> None:
    assert refused(*line.split()).startswith(start)


def test_an_option_without_its_value(refused: Refused) -> None:
    assert refused("run", "--seed") == "option '--seed' requires an argument: see `batchsim run --help`"
    assert refused("trace", "describe", "-o").endswith("an argument: see `batchsim trace describe --help`")


@pytest.mark.parametrize(("row", "column", "value"), [
    ("-1,10,5", "t", "'-1'"), ("1,0,5", "p", "'0'"), ("1,10,2.5", "o", "'2.5'"), ("x,10,5", "t", "'x'")])
def test_a_bad_row_is_named(row: str, column: str, value: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(f"t,p,o\n0,10,5\n{row}\n")
    columns = "arrival=t,prompt=p,output=o"
    told = refused("run", "--trace", "mine.csv", "--columns", columns, "--unit", "s")
    assert told.startswith(f"mine.csv, line 3, column {column}: {value} ")


def test_a_missing_column_is_named(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("t,p,o\n0,10,5\n")
    told = refused("trace", "describe", "mine.csv", "--columns", "arrival=t,prompt=p,output=out", "--unit", "s")
    assert told.startswith("mine.csv: no column 'out' for output")


def test_a_name_that_would_break_the_line_is_escaped(refused: Refused) -> None:
    assert refused("run", "--policy", "a\nb\x1b[31m") == r"unknown policy 'a\nb\x1b[31m' (known: " + KNOWN


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let the simulation end in this error."""

    def plant(error: BaseException) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error
        monkeypatch.setattr(run_module, "simulate", fail)

    return plant


@pytest.mark.parametrize(("error", "told"), [
    (MemoryError("Unable to allocate 9.00 TiB for an array"), "there is not enough memory (Unable to allocate 9.00 TiB "
     "for an array): ask for less at once, such as --num-prompts"),
    (FileNotFoundError(2, "No such file or directory"), "No such file or directory: is the current directory gone?"),
    (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: No such file or directory"),
    (OSError(28, "No space left on device"), "No space left on device"), (OSError(), "OSError"),
])
def test_what_the_system_refuses_is_one_line_and_status_2(error: Exception, told: str,
                                                          broken: Callable[[BaseException], None],
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    broken(error)
    assert main(["run", "--num-prompts", "5"]) == 2
    assert capsys.readouterr() == ("", f"batchsim: {told}\n")


def test_our_own_fault_is_one_line_and_status_70(broken: Callable[[BaseException], None],
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    broken(ZeroDivisionError("division by zero"))
    assert main(["run", "--num-prompts", "5"]) == 70
    out, err = capsys.readouterr()
    assert (out, err) == ("", "batchsim: internal error: ZeroDivisionError: division by zero; run again with --debug "
                              "for the traceback\n")


def test_debug_shows_the_traceback(broken: Callable[[BaseException], None], capsys: pytest.CaptureFixture[str]) -> None:
    broken(ZeroDivisionError("division by zero"))
    assert main(["run", "--num-prompts", "5", "--debug"]) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert err.splitlines()[-1].startswith("batchsim: internal error: ")


def test_an_interrupt_is_one_line_and_status_130(broken: Callable[[BaseException], None],
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    broken(KeyboardInterrupt())
    assert main(["run", "--num-prompts", "5"]) == 130
    assert capsys.readouterr().err == "batchsim: interrupted\n"


def test_a_place_where_nothing_can_be_written(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    assert refused("run", "--num-prompts", "5", "-o", "taken") == (
        "taken is a file, not a directory: give another --result-dir")
    assert refused("run", "--num-prompts", "5", "-o", "taken/below").startswith("taken/below: ")


@pytest.mark.parametrize(("line", "message"), [
    ("run -o ''", "--result-dir must name a directory, not ''"),
    ("run --mix ''", "--mix takes NAME or NAME=X, not ''"),
    ("why -o ''", "--result-dir must name a directory, not ''"),
    ("run --shape ''", "unknown shape ''"),
    ("run --set .max_num_seqs=3", "names no policy before its dot: write max_num_seqs or POLICY.max_num_seqs"),
    ("run --policy static --set run_to=inf", "static: run_to must be at most 131072"),
    ("run --set block_size=5000000000", "vllm: block_size must be at most 1048576, not 5000000000"),
    ("run --max-model-len 100000000000000000000", "--max-model-len must be at most 1152921504606846976 or inf"),
    ("run -o there --result-filename ..", "'..' is no name for a result file"),
    ("run --request-rate 3 --rate-scale 2", "rate_scale speeds up the trace's own times, and request_rate"),
])
def test_extremes_are_refused_in_one_line(batchsim: Call, line: str, message: str) -> None:
    status, out, err = batchsim(*shlex.split(line), "--num-prompts", "3")
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("way", ["import sys; sys.exit(0)", "raise BrokenPipeError", "raise GeneratorExit"])
def test_a_policy_file_that_leaves_is_told_so(batchsim: Call, tmp_path: Path, way: str) -> None:
    (tmp_path / "leaves.py").write_text("from simulator.policies import Vllm\nclass Leaves(Vllm):\n"
                                        f"    def plan(self, queue, memory, now):\n        {way}\n")
    status, out, err = batchsim("run", "--num-prompts", "3", "--policy", f"{tmp_path}/leaves.py:Leaves")
    assert (status, out) == (2, "")
    assert "leaves.py, line 4" in err
