"""Results show themselves: a sketch and tables in a notebook, the same words in a terminal, one line at a prompt."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from html import unescape

import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.run_tables import ALONE_SCALES, latencies, numbers, tables
from traces import Trace

TRACE = trace_of([(0, 5, 3), (0, 5, 9), (40_000_000, 8, 2), (90_000_000, 8, 4)])
WORLD = {"cost_model": Constant(10_000_000), "kv_capacity_tokens": 1000}
SHOWN = {
    "result": (lambda: sim.simulate(TRACE, "vllm", **WORLD), "<Result vllm on made", "What was served"),
    "comparison": (lambda: sim.compare(TRACE, **WORLD), "<Comparison: Saturated and as deployed, vllm makes",
                   "What the switch is worth"),
    "plan": (lambda: sim.plan(num_prompts=30, goodput={"ttft": 5000}, attainment=0.5, cost_model=Constant(5_000_000)),
             "<Plan: 1 replica on 1 h100-80", "The answer and its neighbours"),
    "sweep": (lambda: sim.sweep(TRACE, vary={"max_num_seqs": [1, 4]}, **WORLD), "<Sweep: 2 runs, 0 failed>",
              "2 points"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_one_line_at_a_prompt_tables_in_print_and_a_sketch_in_a_notebook(name: str) -> None:
    make, line, title = SHOWN[name]
    found = make()
    assert repr(found).startswith(line)
    assert "\n" not in repr(found)
    assert f"\n{title}" in str(found)
    cell = found._repr_html_()
    assert f"<caption>{title}" in cell
    assert _words(re.sub("<svg.*?</svg>|<summary>.*?</summary>", "", cell)) == _words(str(found))
    assert cell.count("<svg") == 1
    assert "nan" not in cell


def _words(text: str) -> list[str]:
    """What is said, in the order in which it is said, without markup and layout."""
    return re.findall(r"[^\s<>]+", unescape(re.sub("<[^>]+>", " ", text) if "</" in text else text))


def test_what_few_look_at_is_folded() -> None:
    cell = sim.simulate(TRACE, "vllm", **WORLD)._repr_html_()
    shown, _, folded = cell.partition("<details>")
    assert re.findall("<caption>(.*?)</caption>", shown) == ["What was served", "Latencies, in ms"]
    assert re.findall("<caption>(.*?)</caption>", folded)[-1] == "Also measured"
    assert re.findall("<summary>(.*?)</summary>", sim.compare(TRACE, **WORLD)._repr_html_()) == ["5 more tables"]


def test_a_comparison_gives_an_account_of_itself() -> None:
    found = sim.compare(TRACE, **WORLD).account()
    assert found.question == "What is vllm worth over static on made?"
    assert [table.title.partition(" (")[0] for table in found.tables[:3]] == [
        "How much it serves", "How it feels", "What the switch is worth: three ratios, never one"]
    assert found.warnings[-1].startswith("how far chance moves these differences was not measured")
    assert found.facts[-3::2] == ("policy: static is textbook request-level batching",
                                  f"policy: vllm is {sim.policies.Vllm.version}")


def test_showing_a_result_loads_no_plotting_library() -> None:
    code = ("import simulator as sim, sys; sim.simulate(num_prompts=5, trace='azure-conv-2023')._repr_html_(); "
            "print('matplotlib' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_result_gives_the_tables_that_it_prints() -> None:
    found = sim.simulate(TRACE, "vllm", **WORLD)
    tables = found.tables()
    assert [table.title for table in (tables[0], tables[1], tables[-1])] == [
        "What was served", "Latencies, in ms", "Also measured"]
    assert str(found) == "\n\n".join([repr(found), *map(str, tables)])
    assert tables[0].to_frame().loc["finished", "vllm"] == "4"


def test_arrivals_in_seconds_that_were_meant_as_nanoseconds_are_told_wherever_they_are_shown() -> None:
    trace = Trace("mine", arrival=range(10), prompt=[5] * 10, output=[3] * 10)
    told = ("arrivals are in nanoseconds, by which 1e+09 requests come a second: make them 10**9 times as large if "
            "they are in seconds, 10**6 times if in ms")
    assert trace.report.notes == (told,)
    assert str(trace).splitlines()[-1] == f"note: {told}"
    assert f"<p>note: {told}</p>" in trace._repr_html_()
    found = sim.simulate(trace, "vllm", **WORLD)
    assert str(found).splitlines()[1] == told
    assert f"<li>{told}</li>" in found._repr_html_()


@pytest.mark.parametrize("arrival", [range(9), [7] * 10, range(0, 10_010, 1001), range(0, 10 * 10 ** 9, 10 ** 9)])
def test_few_requests_all_at_once_and_bursts_may_be_as_close_as_they_are(arrival: Sequence[int]) -> None:
    rows = [1] * len(arrival)
    assert Trace("mine", arrival=arrival, prompt=rows, output=rows).report.notes == ()


def test_a_run_that_served_nothing_shows_itself() -> None:
    found = sim.simulate(trace_of([(0, 5000, 3)]), "vllm", **WORLD)
    assert "<svg" not in found._repr_html_()
    assert "finished" in str(found)


def test_the_numbers_of_runs_stand_side_by_side() -> None:
    table = numbers({"a": {"completed": 1, "slots": 2, "slots_counted": "cap"}, "b": {"completed": None,
                    "kv_usage_mean": 0.5, "slots": 3, "slots_counted": "cap"}})
    assert table.header == ("", "a", "b", "unit")
    assert table.rows == (("finished", "1", "-", "requests"), ("KV use, mean", "-", "50.0%", ""),
                          ("slots", "2", "3", "slots"))
    assert table.note == "cap"


def test_a_run_tells_which_share_of_its_requests_is_well_served() -> None:
    """Two at once, then a third; answers take 30, 90 and 30 ms; one of four is longer than the model."""
    trace = trace_of([(0, 5, 3), (0, 5, 9), (40_000_000, 8, 3), (90_000_000, 5000, 4)])
    found = json.loads(sim.simulate(trace, "vllm", goodput={"e2el": 40}, **WORLD).to_json())
    assert ("requests well served", "66.7%", "") in numbers({"a": found}).rows


def test_latencies_have_the_percentiles_of_the_run() -> None:
    run = {f"{name}_ttft_ms": value for name, value in (("mean", 1.0), ("median", 2.0), ("std", 0.5), ("p90", 3.0),
                                                       ("p99.9", None))}
    assert latencies(run).header == ("", "mean", "median", "std", "p90", "p99.9")
    assert latencies(run).rows == (("TTFT", "1", "2", "0.5", "3", "-"),)


def test_the_median_stands_there_once() -> None:
    run = {f"{name}_ttft_ms": 2.0 for name in ("mean", "median", "std", "p50", "p50.5", "p90")}
    assert latencies(run).header == ("", "mean", "median", "std", "p50.5", "p90")


@pytest.mark.parametrize(("retried", "note"), [(None, ""), (0, ""), (3, "Of the last try of each request; objectives "
                                                                      "are held against the time since its first.")])
def test_latencies_of_a_last_try_say_so(retried: int | None, note: str) -> None:
    assert latencies({"mean_ttft_ms": 1.0, "retried": retried}).note == note


def test_many_replicas_are_told_by_their_ends() -> None:
    share = {"requests": 1, "output_tokens": 1, "kv_usage_mean": 0.5, "preemptions": 0, "ordered_s": 0.0,
             "ready_s": 0.0, "stopped_s": 1.0}
    run = {"replica_stats": [{"replica": at, "busy": at / 100, **share} for at in range(1, 41)]}
    found = tables({"a": run})[-1]
    assert [row[0] for row in found.rows] == ["40", "39", "38", "37", "36", "35", "6", "5", "4", "3", "2", "1"]
    assert found.note == "The busiest and the idlest; 28 between."


def test_a_slowdown_against_another_fleet_says_so() -> None:
    tenant = {"tenant": "a", "requests": 1, "completed": 1, "median_ttft_ms": 1.0, "p99_ttft_ms": 1.0,
              "attainment": None, "request_goodput": None}
    run = {"tenant_stats": [tenant | {"slowdown": 0.9}], "autoscale": "queue:3"}
    assert tables({"a": run})[-1].note == ALONE_SCALES
    assert not tables({"a": run | {"autoscale": None}})[-1].note
    assert not tables({"a": run | {"tenant_stats": [tenant | {"slowdown": None}]}})[-1].note
