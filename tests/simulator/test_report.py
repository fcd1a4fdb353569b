"""The report: one page that holds everything, tells everything in text, and lets nothing of a file become markup."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator import InputError
from simulator.account import Account
from simulator.report import report
from simulator.report.drawings import drawing
from simulator.report.runs import account_of
from simulator.scenario import Scenario
from simulator.scenarios import record
from simulator.tables import Table

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}
ACCOUNT = Account(f"Is {EVIL} safe?", ("Yes.", "a < b"), (Table("T", ("", "x"), (("row", "1"),), EVIL),),
                  (f"trace: {EVIL}", "cost model: c", "its error: 5%"), (EVIL,))
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{}</svg>'


class Reader(HTMLParser):
    """A page as its elements and its text; an element that is left open, or closed twice, is an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)

    def all(self, *names: str) -> Iterator[tuple[str, dict[str, str | None]]]:
        return (each for each in self.elements if each[0] in names)


def written(directory: Path, account: Account = ACCOUNT, **figures: str) -> Path:
    """A directory as `compare -o` leaves it."""
    document = {"account": account.plain(), "figures": [f"{name}.svg" for name in figures],
                "scenario": {"trace": EVIL, "seed": 3}}
    (directory / "comparison.json").write_text(json.dumps(document))
    for name, text in figures.items():
        (directory / f"{name}.svg").write_text(text)
    return directory


def run_of(directory: Path, name: str = "run.json", policy: str = "vllm") -> Path:
    result = sim.simulate(trace_of([(0, 5, 3), (0, 5, 9), (4, 8, 2)]), policy, cost_model=Constant(10_000_000),
                          kv_capacity_tokens=1000)
    result.save(directory / name)
    return directory


def test_a_page_is_whole_and_fetches_nothing(tmp_path: Path) -> None:
    page = report(written(tmp_path, timeline=SVG.format('<path d="M0 0"/>')))
    found = Reader(page)
    assert page.startswith("<!doctype html>\n<html lang=\"en\">")
    assert list(found.all("link", "img", "iframe", "object")) == []
    assert not [attrs for _, attrs in found.elements if "src" in attrs]
    addresses = [attrs["href"] or "" for _, attrs in found.elements if "href" in attrs]
    assert all(address.startswith("#") for address in addresses)
    assert "http" not in re.sub(r"http-equiv", "", page)


