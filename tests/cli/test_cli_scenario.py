"""`--scenario FILE` in every command that simulates, and `batchsim init`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.scenario import Scenario
from simulator.scenarios import read_scenario

Call = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]

YAML = "trace: azure-conv-2023\nnum_prompts: 30\npolicy: orca\nknobs: {max_bs: 4}\ngpu: a100-80\nseed: 3\n"
VLLM = "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64 --enable-lora --port 80"


@pytest.fixture
def ask(batchsim: Call, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Call a command with YAML in s.yaml, and read its document."""
    (tmp_path / "s.yaml").write_text(YAML)

    def call(*arguments: str) -> dict[str, Any]:
        status, out, err = batchsim(*arguments, "--json", "--quiet")
        assert (status, err) == (0, ""), err
        return dict(json.loads(out))

    return call


def test_scaled_lengths_are_kept_in_a_scenario_file(batchsim: Call) -> None:
    asked = ("--prompt-scale", "2", "--output-scale", "0.5", "--num-prompts", "20")
    assert batchsim("init", *asked, "-o", "s.yaml")[0] == 0
    found = [json.loads(batchsim("run", "--json", *line)[1]) for line in (asked, ("--scenario", "s.yaml"))]
    for each in found:
        del each["date"]
    assert found[0] == found[1]
    assert found[0]["trace_notes"] == "prompts x 2, outputs x 0.5"


