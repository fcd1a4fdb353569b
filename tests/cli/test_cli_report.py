"""`batchsim report`: what every command leaves in a directory becomes a page, and nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]
FEW = ("--num-prompts", "30", "--quiet")
COMMANDS = {
    "run": ("run", *FEW),
    "compare": ("compare", *FEW),
    "sweep": ("sweep", *FEW, "--vary", "max_num_seqs=1,8"),
    "plan": ("plan", *FEW, "--goodput", "ttft:5000", "--attainment", "0.5", "--replications", "1",
             "--cost-model", "constant:5"),
}
SAID = {"run": "How does vllm serve azure-conv-2023?", "compare": "What is vllm worth over static on azure-conv-2023?",
        "sweep": "What do other values of max_num_seqs change on azure-conv-2023?",
        "plan": "How many replicas of vllm does the traffic of azure-conv-2023 take, to keep these objectives: 50% of "
                "requests with TTFT &lt;= 5,000 ms?"}
FIGURES = {"run": 3, "compare": 3, "sweep": 2, "plan": 2}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_leaves_what_a_page_needs(batchsim: Call, command: str, tmp_path: Path) -> None:
    assert batchsim(*COMMANDS[command], "-o", "there")[0] == 0
    assert batchsim("report", "there") == (0, "", "written to there/report.html\n")
    page = (tmp_path / "there" / "report.html").read_text()
    assert f"<h1>{SAID[command]}</h1>" in page
    assert page.count("<figure>") == FIGURES[command]
    assert page.count("<tr>") > 8
    assert "cost model" in page
    assert batchsim("report", "there", "--quiet") == (0, "", "")    # it replaces its own page


def test_the_page_goes_where_it_is_told_to(batchsim: Call, refused: Callable[..., str], tmp_path: Path) -> None:
    batchsim(*COMMANDS["run"], "-o", "there")
    assert batchsim("report", "there", "-o", "page.html")[2] == "written to page.html\n"
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["manifest.json", "vllm-trace.json"]
    assert batchsim("report", "there", "-o", "page.html", "--quiet") == (0, "", "")    # it replaces its own page
    (tmp_path / "page.html").write_text((tmp_path / "page.html").read_text().replace("vllm", "mine", 1))
    assert refused("report", "there", "-o", "page.html") == (
        "page.html exists: give --force to replace it, or another --output")
    assert batchsim("report", "there", "-o", "page.html", "--force", "--quiet") == (0, "", "")
    assert refused("report", "there", "-o", "page.txt") == "--output is a page, which ends in .html, not 'page.txt'"


def test_json_is_one_document_of_what_the_page_says(batchsim: Call, tmp_path: Path) -> None:
    batchsim(*COMMANDS["run"], "-o", "there")
    status, out, err = batchsim("report", "there", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["page"] == "there/report.html"
    assert (tmp_path / told["page"]).is_file()
    [chapter] = told["chapters"]
    assert (chapter["command"], chapter["question"]) == ("run", SAID["run"])
    assert [table["title"] for table in chapter["tables"]][:2] == ["What was served", "Latencies, in ms"]
    assert chapter["scenario"]["num_prompts"] == 30


def test_a_page_draws_nothing_at_random(batchsim: Call) -> None:
    assert "--seed" not in batchsim("report", "--help")[1]


def test_a_page_that_was_changed_since_stays(batchsim: Call, refused: Callable[..., str], tmp_path: Path) -> None:
    batchsim(*COMMANDS["run"], "-o", "there")
    batchsim("report", "there")
    (tmp_path / "there" / "report.html").write_text("mine")
    assert refused("report", "there").startswith("there/report.html was not written by an earlier run, or was changed")


def test_nothing_to_report(refused: Callable[..., str], tmp_path: Path) -> None:
    assert refused("report", "nowhere").startswith("nowhere is no directory: give one that `batchsim run -o`")
    (tmp_path / "empty").mkdir()
    assert refused("report", "empty").startswith("empty holds nothing to report: give a directory that")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_plan_without_an_answer_is_told_too(batchsim: Call, tmp_path: Path) -> None:
    command = ("plan", *FEW, "--goodput", "ttft:1", "--cost-model", "constant:5", "-o", "there")
    assert batchsim(*command)[0] == 1
    assert batchsim("report", "there", "--quiet") == (0, "", "")
    page = (tmp_path / "there" / "report.html").read_text()
    assert "No answer" in page
    assert "<figure>" not in page