def test_it_can_be_read_aloud(tmp_path: Path) -> None:
    found = Reader(report(written(tmp_path, timeline=SVG.format(""), batch=SVG.format(""))))
    levels = [int(tag[1]) for tag, _ in found.all("h1", "h2", "h3")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert [attrs["role"] for _, attrs in found.all("svg")] == ["img", "img"]
    assert all(len(attrs["aria-label"] or "") > 40 for _, attrs in found.all("svg"))
    assert all(attrs.get("scope") for _, attrs in found.all("th"))
    assert len(list(found.all("caption"))) == len(list(found.all("table"))) > 0
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {(attrs["href"] or "")[1:] for _, attrs in found.all("a")}
    assert targets <= set(ids)


def test_it_tells_question_answer_warnings_tables_inputs_and_trust(tmp_path: Path) -> None:
    text = "\n".join(Reader(report(written(tmp_path))).text)
    for words in (ACCOUNT.question, "Yes.", "a < b", "row", EVIL, "cost model", "5%", "How far to trust the step times",
                  "Scenario", "comparison.json"):
        assert words in text


def test_a_figure_of_an_earlier_study_is_not_shown(tmp_path: Path) -> None:
    written(tmp_path, timeline=SVG.format(""), ladder=SVG.format(""))
    assert report(written(tmp_path, timeline=SVG.format(""))).count("<figure>") == 1


def test_what_files_say_stays_text(tmp_path: Path) -> None:
    evil = SVG.format(f'{EVIL}<path d="M0 0" onload="alert(1)"/><a href="javascript:alert(1)"/>')
    found = Reader(report(written(tmp_path, timeline=evil)))
    assert len(list(found.all("script"))) == 1
    assert not [attrs for _, attrs in found.elements if any(name.startswith("on") for name in attrs)]


def test_only_the_script_of_the_page_may_run(tmp_path: Path) -> None:
    from base64 import b64encode
    from hashlib import sha256
    page = report(written(tmp_path))
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script
    allowed = b64encode(sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'" in page


@pytest.mark.parametrize(("inside", "kept"), [
    ('<path d="M0 0" style="fill: #fff"/>', '<path d="M0 0" style="fill: #fff"></path>'),
    ('<g id="a" clip-path="url(#b)"/>', '<g id="p-a" clip-path="url(#p-b)"></g>'),
    ('<use href="#a" x="1"/>', '<use href="#p-a" x="1"></use>'),
    ('<circle r="5"><title>a &lt; b</title></circle>', '<circle r="5"><title>a &lt; b</title></circle>'),
    ('<image href="data:image/png;base64,AA=="/>', '<image href="data:image/png;base64,AA=="></image>'),
    ('<image href="http://a.b/c.png"/>', '<image href=""></image>'),
    ('<use href="other.svg#a"/>', '<use href=""></use>'),
    ('<path fill="url(http://a.b)"/>', "<path></path>"), ('<path style="fill: URL(http://a.b)"/>', "<path></path>"),
    ("<style>* {}</style><metadata/><script/><foreignObject/><a/><animate/>", ""),
    ('<path onclick="a()" stroke="red"/>', '<path stroke="red"></path>')])
def test_of_a_drawing_only_what_draws_comes_through(inside: str, kept: str) -> None:
    assert drawing(SVG.format(inside), "p", "x") == (
        f'<svg role="img" aria-label="x" viewBox="0 0 9 9">{kept}</svg>')


@pytest.mark.parametrize("text", [
    "", "<svg", "<html/>", "<svg/>", '<!DOCTYPE x [<!ENTITY a "b">]><svg/>',
    SVG.format("<g>" * 5000 + "</g>" * 5000)])
def test_what_is_no_drawing_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"batch\.svg: it .*: draw it again, or take it away") as error:
        report(written(tmp_path, batch=text))
    assert "\n" not in str(error.value)


def test_figures_of_the_tool_come_through_whole(tmp_path: Path) -> None:
    from simulator.plots import latencies_figure, queue_figure, svg_of
    result = sim.simulate(trace_of([(0, 5, 3), (0, 5, 9)]), "vllm", cost_model=Constant(1000), kv_capacity_tokens=100)
    for figure in (latencies_figure({"a": result.summary()}), queue_figure({"a": result.summary()})):
        text = svg_of(figure)
        assert drawing(text, "p", "x").count("<path") == text.count("<path") > 10


def test_runs_give_an_account_of_themselves(tmp_path: Path) -> None:
    text = "\n".join(Reader(report(run_of(tmp_path))).text)
    assert "How does vllm serve made?" in text
    assert "3 of 3 requests finish in 0.09 s" in text
    assert "its error" in text
    assert "none is stated" in text
    assert "Latencies, in ms" in text
    both = "\n".join(Reader(report(run_of(tmp_path, "other.json", "static"))).text)
    assert "How do static and vllm serve made?" in both
    assert "Output tokens/s: " in both


def test_the_scenario_names_what_is_not_as_by_default(tmp_path: Path) -> None:
    page = report(run_of(tmp_path))
    rows = page.partition("What is not as by default")[2].partition("</table>")[0]
    assert [name for name in ("kv_capacity_tokens", "cost_model", "trace") if f">{name}<" in rows] == [
        "kv_capacity_tokens", "cost_model", "trace"]
    assert ">max_retries<" not in rows


def _asked(directory: Path, document: dict[str, object], name: str = "comparison.json") -> list[tuple[str, str]]:
    """The rows of the scenario's table."""
    (directory / name).write_text(json.dumps({"account": ACCOUNT.plain(), **document}))
    rows = report(directory).partition("What is not as by default")[2].partition("</table>")[0]
    return re.findall(r'<th scope="row" class="word">(.*?)</th><td class="word.*?">(.*?)</td>', rows)


def test_of_the_scenario_only_what_differs_is_told(tmp_path: Path) -> None:
    usual = record(Scenario())
    assert _asked(tmp_path, {"scenario": usual}, "plan.json") == []
    assert "<p>Everything is as by default.</p>" in report(tmp_path)
    other = record(Scenario(policy="vllm", knobs={"max_num_seqs": 8}, num_prompts=9, goodput={"ttft": 5.0}))
    assert _asked(tmp_path, {"scenario": other}, "plan.json") == [
        ("num_prompts", "9"), ("goodput", "{&quot;ttft&quot;: 5.0}"), ("max_num_seqs", "8")]
    (tmp_path / "plan.json").unlink()
    assert _asked(tmp_path, {"scenario": record(Scenario(policy="orca"))}) == [("policy", "orca")]


def test_every_policy_of_a_comparison_tells_its_knobs(tmp_path: Path) -> None:
    found = sim.compare(trace_of([(0, 5, 3), (0, 5, 9)]), settings={"static.max_batch_size": 2, "block_size": 32},
                        cost_model=Constant(10_000_000), kv_capacity_tokens=1000).findings()
    rows = _asked(tmp_path, found)
    assert [row for row in rows if "." in row[0]] == [("static.max_batch_size", "2"), ("vllm.block_size", "32")]
    assert "policy" not in dict(rows)


def test_knobs_of_a_policy_that_is_not_bundled_are_all_told(tmp_path: Path) -> None:
    scenario = {"policy": "nowhere.py:Mine", "knobs": {"a": 1, "b": None}}    # and the file need not be there
    assert _asked(tmp_path, {"scenario": scenario}) == [("policy", "nowhere.py:Mine"), ("a", "1"), ("b", "null")]


def test_a_plan_defines_what_it_counts_in_its_own_way(tmp_path: Path) -> None:
    account = Account("Q?", ("goodput",), (Table("T", ("", "p99 TTFT", "requests/s"), ()),))
    (tmp_path / "plan.json").write_text(json.dumps({"account": account.plain()}))
    told = report(tmp_path).partition("Definitions")[2]
    assert "counted from the first try" in told
    assert "over the time in which they come" in told
    assert "meet every service objective" not in told
    (tmp_path / "plan.json").unlink()
    assert "over the whole duration. Null without" in report(written(tmp_path, account)).partition("Definitions")[2]


def test_definitions_are_of_what_occurs(tmp_path: Path) -> None:
    account = Account("Q?", ("TTFT is short.",), (Table("T", ("", "TPOT p99, ms"), ()),))
    page = report(written(tmp_path, account)).partition("Definitions")[2]
    assert "Time to first token" in page
    assert "Time per output token" in page
    assert "Inter-token latency" not in page


@pytest.mark.parametrize(("content", "message"), [
    (None, "holds nothing to report"), ("{", r"is not JSON \("), ("[]", "has no account of itself"),
    ("{}", "has no account of itself"), ('{"account": {}}', "is not as batchsim writes it"),
    ('{"account": 5}', "is not as batchsim writes it"), ('{"account": "\\ud800"}', r"is not JSON \("),
    ('{"account": {"question": "", "answer": [], "facts": [], "warnings": [], "tables": [{}]}}', "a table is not as"),
    (json.dumps({"account": Account("", (), (Table("T", ("a",), (("1", "2"),)),)).plain()}), "do not fit its header")])
def test_what_cannot_be_told_is_refused_in_one_line(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "comparison.json").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        report(tmp_path)
    assert str(error.value).startswith(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_run_that_lacks_a_name_is_refused(tmp_path: Path) -> None:
    document = json.loads((run_of(tmp_path) / "run.json").read_text())
    for change, fault in (({"mean_ttft_ms": "x"}, "mean_ttft_ms must be a number or null, not 'x'"),
                          ({"batch_over_time": 5}, r"run is not as batchsim writes a run \(TypeError"),
                          ({"p99_ttft_ms": 10**400}, "p99_ttft_ms must be a number or null, not 1000")):
        (tmp_path / "run.json").write_text(json.dumps(document | change))
        with pytest.raises(InputError, match=fault):
            report(tmp_path)
    del document["num_prompts"]
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"run is not as batchsim writes a run \(KeyError"):
        report(tmp_path)


def test_odd_names_are_shown_and_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    """Names hold dollars, which are no formula, and bytes that are no character; a folder or a dead link is no run."""
    for name in (b"$x_$.json", b"\xff.json", b"<b>.json"):
        run_of(tmp_path, os.fsdecode(name))
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "dead.json").symlink_to("nowhere")
    found = Reader(report(tmp_path))
    assert {"$x_$.json", "\\xff.json", "<b>.json"} <= set(found.text)
    assert not {"folder.json", "dead.json"} & set(found.text)


