"""The README is true: its glossary, its answer, its Python and its policy are what the code gives today.

``python tests/test_readme.py`` writes the glossary, the answers and the pictures anew, ``python tests/test_readme.py
speed`` what `batchsim bench` prints on this machine; that takes some minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from worlds import SHARED

import simulator as sim
from cost_models import Profile, bundled_profiles
from cost_models.fits import Error
from simulator.bench import Bench, Measurement, bench
from simulator.bench.running import cases
from simulator.cli.explain import print_answer
from simulator.cli.tables import print_comparison, print_table
from simulator.metrics import METRICS, json_keys
from simulator.plots import save_figure, strip_figure, timeline_figure
from simulator.studies.attribution import Attribution
from simulator.studies.compare import Comparison
from simulator.studies.explain import Explanation
from simulator.studies.why import ORDER, brief
from simulator.studies.why_tables import tables
from simulator.validation import validate
from traces import READERS

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "notebooks" / "figures" / "timeline.svg"
STRIP = PICTURE.with_name("strip.svg")
WIDTH = 118


def glossary() -> str:
    """METRICS as a Markdown table."""
    rows = [f"| {metric.label} | {metric.unit} | {metric.definition} | `{json_keys(name)[0]}` |"
            for name, metric in METRICS.items()]
    return "\n".join(["| metric | unit | definition | in the JSON |", "|---|---|---|---|", *rows])


def errors() -> str:
    """What the bundled profiles state of their errors, as a Markdown table."""
    rows = [f"| `{profile.name}` | {_source(profile)} | {_held_against(profile)} | "
            + " | ".join(_figures(error) for error in vars(profile.fit.errors).values()) + " |"
            for profile in bundled_profiles().values() if profile.origin.kind == "derived"]
    return "\n".join(["| profile | figures of | held against | decode | prefill | mixed |", "|---|---|---|---|---|---|",
                      *rows])


def _held_against(profile: Profile) -> str:
    known = any(vars(profile.fit.errors).values())
    return {"engine": "an engine's steps", "kernels": "kernel times"}[profile.fit.held_against] if known else "nothing"


def _source(profile: Profile) -> str:
    found = re.search(r"[\w-]+/([\w-]+) @|(aiconfigurator)", profile.origin.source)
    assert found
    return found[1] or found[2]


def _figures(error: Error | None) -> str:
    if error is None:
        return "not known"
    assert error.bias_percent is not None
    return f"{error.mape_percent:.1f} / {error.p95_percent:.1f} / {error.bias_percent:+.1f}"


def printed(show: Callable[[Console], None]) -> str:
    """What is shown on a console, as a block of text."""
    page = StringIO()
    show(Console(file=page, width=WIDTH, highlight=False))
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(["```text", *lines, "```"])


def answer(found: Comparison) -> str:
    """What `batchsim compare` prints."""
    return printed(lambda console: print_comparison(console, found))


def reasons(found: Attribution) -> str:
    """What `batchsim why` says first."""
    def show(console: Console) -> None:
        for sentence in brief(found):
            console.print(sentence)
        console.print(ORDER)
        for table in tables(found):
            print_table(console, table)

    return printed(show)


def explained(found: Explanation) -> str:
    """The questions that `batchsim explain` answers, without the tables."""
    def show(console: Console) -> None:
        for answer in found.answers:
            print_answer(console, answer)

    return printed(show)


def speed(found: Bench) -> str:
    """What `batchsim bench` prints, without the counts."""
    def show(console: Console) -> None:
        console.print(found.where())
        for table in found.tables()[:2]:
            print_table(console, table)

    return printed(show)


def validation(shared: Path) -> str:
    """The errors of the recorded run, as a block of text."""
    run = shared / "measured" / "llmservingsim" / "RTXPRO6000_Llama-3.1-8B__requests.jsonl"
    found = validate("llama-3.1-8b-rtx-pro-6000-bf16", run, rows="odd",
                     knobs={"max_num_seqs": 128, "max_num_batched_tokens": 2048})
    return "\n".join(["```text", *str(found.table()).splitlines()[1:], "```"])


def part(name: str, text: str) -> str:
    """What stands between the marks of this name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end of {name} -->", text, re.DOTALL)
    assert found, f"the README has no part {name!r}"
    return found[1]


def columns(text: str) -> str:
    """The text without the widths of its columns: rich before 14.3 shares a narrow page out otherwise."""
    return re.sub("[ \u2500]+", " ", text)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_links_inside_the_page_lead_to_a_heading() -> None:
    text = README.read_text(encoding="utf-8")
    headings = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                for heading in re.findall(r"^##+ (.*)$", text, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]*)\)", text))
    assert len(links) > 15
    assert links <= headings


def test_the_glossary_is_the_metrics_table() -> None:
    assert part("glossary", README.read_text(encoding="utf-8")) == glossary()


def test_the_errors_are_those_that_the_profiles_state() -> None:
    assert part("errors", README.read_text(encoding="utf-8")) == errors()


def test_the_validation_is_todays(shared: Path) -> None:
    assert part("validation", README.read_text(encoding="utf-8")) == validation(shared)


