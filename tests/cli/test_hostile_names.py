"""A name that holds markup of every kind is text in every output: terminal, JSON, HTML, SVG, Markdown, JUnit."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from simulator.cli.console import answers
from simulator.cli.progress import Bar
from simulator.studies.campaign import Store
from simulator.studies.regression import accept, regress, save
from simulator.tables import Table

Call = Callable[..., tuple[int, str, str]]
EVIL = "<b onclick=x>&\"'`|*_[red]\x1b[31m\x07\u202e=1+1{{%$x$"
PLAIN = "<b onclick=x>&\"'`|*_[red]=1+1{{%$x$"
"""The same as far as a trace may hold it."""
OBEYED = ("\x1b", "\x07", "\u202e", "\x00")
POLICY = f"""
from dataclasses import dataclass
from simulator.policies.vllm import Vllm

@dataclass
class Evil(Vllm):
    name = {EVIL!r}
"""
QUESTION = ("--trace", "t.csv", "--unit", "s", "--columns", "tenant=tenant", "--cost-model", "constant:20",
            "--kv-capacity-tokens", "20000")


@pytest.fixture
def evil(batchsim: Call, tmp_path: Path) -> Call:
    """The command beside a policy, and a trace, with such names."""
    quoted = PLAIN.replace('"', '""')
    (tmp_path / "evil.py").write_text(POLICY)
    (tmp_path / "t.csv").write_text("arrival,prompt,output,tenant\n" + "".join(
        f'{at},{100 + at},{5 + at % 7},"{quoted if at % 2 else "b"}"\n' for at in range(12)))
    return batchsim


class Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(key.startswith("on") for key, _ in attrs), attrs
        self.found.append(tag)


def harmless(text: str) -> bool:
    return not any(mark in text for mark in OBEYED)


@pytest.mark.parametrize("line", [
    ("run", "--policy", "evil.py:Evil", "-o", "out"), ("run", "--policy", "evil.py:Evil", "--json"),
    ("compare", "--policies", "static,evil.py:Evil", "-o", "out"),
    ("sweep", "--policy", "evil.py:Evil", "--vary", "seed=1,2", "-o", "out")])
def test_no_terminal_and_no_page_obeys_a_name(line: tuple[str, ...], evil: Call, tmp_path: Path) -> None:
    status, out, err = evil(*line, *QUESTION)
    assert status == 0, err
    assert harmless(out + err)
    if "--json" in line:
        return
    assert evil("report", "out")[0] == 0
    for path in (tmp_path / "out").iterdir():
        content = path.read_text() if path.is_file() else ""
        assert path.suffix == ".csv" or harmless(content), path.name    # a table for a program has names as they are
        if path.suffix == ".html":
            assert "<b onclick" not in content
            assert Elements(content).found[0] == "html"
        if path.suffix == ".svg":
            ElementTree.fromstring(content)


def test_no_job_summary_obeys_a_name(evil: Call, tmp_path: Path) -> None:
    evil("baseline", "save", "--policy", "evil.py:Evil", *QUESTION, "-o", "b[red].json")
    status, out, err = evil("regress", "--baseline", "b[red].json", "--set", "max_num_seqs=1", "-o", "out")
    assert status == 1
    assert harmless(out + err)
    for path in (tmp_path / "out").iterdir():
        assert harmless(path.read_text()), path.name
    ElementTree.fromstring((tmp_path / "out" / "regression.xml").read_text())
    assert r"b\[red\]" in (tmp_path / "out" / "regression.md").read_text()


def test_a_console_spells_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    answers().print(f"{EVIL}\nnext", markup=False)
    answers().out(EVIL)
    told = capsys.readouterr().out
    assert harmless(told)
    assert told.count(r"\x1b[31m") == 2
    assert "\nnext\n" in told


def test_a_bar_takes_no_name_for_markup() -> None:
    with Bar("[/red][x]", quiet=True) as bar:
        bar.many("[/nothing]", 1, 2)
        [task] = bar._bar.tasks
        column = bar._bar.columns[0]
        assert "[/nothing]" in str(column(task))


def test_a_notebook_shows_names_as_text() -> None:
    found = Table(EVIL, ("a", EVIL), ((EVIL, EVIL),), EVIL)._repr_html_()
    assert set(Elements(found).found) == {"table", "caption", "tr", "th", "td", "p"}


@pytest.mark.parametrize("name", ["../out.json", "/tmp/x.json", "a/b.json", "..", "", "a\nb.json", "manifest.json",
                                  "a\x1bb.json"])
def test_no_result_is_written_outside_of_its_folder(name: str, evil: Call) -> None:
    status, _, err = evil("run", *QUESTION, "-o", "out", "--result-filename", name)
    assert status == 2
    assert err.count("\n") == 1
    assert not Path("out.json").exists()


def test_a_name_that_no_file_can_have_is_one_line(evil: Call) -> None:
    name = "x" * 300
    for line in (("run", "--scenario", name), ("run", "--trace", name), ("run", "--cost-model", f"{name}.yaml"),
                 ("run", "--model", f"{name}.yaml"), ("regress", "--baseline", name), ("report", name),
                 ("plot", name), ("run", "--policy", f"{name}.py:X"), ("validate", "auto", name),
                 ("sweep", "--vary", "seed=1", "--list", name), ("run", *QUESTION, "-o", name),
                 ("baseline", "save", *QUESTION, "-o", name), ("conformance", "vllm", name),
                 ("run", *QUESTION, "-o", "out", "--result-filename", name)):
        status, out, err = evil(*line)
        told = out.partition("\n")[0]    # from Python 3.14 on such a name is only one of a file that is not there
        assert (status, told, err.count("\n")) in ((2, "", 1), (3, "Nothing compared.", 1)), (line[0], err)
        assert "internal error" not in err, line


@pytest.mark.parametrize("field", ["trace: {}", "trace: gen:{}", "model: {}.yaml", "cost_model: {}.yaml",
                                   "policy: {}.py:X", "mix: {{x: {}}}"])
@pytest.mark.parametrize("name", [r"a\0b", r"a\nb", "../../../../../../etc/passwd", "/dev/zero", "x" * 300,
                                  r"\x1b[31m"])
def test_what_a_scenario_names_is_one_line(field: str, name: str, evil: Call) -> None:
    """Also a name that no command line can hold."""
    key, _, value = field.format(name).partition(": ")
    quoted = value if value.startswith("{") else f'"{value}"'
    Path("s.yaml").write_text(f"{key}: {quoted}\n")
    status, out, err = evil("run", "--scenario", "s.yaml")
    assert (status, out) == (2, "")
    assert harmless(err)
    assert err.count("\n") == 1
    assert "internal error" not in err


def test_whose_code_a_scenario_runs_is_said(evil: Call) -> None:
    Path("s.yaml").write_text("policy: evil.py:Evil\nnum_prompts: 5\ncost_model: constant:20\n")
    status, _, err = evil("run", "--scenario", "s.yaml", "--json")
    assert (status, err) == (0, "evil.py is run as Python code: a file that was given names it as the policy\n")


def test_a_link_that_is_accepted_leads_to_its_file(evil: Call) -> None:
    evil("baseline", "save", *QUESTION, "-o", "real.json")
    Path("link.json").symlink_to("real.json")
    before = Path("real.json").read_text()
    found = regress("link.json", knobs={"max_num_seqs": 1})
    assert [Path(each.path).name for each in accept(found, "meant")] == ["link.json"]
    assert Path("link.json").is_symlink()
    assert Path("real.json").read_text() != before


def test_what_was_not_compared_is_told(evil: Call) -> None:
    """A metric that the baseline did not have, and folders inside that of the baselines."""
    Path("all/more").mkdir(parents=True)
    evil("baseline", "save", *QUESTION, "-o", "all/a.json")
    Path("all/more/b.json").write_bytes(Path("all/a.json").read_bytes())
    told = regress("all", goodput={"ttft": 5000.0}).verdict()
    assert "Measured now, and not in the baseline: request_goodput, jain_index: --accept" in told
    assert told.endswith("Not looked into: all/more/.")


@pytest.mark.parametrize(("part", "name", "value"), [
    ("spread", "mean_ttft_ms", -0.1), ("spread", "mean_ttft_ms", 1e9), ("spread", "mean_ttft_ms", None),
    ("origin", "step_error", -1), ("origin", "step_error", 1e6), ("metrics", "mean_ttft_ms", -5),
    ("metrics", "slot_utilization", 2)])
def test_a_baseline_that_was_edited_beyond_sense_is_refused(part: str, name: str, value: object, evil: Call) -> None:
    evil("baseline", "save", *QUESTION, "-o", "b.json")
    document = json.loads(Path("b.json").read_text())
    document[part][name] = value
    Path("b.json").write_text(json.dumps(document))
    status, _, err = evil("regress", "--baseline", "b.json")
    assert (status, err.count("\n")) == (2, 1)
    assert name in err


def test_goodput_as_vllm_spells_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps({"backend": "vllm", "completed": 5, "duration": 2.0, "request_goodput:": 2.5}))
    assert save(tmp_path / "b.json", results=[path]).side.metrics["request_goodput"] == 2.5


def test_a_store_takes_away_its_own_drafts_only(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    for name in (".gitignore", ".0123456789abcdef.json.99"):
        (tmp_path / "points" / name).touch()
    with Store(tmp_path) as store:
        store.known({})
    assert [path.name for path in (tmp_path / "points").iterdir()] == [".gitignore"]


@pytest.mark.parametrize("seed", [2**60, 2**60 + 1, 2**63])
def test_a_large_seed_stays_a_number(seed: int, evil: Call) -> None:
    status, out, err = evil("run", *QUESTION, "--seed", str(seed), "--json")
    if status:    # refused, in one line
        assert err.count("\n") == 1
    else:
        assert json.loads(out)["scenario"]["seed"] == seed