def test_a_list_of_figures_that_is_none_shows_none(tmp_path: Path) -> None:
    document = json.loads((written(tmp_path, batch=SVG.format("")) / "comparison.json").read_text())
    (tmp_path / "comparison.json").write_text(json.dumps(document | {"figures": 5}))
    assert "<figure>" not in report(tmp_path)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no directory: give one that `batchsim run -o`, compare, sweep or plan"):
        report(tmp_path / "nowhere")


def test_an_account_comes_back_from_json() -> None:
    again = Account.of(json.loads(json.dumps(ACCOUNT.plain())))
    assert again == ACCOUNT
    assert str(again) == f"{ACCOUNT.question}\n\nYes.\na < b\nWarning: {EVIL}\n\nT\n     x\nrow  1\n{EVIL}"


def test_the_colours_of_text_stand_out_from_the_page() -> None:
    style = (Path(sim.__file__).parent / "report" / "page.css").read_text()
    colours = dict(re.findall(r"--(ink|soft|blue|warn): (#[0-9a-f]{3,6});", style))
    assert set(colours) >= {"ink", "soft", "blue"}
    assert all(_contrast(colour) >= 4.5 for colour in colours.values())


def _contrast(colour: str) -> float:
    """Against white, as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    shares = [int(digits[at:at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def told_of(**options: object) -> tuple[str, ...]:
    """What a page says of a run of ten requests, one second a step."""
    result = sim.simulate(trace_of([(0, 5, 3)] * 10), cost_model=Constant(10 ** 9), **options)
    return account_of({"run": json.loads(result.to_json())}).answer


def test_a_run_with_objectives_says_how_many_requests_meet_them() -> None:
    """Three at a time: the first tokens come after 1, 4, 7 and 10 s, those of six requests within 4.5 s."""
    told = told_of(goodput={"ttft": 4500}, knobs={"max_num_seqs": 3}, request_overhead=0.0)
    assert told == (
        "10 of 10 requests finish in 12 s: 2.5 output tokens/s, 0.8333 requests/s.",
        "The first token takes 4,000 ms for the median request and at most 9,730 ms for 99 in 100.",
        "Each further token takes 1,000 ms for the median request.",
        "0.5 requests/s meet every objective (ttft:4500).",
        "In 75% of the time in steps the cap keeps others out, more than anything else.")


def test_where_nobody_is_answered_nothing_else_is_told() -> None:
    assert told_of(max_model_len=4) == ("None of 10 requests finishes.",)


def test_a_latency_that_a_record_leaves_out_is_not_told() -> None:
    result = sim.simulate(trace_of([(0, 5, 3)] * 10), cost_model=Constant(10 ** 9))
    told = account_of({"run": json.loads(result.to_json(percentiles=(99.9,)))}).answer
    assert not any("first token" in line for line in told)
    assert "Each further token takes 1,000 ms for the median request." in told
