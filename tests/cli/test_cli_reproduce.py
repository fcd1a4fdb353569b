"""`batchsim reproduce` and `batchsim caveats`: words, one document, files, refusals and exit statuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.studies.reproduce import Verdict, answers
from simulator.studies.reproduce.spec import bundled_specs
from simulator.studies.reproduce.verdict import Baseline, Row, verdict_spec

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables keep their rows on one line, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "120")


def test_it_prints_what_was_published_ours_and_every_assumption(batchsim: Call) -> None:
    status, out, err = batchsim("reproduce", "vllm-memory")
    assert (status, err) == (0, "")
    words = " ".join(out.split())
    assert "Orca Max, requests at once 7 7 +0.0% exact yes" in words
    for told in ("source: Kwon et al.", "assumed: KV pool: 12 GB", "run pow2: orca, reserve=pow2, placement=buddy"):
        assert told in words
    assert out.endswith("Stated tolerances missed: none. Rows without a stated tolerance: 1.\n")
    assert out.startswith("\nvllm-memory: 7.00, 9.81, 13.62 and 30.42 requests at once come out as 7, ")


def test_json_is_one_document(batchsim: Call) -> None:
    status, out, err = batchsim("reproduce", "tgi-v3", "vllm-memory", "tgi-v3", "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert [each["name"] for each in document["reproductions"]] == ["tgi-v3", "vllm-memory"]
    assert document["missed"] == 0


def test_a_missed_tolerance_is_an_honest_no(batchsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = bundled_specs()["vllm-memory"]
    first, *others = spec.claims
    wrong = replace(spec, claims=(replace(first, published=7.5), *others))
    monkeypatch.setattr(answers, "bundled_specs", lambda: {"vllm-memory": wrong})
    status, out, err = batchsim("reproduce", "vllm-memory")
    assert (status, err) == (1, "")
    assert out.endswith("Stated tolerances missed: 1 in vllm-memory. Rows without a stated tolerance: 1.\n")
    assert "Stated tolerances: 1 of 8 are missed." in " ".join(out.split())
    assert "NO" in out
    status, out, _ = batchsim("reproduce", "vllm-memory", "--json")
    assert (status, json.loads(out)["missed"]) == (1, 1)


def test_each_is_shown_as_soon_as_it_is_done(batchsim: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = bundled_specs()
    broken = replace(specs["tgi-v3"], scenario={"load": "nonsense"})
    monkeypatch.setattr(answers, "bundled_specs", lambda: {**specs, "tgi-v3": broken})
    status, out, _ = batchsim("reproduce", "vllm-memory", "tgi-v3")
    assert status == 2
    assert out.startswith("\nvllm-memory: ")


def test_files_are_written_where_asked_and_replace_nothing_else(batchsim: Call, tmp_path: Path) -> None:
    status, _, err = batchsim("reproduce", "vllm-memory", "-o", "out")
    assert (status, err) == (0, "written to out/: reproduce.json and a figure of each\n")
    files = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert set(files) == {"reproduce.json", "vllm-memory.svg", "manifest.json"}
    assert batchsim("reproduce", "vllm-memory", "-o", "out", "--quiet")[0] == 0
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == files
    (tmp_path / "out" / "vllm-memory.svg").write_text("mine")
    status, out, err = batchsim("reproduce", "vllm-memory", "-o", "out")
    assert (status, out) == (2, "")
    assert "was not written by an earlier run" in err


def test_a_verdict_has_a_figure_of_its_own(batchsim: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = verdict_spec()
    rows = (Row(next(iter(spec.traces)), Baseline(8, "declared"), 2.0, 6.0, 1.5, 5, spec.range),)
    monkeypatch.setattr("simulator.cli.reproduce.study", lambda names, **_: [Verdict(spec, rows)])
    status, out, err = batchsim("reproduce", "verdict", "-o", "out")
    assert (status, err) == (0, "written to out/: reproduce.json and a figure of each\n")
    assert "10-20x holds in 2 of 2 ratios" in " ".join(out.split())
    assert b"over that of the static baseline" in (tmp_path / "out" / "verdict.svg").read_bytes()


def test_caveats_print_ratio_and_reason(batchsim: Call, tmp_path: Path) -> None:
    status, out, err = batchsim("caveats", "-o", "out")
    assert (status, err) == (0, "written to out/: caveats.json and caveats.svg\n")
    assert "equal answers" in out
    assert "1.00x" in out
    assert "and that is 1." in out
    assert batchsim("caveats", "-o", "out", "--quiet")[2] == ""
    status, document, err = batchsim("caveats", "--json")
    assert (status, err) == (0, "")
    assert document == (tmp_path / "out" / "caveats.json").read_text()
    assert [each["name"] for each in json.loads(document)["caveats"]][1] == "equal answers"


@pytest.mark.parametrize(("line", "complaint"), [
    ("reproduce vlm-memory", "unknown reproduction 'vlm-memory': did you mean 'vllm-memory'? (known: all, anyscale, "),
    ("reproduce tgi-v3 nonsense", "unknown reproduction 'nonsense' (known: all, "),
    ("reproduce tgi-v3 -o reproduce.txt/..x/y --jsn", "unknown option '--jsn': did you mean '--json'?"),
    ("caveats --seed x", "--seed must be a whole number, not 'x'"),
    ("caveat", "unknown command 'caveat': did you mean 'caveats'?"),
])
def test_refusals(line: str, complaint: str, refused: Callable[..., str]) -> None:
    assert refused(*line.split()).startswith(complaint)
