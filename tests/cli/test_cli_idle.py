"""A flag that decides nothing is refused, or told of: nobody is left to think that it was heeded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.idle import idle
from simulator.scenario import FIELDS, Scenario

Call = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]

REFUSED = [
    ("run --burstiness 2", "--burstiness has no effect: it spaces new arrivals, and these are the trace's own: give "
                           "request_rate, or a ramp or a stage of shape"),
    ("run --load saturated --rate-scale 2", "--rate-scale has no effect: with load saturated every request comes at 0: "
                                            "give load trace"),
    ("run --load saturated --request-rate 2", "--request-rate has no effect: with load saturated every request comes "
                                              "at 0: give load trace"),
    ("run --retry-backoff 3", "--retry-backoff has no effect: nothing is sent again: give max_retries"),
    ("run --max-replicas 3", "--max-replicas has no effect: without autoscale there are as many replicas as replicas "
                             "says"),
    ("run --router random", "--router has no effect: there is one replica to choose from: give replicas"),
    ("run --kv-capacity-tokens 9000 --gpu-memory-utilization 0.5", "--gpu-memory-utilization has no effect: "
     "kv_capacity_tokens says how large the KV cache is: give one of them"),
    ("run --scheduler-overhead static:1,1", "--scheduler-overhead has no effect: it is that of static, and the policy "
                                            "is vllm"),
    ("run --prices a100-80=2.5", "--prices has no effect: there is none of h100-80, the GPU of this run: give --prices "
                                 "h100-80=DOLLARS"),
    ("compare --gpu l40s --prices h100-80=2,a100-80=1", "--prices has no effect: there is none of l40s, the GPU of "
                                                        "this run: give --prices l40s=DOLLARS"),
    ("explain --prices h100-80=2", "--prices has no effect: a run tells the bill, and a plan what a million tokens "
                                   "cost"),
    ("why --prices h100-80=2", "--prices has no effect: a factor of two runs has none: a run tells the bill, and a "
                               "plan what a million tokens cost"),
    ("baseline save --cooldown 3", "--cooldown has no effect: without autoscale there are as many replicas as replicas "
                                   "says"),
    ("compare --scheduler-overhead tgi:1,1", "--scheduler-overhead has no effect: it is that of tgi, and the policy is "
                                             "static"),
    ("compare --isolation", "--isolation has no effect: a run tells it: batchsim run --isolation"),
    ("why --rate-scale 2", "--rate-scale has no effect: with load saturated every request comes at 0: give load trace"),
    ("why --max-switches 3", "--max-switches has no effect: it is for --shapley"),
    ("explain --rate-scale 2", "--rate-scale has no effect: --request-rate sets the load of the last two questions, "
                               "and everything else is saturated"),
    ("plan --goodput ttft:500 --replicas 2", "--replicas has no effect: that is what is looked for: give --find rate"),
    ("sweep --vary max_num_seqs=1,2 --trials 3", "--trials is for a search: give --tune, or leave it out"),
    ("plan --retries 3", "unknown option '--retries': `batchsim sweep` has it; did you mean '--max-retries'?"),
    ("list --seed 3", "unknown option '--seed': `batchsim compare`, `batchsim why`, `batchsim explain` and 16 "
     "more have it"),
]
HEEDED = ["--burstiness 2 --request-rate 5", "--burstiness 2 --shape ramp:1-10/9s", "--retry-backoff 3 --max-retries 1",
          "--router random --replicas 2", "--scheduler-overhead vllm:1,1", "--scheduler-overhead all:1,1",
          "--prices h100-80=2,a100-80=1",
          "--autoscale queue:1 --max-replicas 2 --startup-delay 1 --cooldown 1 --min-replicas 1 --router random"]


@pytest.mark.parametrize(("line", "told"), REFUSED)
def test_a_flag_without_effect_is_refused(line: str, told: str, refused: Refused) -> None:
    assert refused(*line.split()) == told


@pytest.mark.parametrize("line", HEEDED)
def test_a_flag_with_an_effect_is_not(line: str, batchsim: Call) -> None:
    assert batchsim("run", "--num-prompts", "3", "--json", *line.split())[0] == 0


def test_what_one_point_of_a_sweep_heeds_is_heeded(batchsim: Call) -> None:
    line = "sweep --num-prompts 3 --workers 1 --router random --cooldown 5 --vary replicas=1,2"
    status, _, err = batchsim(*line.split())
    assert status == 0
    assert "--router" not in err
    assert "batchsim: --cooldown has no effect: without autoscale" in err


def test_a_price_of_no_point_of_a_sweep_is_told_and_one_of_some_heeded(batchsim: Call) -> None:
    line = ["sweep", "--num-prompts", "3", "--workers", "1", "--vary", "max_num_seqs=1,2", "--prices", "a100-80=1"]
    status, _, err = batchsim(*line)
    assert status == 0
    assert "batchsim: --prices has no effect: there is none of h100-80" in err
    assert "--prices" not in batchsim(*line, "--vary", "gpu=h100-80,a100-80", "-o", "of-two")[2]


def test_what_is_idle_is_a_field() -> None:
    full = Scenario(load="saturated", kv_capacity_tokens=100, scheduler_overhead={"tgi": (1, 1)})
    assert {"rate_scale", "router", "scheduler_overhead"} < set(idle(full)) < {*FIELDS}


@pytest.mark.parametrize(("knobs", "told"), [
    ("max_batch_size=2", True), ("max_waiting_tokens=3", True), ("block_size=16", False),
    ("max_batch_size=2 --set support_chunking=false", False)])
def test_a_knob_without_effect_is_told_of(knobs: str, told: bool, batchsim: Call) -> None:
    status, out, _ = batchsim("run", "--num-prompts", "3", "--policy", "tgi", "--set", *knobs.split())
    assert status == 0
    assert ("of tgi has no effect beside its other knobs" in out) == told


@pytest.mark.parametrize(("rows", "flags", "told"), [
    ("2024-01-01 10:00:00,10,5", "--unit s", "unit s has no effect: the times in column when are dates; leave it out"),
    ("1,10,5", "--unit s --columns arrival=", "unit s has no effect: there are no times; leave it out"),
    ("2024-01-01 10:00:00,10,5", "--turns recorded", "turns recorded has no effect: the trace tells no conversations; "
                                                     "--columns session=NAME does"),
])
def test_what_says_nothing_of_this_trace_is_told_of(rows: str, flags: str, told: str, batchsim: Call,
                                                    tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"when,prompt,output\n{rows}\n")
    line = ("run", "--trace", "t.csv", *([] if "arrival" in flags else ["--columns", "arrival=when"]), *flags.split())
    status, out, _ = batchsim(*line)
    assert (status, out.splitlines().count(told)) == (0, 1)


@pytest.mark.parametrize("flags", ["--columns arrival=when --unit s", "--columns arrival=when,session=who --unit s "
                                                                      "--turns recorded"])
def test_what_says_something_of_it_is_not(flags: str, batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("when,who,prompt,output\n1,a,10,5\n2,a,20,5\n")
    status, out, _ = batchsim("run", "--trace", "t.csv", *flags.split())
    assert (status, "has no effect" in out) == (0, False)


@pytest.mark.parametrize("header", ["ts,in_tokens,out_tokens", "arrival,prompt,output"])
def test_a_table_that_is_mixed_in_is_written_anew_first(header: str, batchsim: Call, refused: Refused,
                                                        tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n1,10,5\n2,20,5\n")
    assert refused("run", "--mix", "t.csv", "--num-prompts", "5") == (
        "mix: t.csv names its columns or times in its own way, and columns and unit are of --trace: write it anew with "
        "batchsim trace convert t.csv OUT.csv --columns ... --unit ..., and mix OUT.csv")
    columns = ",".join(map("=".join, zip(("arrival", "prompt", "output"), header.split(","), strict=True)))
    assert batchsim("trace", "convert", "t.csv", "OUT.csv", "--columns", columns, "--unit", "s")[0] == 0
    assert batchsim("run", "--mix", "OUT.csv", "--num-prompts", "5")[0] == 0