def test_the_formats_are_those_that_are_read() -> None:
    rows = [f"| `{reader.name}` | {reader.about} |" for reader in READERS.values()]
    table = "\n".join(["| format | what it is |", "|---|---|", *rows])
    assert part("formats", README.read_text(encoding="utf-8")) == table


@pytest.mark.slow
def test_the_answer_and_the_picture_are_those_of_the_default_run(tmp_path: Path) -> None:
    found = sim.compare()
    assert columns(part("answer", README.read_text(encoding="utf-8"))) == columns(answer(found))
    save_figure(timeline_figure(found.equal_slots, what=found.equal), tmp_path / "timeline.svg")
    text = (tmp_path / "timeline.svg").read_text(encoding="utf-8")
    assert len(text) == pytest.approx(len(PICTURE.read_text(encoding="utf-8")), rel=0.1)


@pytest.mark.slow
def test_the_reasons_are_those_of_the_default_run() -> None:
    assert columns(part("why", README.read_text(encoding="utf-8"))) == columns(reasons(sim.attribute()))


def test_the_questions_and_the_strip_are_those_of_the_default_run(tmp_path: Path) -> None:
    found = sim.explain()
    assert columns(part("explained", README.read_text(encoding="utf-8"))) == columns(explained(found))
    save_figure(strip_figure(found.strips(), found.request), tmp_path / "strip.svg")
    text = (tmp_path / "strip.svg").read_text(encoding="utf-8")
    assert len(text) == pytest.approx(len(STRIP.read_text(encoding="utf-8")), rel=0.1)


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = next(block for block in blocks("python") if "sim.compare" in block)
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "scheduling" in out
    assert not re.search(r"Fraction\(|\d{7}\.?\d|  \.\.\.  |NaN", out)    # short and whole


def test_requests_in_memory_become_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    code = next(block for block in blocks("python") if "pandas.DataFrame" in block)
    found: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), found)
    assert repr(found["mine"]) == "<Trace mine: 3 requests over 1.9 s, median prompt 400 and output 60 tokens>"
    assert "prompt_tokens" in capsys.readouterr().out


def test_the_policy_of_ones_own_is_short_and_runs(tmp_path: Path) -> None:
    code = next(block for block in blocks("python") if "class ShortestFirst" in block)
    body = code[code.index("@dataclass"):].strip().splitlines()
    assert len(body) <= 20
    (tmp_path / "my_policy.py").write_text(code, encoding="utf-8")
    policy = sim.policies.load_policy(f"{tmp_path / 'my_policy.py'}:ShortestFirst")()
    result = sim.simulate("azure-conv-2023", policy, num_prompts=300, load="saturated")
    assert result.summary()["completed"] == 300
    tight = sim.simulate("azure-conv-2023", policy, num_prompts=300, load="saturated", kv_capacity_tokens=20_000)
    assert tight.summary()["completed"] == 300
    assert tight.summary()["preemptions"] > 0


def test_every_command_of_the_readme_is_one() -> None:
    commands = {line.split()[1] for block in blocks("console") for line in block.replace("$ ", "").splitlines()
                if line.startswith("batchsim ")}
    commands |= set(re.findall(r"`batchsim (\w+)", README.read_text(encoding="utf-8")))
    told = subprocess.run([sys.executable, "-m", "simulator.cli", "--help"], capture_output=True, text=True, check=True)
    assert commands <= set(re.findall(r"\w+", told.stdout))


def test_the_speed_is_that_of_every_case() -> None:
    """The figures are one machine's; what was measured, and how it is shown, is what `batchsim bench` does today."""
    zeros = [Measurement(*case[:3], 1, 1.0, 0.0, 1, 1, 1, 1.0) for case in cases(None, None, False, 0)]
    shown, ours = (re.findall(r"^  (\w\S*(?:, \w+)?) +([\d,]+) ", text, re.MULTILINE) for text in
                   (part("speed", README.read_text(encoding="utf-8")), speed(Bench({}, tuple(zeros)))))
    assert shown == ours
    assert len(shown) == len(zeros)


def replace(name: str, new: str) -> None:
    """Put a part anew between its marks."""
    text = README.read_text(encoding="utf-8")
    text = text.replace(f"<!-- {name} -->\n{part(name, text)}\n", f"<!-- {name} -->\n{new}\n")
    README.write_text(text, encoding="utf-8")


def rewrite() -> None:
    """Put today's glossary, answers and pictures in place."""
    inside = sim.explain()
    replace("explained", explained(inside))
    save_figure(strip_figure(inside.strips(), inside.request), STRIP)
    found = sim.compare()
    parts = {"glossary": glossary(), "errors": errors(), "answer": answer(found), "why": reasons(sim.attribute())}
    if SHARED.is_dir():
        parts["validation"] = validation(SHARED)
    for name, new in parts.items():
        replace(name, new)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    save_figure(timeline_figure(found.equal_slots, what=found.equal), PICTURE)


if __name__ == "__main__":
    if sys.argv[1:] == ["speed"]:
        replace("speed", speed(bench()))
    else:
        rewrite()
