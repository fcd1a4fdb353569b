"""Traces that are drawn, fitted and fetched at the command line: what is written, what is told, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import traces
from simulator.cli.trace_specs import _table
from traces import Kept, Public

Call = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
SPEC = {"rows": 300, "prompt": {"kind": "uniform", "least": 10, "most": 90},
        "output": {"kind": "exponential", "mean": 30}, "arrivals": {"kind": "poisson", "rate": 5}}


@pytest.fixture
def spec(tmp_path: Path, batchsim: Call) -> str:
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(SPEC))
    return "mine.yaml"


def test_a_spec_is_drawn_written_and_used(spec: str, tmp_path: Path, batchsim: Call) -> None:
    status, out, err = batchsim("trace", "generate", spec, "-o", "mine.csv", "--seed", "7")
    assert (status, out) == (0, "")
    assert err.startswith("mine.csv: 300 requests over ")
    assert traces.load(tmp_path / "mine.csv").digest == traces.load("gen:mine.yaml", seed=7).digest
    status, out, err = batchsim("run", "--trace", "gen:mine.yaml", "--num-prompts", "50", "--json", "--quiet")
    assert (status, json.loads(out)["completed"], json.loads(out)["trace"]) == (0, 50, "mine")


def test_a_bundled_trace_is_drawn_by_its_name(tmp_path: Path, batchsim: Call) -> None:
    assert batchsim("trace", "generate", "apex-lmsys", "-o", "a.jsonl", "--quiet") == (0, "", "")
    assert traces.load(tmp_path / "a.jsonl").output.tolist() == traces.load("apex-lmsys").output.tolist()


def test_a_trace_is_fitted_and_it_is_told_how_well(spec: str, tmp_path: Path, batchsim: Call, refused: Refused) -> None:
    batchsim("trace", "generate", spec, "-o", "private.csv")
    status, out, err = batchsim("trace", "fit", "private.csv", "-o", "share.yaml")
    assert status == 0
    for words in ("requests/s", "variation of gaps", "slots in use, batches of 128", "difference"):
        assert words in out
    assert err == "share.yaml: a spec of 300 requests; use it with --trace gen:share.yaml\n"
    assert len(traces.load(f"gen:{tmp_path / 'share.yaml'}")) == 300
    assert refused("trace", "fit", "private.csv", "-o", "share.yaml").startswith("share.yaml exists: give --force")
    status, out, err = batchsim("trace", "fit", "private.csv", "-o", "share.yaml", "--force", "--json")
    assert (status, err) == (0, "")
    assert {each["what"] for each in json.loads(out)["kept"]} >= {"requests/s", "mean output"}


def test_how_far_a_correlation_is_off_is_no_share_of_it() -> None:
    found = [Kept("mean output", 100.0, 103.0), Kept("rank correlation", 0.004, -0.013, around_zero=True),
             Kept("rank correlation", 0.0, 0.2, around_zero=True), Kept("mean output", 0.0, 1.0)]
    assert list(_table(found).columns[3].cells) == ["+3.0%", "-0.017", "+0.200", "-"]


@pytest.mark.parametrize(("line", "words"), [
    ("trace generate mine.yaml", "missing option '--output' / '-o': see `batchsim trace generate --help`"),
    ("trace generate mine.yaml -o mine.txt", "'mine.txt': a trace is written as .jsonl, .csv, .parquet"),
    ("trace generate none.yaml -o x.csv", "none.yaml: No such file or directory"),
    ("trace fit apex-lmsys -o spec.json", "'spec.json': a spec is written as .yaml or .yml"),
    ("trace fit nothing.csv -o spec.yaml", "no trace file or bundled trace 'nothing.csv'"),
    ("trace fetch azure-code-full", "unknown public trace 'azure-code-full': did you mean 'azure-code-2024-full'?"),
    ("run --trace burstgpt-1-full", "burstgpt-1-full is not here yet: batchsim trace fetch burstgpt-1-full"),
    ("run --trace gen:", "Is a directory"), ("run --trace azure-code-2023-ful", "did you mean 'azure-code-2023-full'?"),
])
def test_what_is_refused(line: str, words: str, spec: str, refused: Refused, monkeypatch: pytest.MonkeyPatch,
                         tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert words in refused(*line.split())
    assert not (tmp_path / "spec.yaml").exists()


def test_fetching_tells_terms_and_what_is_known_of_the_checksum(tmp_path: Path, batchsim: Call,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Public("tiny-full", "Two", "http://127.0.0.1:9/tiny.csv", "0" * 64, "second-hand", "CC-BY-4.0", "Somebody")
    monkeypatch.setattr(traces, "public", lambda name: found)
    monkeypatch.setattr(traces, "fetch", lambda found: found.path)
    status, out, err = batchsim("trace", "fetch", "tiny-full")
    assert (status, err) == (0, "fetching http://127.0.0.1:9/tiny.csv\n")
    assert out.splitlines() == [
        "licence: CC-BY-4.0", "cite: Somebody", f"file: {found.path}",
        f"sha256: {'0' * 64} (second-hand: published by others, the file not seen by us)",
        "use it with --trace tiny-full"]
    status, out, _ = batchsim("trace", "fetch", "tiny-full", "--json", "--quiet")
    assert json.loads(out)["checksum"] == "second-hand"


def test_the_list_has_what_is_bundled_and_what_can_be_fetched(batchsim: Call, monkeypatch: pytest.MonkeyPatch,
                                                              tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = {row["name"]: row for row in json.loads(batchsim("list", "traces", "--json")[1])}
    assert rows["azure-code-2023"]["here"] == "bundled"
    assert (rows["azure-code-2023-full"]["here"], rows["azure-code-2023-full"]["rows"]) == ("to fetch", 8819)
    path = traces.public("azure-code-2023-full").path
    path.parent.mkdir(parents=True)
    path.write_text("x")
    rows = {row["name"]: row for row in json.loads(batchsim("list", "traces", "--json")[1])}
    assert rows["azure-code-2023-full"]["here"] == "fetched"