def test_run_takes_what_the_file_says(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask("run", "--scenario", "s.yaml")
    assert (found["policy"], found["gpu"], found["seed"], found["completed"]) == ("orca", "a100-80", 3, 30)
    assert "max_bs=4" in found["policy_args"]


@pytest.mark.parametrize(("flags", "expected"), [
    ("--gpu h100-80", {"gpu": "h100-80", "seed": 3}),    # typed at its default, it wins all the same
    ("--seed 0 --num-prompts 10", {"seed": 0, "completed": 10}),
    ("--set max_bs=2", {"policy_args": "max_bs=2,"}),
    ("--policy vllm", {"policy": "vllm", "policy_args": "max_num_seqs="}),
    ("--load saturated", {"load": "saturated"}),
    ("--replicas 2", {"completed": 30}),
])
def test_a_typed_flag_wins_over_the_file(flags: str, expected: dict[str, Any],
                                         ask: Callable[..., dict[str, Any]]) -> None:
    found = ask("run", "--scenario", "s.yaml", *flags.split())
    for name, value in expected.items():
        assert found[name] == value or str(found[name]).startswith(str(value)), name
    assert found["scenario"]["policy"] == expected.get("policy", "orca")


def test_a_result_is_a_scenario_and_gives_the_same_bytes(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,p,o\n0,10,5\n1,20,6\n")
    flags = ("--trace", "t.csv", "--columns", "arrival=ts,prompt=p,output=o", "--unit", "s", "--goodput", "ttft:500")
    first = batchsim("run", *flags, "--set", "max_num_seqs=3", "--json")[1]
    (tmp_path / "r.json").write_text(first)
    assert batchsim("run", "--scenario", "r.json", "--json") == (0, first, "")
    limited = json.loads(batchsim("run", "--scenario", "r.json", "--limit", "1", "--json")[1])
    assert limited["completed"] == 1    # it is read as the file says, but for the limit
    (tmp_path / "t.csv").write_text("ts,p,o\n0,10,5\n")
    status, _, err = batchsim("run", "--scenario", "r.json")
    assert (status, err) == (2, "batchsim: r.json: t.csv has changed since this result was written: restore it, or "
                                "give --trace t.csv to take it as it is\n")
    assert json.loads(batchsim("run", "--scenario", "r.json", "--trace", "t.csv", "--json")[1])["completed"] == 1


def test_compare_sets_the_policy_of_the_file_beside_static(ask: Callable[..., dict[str, Any]]) -> None:
    found = ask("compare", "--scenario", "s.yaml", "--set", "static.max_batch_size=4", "-o", "out")
    runs = {run["policy"]: run for run in found["runs"]}
    assert list(runs) == ["static", "orca"]
    assert "max_bs=4" in runs["orca"]["policy_args"]
    assert "max_batch_size=4" in runs["static"]["policy_args"]
    assert ask("run", "--scenario", "out/orca-trace.json")["policy"] == "orca"
    assert ask("run", "--scenario", "out/comparison.json")["policy"] == "orca"
    assert [run["policy"] for run in ask("compare", "--scenario", "s.yaml", "--policies", "static,vllm")["runs"]] == [
        "static", "vllm"] * 2


def test_why_and_explain_take_it_and_carry_it(ask: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("num_prompts: 20\nknobs: {max_num_seqs: 8}\nload: saturated\n")
    found = ask("why", "--scenario", "v.yaml", "--gpu", "a100-80", "--workers", "1")
    assert (found["num_prompts"], found["scenario"]["gpu"], found["scenario"]["knobs"]["max_num_seqs"]) == (
        20, "a100-80", 8)
    command = found["ladders"][0]["rungs"][0]["command"]
    assert command.startswith("batchsim run --policy hybrid --load saturated --scenario v.yaml --gpu a100-80 ")
    found = ask("explain", "--scenario", "s.yaml", "--num-prompts", "40")
    assert list(found["story"]) == ["static", "orca"]
    assert (found["scenario"]["num_prompts"], found["scenario"]["knobs"]["max_bs"]) == (40, 4)


@pytest.mark.parametrize(("text", "told"), [
    ("gpuu: x", "s.yaml, line 1: unknown key 'gpuu': did you mean 'gpu'? (nearest of "),
    ("rate_scale: 0", "s.yaml, line 1: rate_scale must be above 0, not 0"),
    ("knobs: {max_num_seq: 3}", "unknown knob of vllm 'max_num_seq': did you mean 'max_num_seqs'? (known: "),
    ("gpu: h10", "unknown GPU 'h10': did you mean 'h100-80'? (known: "),
])
def test_a_wrong_file_is_told_in_one_line(text: str, told: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)
    assert refused("run", "--scenario", "s.yaml").startswith(told)


def test_a_file_that_is_not_there(refused: Refused) -> None:
    assert refused("compare", "--scenario", "none.yaml") == "none.yaml: No such file or directory"


# ---- init

def test_init_refuses_a_trace_that_cannot_be_read(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ts,p,o\n0,10,5\n1,x,6\n")
    flags = ("--trace", "t.csv", "--columns", "arrival=ts,prompt=p,output=o")
    assert refused("init", "--trace", "t.csv").startswith("t.csv: which column is the prompt? say --columns")
    assert refused("init", *flags).startswith("t.csv: ")
    assert refused("init", *flags, "--unit", "s").startswith("t.csv, line 3, column p: 'x' ")
    assert not (tmp_path / "scenario.yaml").exists()


def test_init_writes_a_file_that_asks_for_nothing(batchsim: Call, refused: Refused) -> None:
    assert batchsim("init") == (0, "", "written to scenario.yaml: run it with batchsim run --scenario scenario.yaml\n")
    assert read_scenario("scenario.yaml").scenario() == Scenario()
    assert refused("init") == "scenario.yaml exists: give --force to replace it, or another --output"
    assert batchsim("init", "--force", "--quiet") == (0, "", "")
    assert batchsim("run", "--scenario", "scenario.yaml", "--num-prompts", "5")[0] == 0


def test_init_writes_what_flags_and_files_say(ask: Callable[..., dict[str, Any]]) -> None:
    ask("init", "--scenario", "s.yaml", "--gpu", "h200", "--set", "max_bs=8", "--goodput", "ttft:500,tpot:50",
        "--prices", "h200=3.5", "--load", "saturated", "-o", "new.yaml")
    assert read_scenario("new.yaml").scenario() == Scenario(
        num_prompts=30, policy="orca", knobs={"max_bs": 8}, gpu="h200", seed=3, goodput={"ttft": 500, "tpot": 50},
        prices={"h200": 3.5}, load="saturated")


def test_init_translates_a_command_line(batchsim: Call, ask: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    status, out, _ = batchsim("init", "--from", VLLM, "--gpu", "a100-80")
    assert (status, out.splitlines()) == (0, [
        "meta-llama/Llama-3.1-8B-Instruct sets model: llama-3.1-8b", "--max-num-seqs 64 sets knobs.max_num_seqs: 64",
        "--enable-lora is not modelled: LoRA adapters", "without effect here: --port"])
    assert read_scenario("scenario.yaml").scenario() == Scenario(knobs={"max_num_seqs": 64}, gpu="a100-80")
    text = (tmp_path / "scenario.yaml").read_text()
    assert f"From: {VLLM} --enable-lora is not" in text.replace("\n# ", " ")
    assert "# --enable-lora is not modelled: LoRA adapters\n" in text
    found = ask("init", "--from", VLLM, "--gpu", "a100-80", "-o", "b.yaml")
    assert found["from"]["not_modelled"] == {"--enable-lora": "LoRA adapters"}
    assert found["scenario"]["knobs"] == {"max_num_seqs": 64}


def test_init_says_which_gpu_it_takes_where_nobody_does(batchsim: Call, tmp_path: Path) -> None:
    said = "A command line does not say on which GPU it runs: h100-80 is taken; give --gpu"
    assert batchsim("init", "--from", VLLM)[2].startswith(f"{said}, of those that batchsim list gpus names\nwritten to")
    assert said in (tmp_path / "scenario.yaml").read_text().replace("\n# ", " ")
    for known in (("--gpu", "h100-80"), ("--scenario", "scenario.yaml")):
        assert "which GPU" not in batchsim("init", "--from", VLLM, *known, "--force")[2]
        assert "which GPU" not in (tmp_path / "scenario.yaml").read_text()


def test_init_writes_a_shape_of_ones_own(batchsim: Call, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({
        "architectures": ["MistralForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
        "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 4096}))
    assert batchsim("init", "--from", "vllm serve .", "--num-prompts", "3", "--quiet")[0] == 0
    status, out, _ = batchsim("run", "--scenario", "scenario.yaml", "--json")
    assert (status, json.loads(out)["scenario"]["model"]["hidden"]) == (0, 64)
    assert batchsim("init", "--scenario", "scenario.yaml", "--force", "--quiet")[0] == 0
    assert batchsim("run", "--scenario", "scenario.yaml", "--json") == (0, out, "")


@pytest.mark.parametrize(("arguments", "told"), [
    (("--from", "vllm serve x --max-num-seq 3"), "--from: vLLM has no flag --max-num-seq that is known here: did you "
                                                 "mean --max-num-seqs? If not, leave it out"),
    (("--set", "max_num_seq=3"), "unknown knob of vllm 'max_num_seq': did you mean 'max_num_seqs'? (known: "),
    (("--rate-scale", "0"), "--rate-scale must be above 0, not 0.0"),
    (("-o", "no/where.yaml"), "--output must name a file in a directory that exists, not 'no/where.yaml'"),
    (("--prices", "h100=3"), "unknown GPU 'h100': did you mean 'h100-80'? (known: "),
    (("--trace", "gone.csv"), "no trace file or bundled trace 'gone.csv' (bundled: "),
    (("--trace", "azure-conv"), "no trace file or bundled trace 'azure-conv': did you mean 'azure-conv-2023'? (b"),
    (("--mix", "gone.csv"), "no trace file or bundled trace 'gone.csv' (bundled: "),
    (("--tenants", "chat"), "azure-conv-2023 names no tenants"),
    (("--window", "40:00-41:00"), "azure-conv-2023: no requests in the window 40:00-41:00"),
])
def test_init_writes_nothing_that_could_not_be_run(arguments: tuple[str, ...], told: str, refused: Refused,
                                                   tmp_path: Path) -> None:
    assert refused("init", *arguments).startswith(told)
    assert list(tmp_path.iterdir()) == []
