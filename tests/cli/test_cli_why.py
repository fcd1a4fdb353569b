"""`batchsim why`: every row can be run again by its command, and the answer is there in words, JSON and files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulator.studies.why import ORDER

Call = Callable[..., tuple[int, str, str]]
FEW = ("--num-prompts", "60", "--workers", "1", "--kv-capacity-tokens", "20000")


def answer(batchsim: Call, *arguments: str) -> str:
    status, out, err = batchsim(*arguments)
    assert (status, err) == (0, "")
    return out


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["corrections"] + [rung for ladder in document["ladders"] for rung in ladder["rungs"]]


@pytest.mark.parametrize("flags", [
    ("--batch", "8"),
    ("--set", "static.run_to=300", "--set", "static.sleep_per_batch=20", "--set", "static.max_wait=inf", "--seed", "3"),
    ("--scheduler-overhead", "vllm:0.1,0.016", "--set", "max_num_seqs=16", "--cuda-graph-sizes", "vllm"),
    ("--load", "trace", "--rate-scale", "4", "--set", "static.reserve=model", "--set", "block_size=32",
     "--max-model-len", "8192"),
])
def test_every_row_can_be_run_again(flags: tuple[str, ...], batchsim: Call) -> None:
    document = json.loads(answer(batchsim, "why", "--json", *FEW, *flags))
    rows = rows_of(document)
    assert len({row["command"] for row in rows}) >= 8
    for command, row in {row["command"]: row for row in rows}.items():
        program, *arguments = shlex.split(command)
        run = json.loads(answer(batchsim, *arguments, "--json"))
        assert program == "batchsim"
        assert run["policy"] == "hybrid"
        assert (run["output_throughput"], run["steps"], run["completed"], run["preemptions"]) == (
            pytest.approx(row["value"]), row["steps"], row["completed"], row["preemptions"])


def test_the_answer_stands_in_words_with_its_conventions_and_commands(batchsim: Call) -> None:
    text = answer(batchsim, "why", "--shapley", *FEW)
    for part in ("From static to vllm on azure-conv-2023, 60 requests", "comes from, in the natural order",
                 "comes from, with padding first", "Without an order: the mean over all of them (Shapley)",
                 "The order matters: ", "What freed slots alone can be worth, with up to ",
                 "at most, for batches in the trace's own order of arrival", "here, with prompts mixed in",
                 "KV pool: 20,000 tokens",
                 "Run any row again: batchsim run --policy hybrid --load saturated --num-prompts 60",
                 "leads the next batch"):
        assert " ".join(part.split()) in " ".join(text.split())


def test_where_one_switch_differs_there_is_no_order_to_speak_of(batchsim: Call) -> None:
    text = answer(batchsim, "why", *FEW, "--from", "vllm", "--to", "hybrid", "--set", "hybrid.max_num_seqs=16")
    assert "comes from, in the natural order" in " ".join(text.split())
    assert ORDER.partition(":")[0] not in text
    assert ORDER.partition(":")[0] in answer(batchsim, "why", *FEW)


def test_files_are_written_if_asked_for_and_the_same_each_time(batchsim: Call, tmp_path: Path) -> None:
    for name in ("a", "b"):
        status, _, err = batchsim("why", *FEW, "-o", name)
        assert (status, err) == (0, f"written to {name}/: why.json and ladder.svg\n")
    one, other = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("a", "b"))
    assert one == other
    assert set(one) == {"why.json", "ladder.svg", "manifest.json"}
    assert b"<svg" in one["ladder.svg"]


def test_without_a_directory_nothing_is_written(batchsim: Call, tmp_path: Path) -> None:
    answer(batchsim, "why", *FEW)
    assert list(tmp_path.iterdir()) == []


def test_a_ratio_without_a_value_has_no_figure(batchsim: Call, tmp_path: Path) -> None:
    status, out, _ = batchsim("why", *FEW, "--metric", "goodput", "--goodput", "e2el:0.001", "-o", "out")
    assert status == 0
    assert "no ratio in good requests/s" in out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "why.json"]


@pytest.mark.parametrize(("line", "told"), [
    ("why --from dynamic", "dynamic cannot be taken apart by switches: choose among static, vllm and hybrid"),
    ("why --metric speed", "unknown metric 'speed' (known: throughput, goodput, cost)"),
    ("why --shapley --max-switches 3", "6 switches differ, and their Shapley shares take up to 64 runs: give "
                                       "--max-switches 6 if you have the time"),
    ("why --max-switches many", "--max-switches must be a whole number, not 'many'"),
    ("why --batch x", "--batch must be a whole number, not 'x'"),
    ("why --batch 0", "static: max_batch_size must be a whole number of at least 1, not 0"),
    ("why --from vllm --to static --batch 3", "unknown knob of vllm 'max_batch_size'"),
    ("why --workers 0", "workers must be a whole number of at least 1, not 0"),
])
def test_what_it_refuses(line: str, told: str, refused: Callable[..., str]) -> None:
    assert refused(*line.split()).startswith(told)


def test_a_ratio_of_nobody_to_nobody_ends_with_1(batchsim: Call) -> None:
    status, out, err = batchsim("why", "--num-prompts", "5", "--max-tokens", "exact", "--kv-capacity-tokens", "16")
    assert status == 1
    assert "How the switches are meant" in out
    assert err.startswith("batchsim: nobody was served: of 5 requests, 5 rejected (never fits the KV pool: 5; ")


def test_what_was_done_to_the_trace_is_told(batchsim: Call) -> None:
    line = ("why", "--num-prompts", "5", "--sample", "0.9", "--output-scale", "0.5")
    done = ["a sample of 0.9 of the requests", "prompts x 1, outputs x 0.5"]
    assert set(done) <= set(batchsim(*line)[1].splitlines())
    assert json.loads(batchsim(*line, "--json")[1])["trace_notes"] == done
    assert json.loads(batchsim("why", "--num-prompts", "5", "--json")[1])["trace_notes"] == []
