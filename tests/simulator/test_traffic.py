"""Traffic: in which order a scenario leaves out, adds, shapes and caps, what it counts, and what it refuses."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import numpy as np
import pytest
from worlds import trace_of

from simulator.errors import InputError
from simulator.remarks import remarks
from simulator.scenario import Scenario, scenario_of
from simulator.setup import prepare
from simulator.simulation import run, simulate
from simulator.studies.compare import compare
from simulator.studies.replications import windows
from simulator.traffic import as_read, read_trace, under_load
from traces import Trace, TraceError

SECOND = 10 ** 9


def ready(rows: list[tuple[int, ...]], **options: Any) -> Any:
    return prepare(scenario_of(trace=trace_of(rows), **options))


def even(count: int, prompt: int = 10, **columns: Any) -> Trace:
    return Trace("even", np.arange(count) * SECOND, np.full(count, prompt), np.full(count, 5), **columns)


def test_too_long_requests_are_rejected_counted_and_the_largest_is_told() -> None:
    """Totals of 4300, 12500 and 8193 where the model holds 8192, which itself is served."""
    rows = [(0, 4000, 300), (1, 12000, 500), (2, 8192, 1), (3, 8191, 1)]
    found = simulate(trace_of(rows), max_model_len=8192, max_tokens="exact").summary()
    assert (found["completed"], found["rejected"]) == (2, 2)
    assert (found["largest_rejected_request"], found["largest_rejected_tokens"]) == (1, 12500)
    cut = simulate(trace_of(rows), "orca", max_model_len=8192, max_tokens="exact", too_long="truncate").summary()
    assert (cut["completed"], cut["rejected"], cut["truncated"]) == (4, 0, 2)
    assert cut["total_input_tokens"] == 4000 + 7692 + 8191 + 8191


def test_the_cap_comes_after_the_filter() -> None:
    """100 rows, the first 85 too long: asked for 100 come 15, asked for 10 come 10 and the rejected before them."""
    rows = [(at, 9000 if at < 85 else 100, 1) for at in range(100)]
    def counts(asked: int) -> tuple[int, int]:
        found = simulate(trace_of(rows), max_model_len=8192, num_prompts=asked).summary()
        return found["completed"], found["rejected"]

    assert counts(100) == (15, 85)
    assert counts(10) == (10, 85)
    assert len(read_trace(scenario_of(trace=trace_of(rows), num_prompts=10, too_long="truncate"))) == 10


def test_an_output_that_is_cut_is_not_too_long() -> None:
    rows = [(0, 100, 9000), (1, 100, 9000), (2, 100, 1)]
    assert len(read_trace(scenario_of(trace=trace_of(rows), max_model_len=500, num_prompts=1, max_tokens=10))) == 1
    assert len(read_trace(scenario_of(trace=trace_of(rows), max_model_len=500, num_prompts=1))) == 3


def test_clones_come_only_when_asked_for() -> None:
    rows = [(at * SECOND, 100, 1) for at in range(15)]
    assert simulate(trace_of(rows), num_prompts=100).summary()["num_prompts"] == 15
    twice = simulate(trace_of(rows), repeat=2).summary()
    assert (twice["num_prompts"], twice["trace_notes"]) == (30, "repeated: 2 rounds")


def test_fewer_requests_than_asked_for_are_told_once() -> None:
    """Of 15 rows 14 are held by the model; a run that asks for 14 has what it asked for."""
    rows = [(at * SECOND, 100, 1) for at in range(14)] + [(14 * SECOND, 100, 900)]
    asked = Scenario(trace=trace_of(rows), max_model_len=500, num_prompts=40, repeat=2)
    note = "--num-prompts 40: the model holds 28 of the requests, and all are used; --repeat 4 gives as many"
    result = run(asked)
    assert result.summary()["trace_notes"] == f"repeated: 2 rounds; {note}"
    assert note in remarks(result)
    assert note in prepare(as_read(asked)).trace.report.notes
    assert prepare(as_read(asked).but(num_prompts=28)).trace.report.notes == ("repeated: 2 rounds",)
    assert "the model holds 0 of the requests, and all are used" in str(
        prepare(asked.but(max_model_len=50)).trace.report.notes)
    parts = windows(asked.but(repeat=1), 3)    # each has fewer, as it should
    assert [prepare(part).trace.report.notes for part in parts] == [()] * 3


def test_what_of_a_shape_comes_after_the_last_request_is_told() -> None:
    def notes(**options: Any) -> tuple[str, ...]:
        return prepare(scenario_of(trace=even(100), **options)).trace.report.notes

    assert notes(shape="burst:x5/10s@2h") == (
        "the burst at 7,200 s changes nothing: the last of 100 requests comes at 99 s",)
    assert notes(shape="burst:x5/10s@99s") == notes(shape="burst:x5/10s@10s,x2/1h@20s") == ()
    assert notes(shape="burst:x2/1s@60s", rate_scale=2) == (
        "the burst at 60 s changes nothing: the last of 100 requests comes at 49.5 s",)
    early = {"shape": "stage:1/10s,2/1h", "burstiness": inf, "num_prompts": 40}
    assert notes(**early) == ("the shape lasts 3,610 s, and the last of 40 requests comes at 24.5 s of it",)
    assert len(notes(**{**early, "shape": "stage:2/1h+burst:x2/1m@50m,x2/1m@0s"})) == 2


def test_prompts_and_outputs_may_be_scaled_and_a_result_runs_again_so() -> None:
    asked = Scenario(trace="azure-code-2023", prompt_scale=2, output_scale=0.5, num_prompts=20)
    whole, found = read_trace(Scenario(trace="azure-code-2023")), run(asked)
    assert found.setup.trace.prompt.tolist() == (2 * whole.prompt[:20]).tolist()
    assert found.setup.trace.output.tolist() == [max(1, round(tokens / 2)) for tokens in whole.output[:20].tolist()]
    assert found.summary()["trace_notes"] == "prompts x 2, outputs x 0.5"
    kept = json.loads(found.to_json())["scenario"]
    assert (kept["prompt_scale"], kept["output_scale"]) == (2.0, 0.5)
    assert run(found.scenario).summary() == found.summary() == run(as_read(asked)).summary()
    part, = {each.prompt_scale for each in windows(Scenario(trace=even(100), prompt_scale=2), 2)}
    assert part == 1.0    # it is done


def test_tenants_a_sample_and_rounds_apply_in_this_order() -> None:
    names = tuple("abca" * 25)
    trace = even(100, tenant=names)
    found = read_trace(Scenario(trace=trace, tenants={"a": 1.0}, sample=0.5, repeat=3, num_prompts=60))
    assert len(found) == 60
    assert set(found.tenant or ()) == {"a"}
    assert found.report.notes == ("tenants: a at 1 times its rate", "a sample of 0.5 of the requests",
                                  "repeated: 3 rounds")


def test_a_trace_that_is_read_is_not_sampled_again() -> None:
    scenario = Scenario(trace=even(100), sample=0.5, repeat=2, num_prompts=80)
    assert read_trace(as_read(scenario)).digest == read_trace(scenario).digest


def test_a_shape_says_when_they_come_and_the_seed_of_what() -> None:
    def arrivals(**options: Any) -> list[float]:
        scenario = scenario_of(trace=even(300), **options)
        return (under_load(read_trace(scenario), scenario).arrival / SECOND).tolist()

    assert arrivals(shape="stage:2/10s", burstiness=float("inf")) == [at / 2 for at in range(20)]
    assert arrivals(shape="stage:2/100s+stage:0/1s") == arrivals(shape="stage:2/100s")
    assert arrivals(shape="stage:2/100s") != arrivals(shape="stage:2/100s", seed=1)
    assert arrivals(shape="burst:x10/10s@10s", rate_scale=2)[20:25] == [10.0, 10.05, 10.1, 10.15, 10.2]
    assert arrivals(shape="burst:x2/1s@9999s", request_rate=3) == arrivals(request_rate=3)
    assert len(arrivals(shape="stage:2/10s", load="saturated")) == len(arrivals(shape="stage:2/10s"))
    assert set(arrivals(shape="stage:2/10s", load="saturated")) == {0.0}


def test_a_cap_may_end_a_shape_early_and_a_short_trace_may_not() -> None:
    assert len(ready([(0, 1, 1)] * 50, shape="stage:1/1h", num_prompts=50).trace) == 50
    with pytest.raises(TraceError, match="comes to 3,600 requests, and made has 50: repeat the trace 72 times"):
        ready([(0, 1, 1)] * 50, shape="stage:1/1h")


def test_every_run_of_a_comparison_has_the_same_requests() -> None:
    found = compare("azure-conv-2023", num_prompts=60, sample=0.3, mix={"azure-code-2023": 0.5}, ttft_timeout=1e-3)
    runs = [result.summary() for result in found.results.values()]
    assert {run["trace_digest"] for run in runs} == {runs[0]["trace_digest"]}
    assert "a sample of 0.3 of the requests" in runs[0]["trace_notes"]
    assert [run["aborted"] is None for run in runs] == [run["load"] == "saturated" for run in runs]


@pytest.mark.parametrize(("options", "words"), [
    ({"sample": 0}, "sample must be above 0"), ({"sample": 1.5}, "sample must be at most 1"),
    ({"repeat": 0}, "repeat must be a whole number of at least 1"), ({"too_long": "cut"}, "must be reject or truncate"),
    ({"tenants": ["a"]}, "tenants must map names to values"), ({"mix": {"azure-code-2023": -1}}, "must be above 0"),
    ({"shape": "stage:1/9s", "request_rate": 2}, "give one"), ({"shape": "ramp:1-2/9s", "rate_scale": 2}, "give one"),
    ({"rate_scale": 2, "request_rate": 2}, "give one")])
def test_wrong_values_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        scenario_of(**options)


@pytest.mark.parametrize(("options", "told"), [
    ({}, ()), ({"load": "saturated"}, ()),
    ({"rate_scale": 3}, ("rate_scale makes each of these rates 3 times as high",)),
    ({"request_rate": 5}, ("request_rate takes the place of these rates, and leaves their proportions",))])
def test_a_mix_says_what_became_of_its_rates(options: dict[str, Any], told: tuple[str, ...]) -> None:
    found = prepare(scenario_of(num_prompts=10, mix={"azure-code-2023": 2}, **options)).trace.report.notes
    mix, *rest = found
    assert mix.startswith("a mix: azure-conv-2023 at 1 times its rate, azure-code-2023 at 2 times its rate; ")
    assert tuple(rest) == told
    alone = prepare(scenario_of(num_prompts=10, rate_scale=3)).trace
    assert not any("these rates" in note for note in alone.report.notes)
