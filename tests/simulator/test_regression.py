"""A regression check compares data by stated tolerances and like definitions; what it cannot compare is no pass."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.metrics import METRICS
from simulator.plots import regression_figure
from simulator.studies import regression
from simulator.studies.regression import CHANGED, NOTHING, PASS, REGRESSION, WRONG, Compared, Regression
from simulator.studies.regression.baseline import Baseline
from simulator.studies.regression.comparing import Change, compare
from simulator.studies.regression.mechanics import mechanics
from simulator.studies.regression.names import NAMES, better, felt, metric_of, shown
from simulator.studies.regression.pictures import frame
from simulator.studies.regression.recorded import merged, side_of
from simulator.studies.regression.side import DEFINITIONS, Side
from simulator.studies.regression.tables import causes_table, changes_table, differing, moved, reasons
from simulator.studies.regression.tolerances import Tolerance, Tolerances, stated, tolerances

EXACT = Tolerances({}, Tolerance(), "exact")
numbers = st.floats(-1e12, 1e12, allow_nan=False) | st.integers(-10**9, 10**9)


def side(metrics: dict[str, Any], **more: Any) -> Side:
    options: dict[str, Any] = {"kind": "simulated", "definitions": DEFINITIONS, "conditions": {}, **more}
    return Side(metrics=metrics, **options)


def bench(requests: list[tuple[float, list[float], int]], **more: Any) -> dict[str, Any]:
    """What `vllm bench serve --save-detailed` says of requests of (TTFT, gaps, output tokens)."""
    return {"backend": "vllm", "completed": len(requests), "duration": 10.0, "output_throughput": 5.0,
            "num_prompts": len(requests), "request_rate": "inf", "ttfts": [each[0] for each in requests],
            "itls": [each[1] for each in requests], "output_lens": [each[2] for each in requests],
            "errors": [""] * len(requests), **more}


# Tolerances


@given(numbers, st.floats(0, 10), st.floats(0, 1e6))
def test_a_value_is_always_within_the_tolerance_of_itself(value: float, relative: float, absolute: float) -> None:
    assert Tolerance(relative, absolute).holds(value, value)
    assert Tolerance.read("exact").holds(value, value)


@pytest.mark.parametrize(("text", "before", "inside", "outside"), [
    ("5%", 200, 210, 210.1), ("5%", -200, -190, -189.9), ("3", 0, 3, 3.1), ("0", 7, 7, 7.1), ("exact", 7, 7, 8),
    ("1e1%", 10, 9, 8.9), ("0%", 7, 7, 7.1)])
def test_a_tolerance_is_a_share_or_a_number(text: str, before: float, inside: float, outside: float) -> None:
    read = Tolerance.read(text)
    assert read.holds(before, inside)
    assert not read.holds(before, outside)


@given(st.floats(0.1, 1e6))
def test_a_tolerance_is_told_as_it_is_read(percent: float) -> None:
    told = str(Tolerance.read(f"{percent:g}%"))
    assert str(Tolerance.read(told)) == told


@pytest.mark.parametrize("text", ["", "five", "-1", "nan", "inf", "5%%", "%", "1 2"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(InputError, match="a tolerance is exact, a percentage such as 5%"):
        Tolerance.read(text)


def test_another_processor_may_round_otherwise() -> None:
    """A sum of many floats differs in its last digits between machines; a nanosecond in an hour is far larger."""
    assert Tolerance().holds(1.0, 1.0 + 1e-12)
    assert not Tolerance().holds(3600.0, 3600.0 + 1e-5)
    assert not Tolerance().holds(1_000_000, 1_000_001)


def test_the_nearest_tolerance_counts() -> None:
    found = tolerances(side({}), side({}), {"all": "1%", "ttft": "2%", "p99_ttft_ms": "3%"})
    assert [str(found.of(name)) for name in ("p99_ttft_ms", "mean_ttft_ms", "steps")] == ["3%", "2%", "1%"]
    assert found.why == "1%, as stated"
    with pytest.raises(InputError, match=r"'p99_ttft': did you mean 'p99_ttft_ms'\? \(`batchsim run --json`"):
        tolerances(side({}), side({}), {"p99_ttft": "3%"})


def test_it_is_exact_for_the_same_version_and_the_same_step_times() -> None:
    plain = {"simulator_version": "1", "cost_model": "h100", "cost_digest": "a", "step_error": 0.03}
    before = side({}, origin=plain)
    assert str(tolerances(before, before, {}).default) == "exact"
    assert str(tolerances(before, side({}, origin=plain | {"simulator_version": "2"}), {}).default) == "1%"
    refit = side({}, origin=plain | {"cost_digest": "b", "step_error": 0.05})
    assert str(tolerances(before, refit, {}).default) == "5%"
    other = side({}, origin=plain | {"cost_model": "h200", "cost_digest": "b"})
    assert str(tolerances(before, other, {}).default) == "exact"    # asked for, not calibrated anew
    unpriced = side({}, origin={"simulator_version": "1"})
    assert [tolerances(before, each, {}).why for each in (before, other, unpriced)] == [
        "exact: the same version and the same step times",
        "exact: the same version, and other step times because they were asked for", "exact: the same version"]
    assert str(tolerances(before, side({}, kind="measured"), {}).default) == "5%"
    ideal = [side({}, origin=plain | {"cost_model": "roofline", "cost_digest": digest, "step_error": 0.0})
             for digest in "ab"]
    assert str(tolerances(*ideal, {}).default) == "exact"    # another GPU, or other code: nobody calibrated it


# Names


def test_every_name_of_a_run_is_known() -> None:
    assert {metric_of(name) for name in NAMES} == set(METRICS)
    assert (metric_of("p95.5_ttft_ms"), metric_of("p95_steps_ms"), metric_of("ttft_p99")) == ("ttft", None, None)
    assert (better("p99_ttft_ms"), better("output_throughput"), better("kv_usage_max")) == ("lower", "higher", None)
    assert felt("p99_ttft_ms")
    assert not felt("std_ttft_ms")
    assert not felt("steps")


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0, "0"), (0.0, "0"), (1234, "1,234"), (0.123456, "0.1235"),
                                             (26107.3, "26,107"), (1e15, "1,000,000,000,000,000")])
def test_values_are_short(value: float | None, text: str) -> None:
    assert shown(value) == text


# Verdicts


@pytest.mark.parametrize(("name", "now", "tolerance", "verdict", "fails"), [
    ("p99_ttft_ms", 100, "exact", "same", False), ("p99_ttft_ms", 101, "exact", "worse", True),
    ("p99_ttft_ms", 99, "exact", "better", True), ("output_throughput", 101, "exact", "better", True),
    ("kv_usage_max", 101, "exact", "changed", True), ("p99_ttft_ms", 104, "5%", "same", False),
    ("p99_ttft_ms", 106, "5%", "worse", True), ("p99_ttft_ms", 50, "5%", "better", False),
    ("output_throughput", 94, "5%", "worse", True), ("kv_usage_max", 94, "5%", "changed", True)])
def test_an_exact_metric_must_not_even_improve(name: str, now: float, tolerance: str, verdict: str,
                                               fails: bool) -> None:
    [change] = compare(side({name: 100}), side({name: now}), Tolerances({}, Tolerance.read(tolerance), ""))
    assert (change.verdict, change.fails) == (verdict, fails)


def test_a_renamed_metric_is_nothing_compared() -> None:
    found = compare(side({"steps": 1, "p99_ttft_ms": 5.0}), side({"steps": 1, "p99_ttft": 5.0}), EXACT)
    assert [change.verdict for change in found] == ["same", "not compared"]
    assert Compared("a", found).outcome == NOTHING
    assert "renamed" in found[1].reason


def test_a_metric_that_is_not_measured_any_more_is_nothing_compared() -> None:
    [change] = compare(side({"request_goodput": 1.0}), side({"request_goodput": None}), EXACT)
    assert change.reason == "it was measured in the baseline, and is not now"
    assert compare(side({"request_goodput": None}), side({"request_goodput": None}), EXACT) == ()


def test_a_regression_outweighs_what_was_not_compared() -> None:
    found = Compared("a", compare(side({"steps": 1, "duration": 1}), side({"steps": 2}), EXACT))
    assert (found.outcome, len(found.failed), len(found.missing)) == (REGRESSION, 1, 1)


@pytest.mark.parametrize(("outcomes", "outcome", "status"), [
    ([], NOTHING, 3), ([PASS], PASS, 0), ([PASS, NOTHING], NOTHING, 3), ([NOTHING, REGRESSION, PASS], REGRESSION, 1),
    ([REGRESSION, WRONG], WRONG, 2), ([PASS, CHANGED], CHANGED, 1), ([CHANGED, REGRESSION], REGRESSION, 1)])
def test_it_passes_only_where_everything_was_compared(outcomes: list[str], outcome: str, status: int) -> None:
    changes = {PASS: 1, REGRESSION: 2, CHANGED: 0, NOTHING: None, WRONG: None}
    compared = [Compared(each, compare(side({"steps": 1}), side({"steps": changes[each]}), EXACT), wrong=each == WRONG)
                for each in outcomes]
    found = Regression(tuple(compared), "" if outcomes else "there is none")
    assert (found.outcome, found.status, found.passed) == (outcome, status, outcome == PASS)
    if not found.passed:
        with pytest.raises(AssertionError):
            found.check()


def test_of_several_baselines_the_verdict_counts() -> None:
    same, moved = (Compared(name, compare(side({"steps": 1}), side({"steps": now}), EXACT))
                   for name, now in (("same", 1), ("moved", 2)))
    assert Regression((same, moved, moved)).verdict() == (
        "Regression. Of 3 baselines 2 regressed: moved, moved; 1 passed, 1 metric within its tolerance.")
    assert Regression((same, same)).verdict() == "Pass. All 2 passed, 2 metrics within their tolerances."
    assert Regression((moved,)).verdict() == "Regression. moved: 1 worse of 1 metric."


@pytest.mark.parametrize(("name", "now", "outcome"), [
    ("p99_ttft_ms", 99, CHANGED), ("p99_ttft_ms", 101, REGRESSION), ("kv_usage_max", 101, CHANGED)])
def test_what_only_improved_is_no_regression_and_no_pass(name: str, now: float, outcome: str) -> None:
    found = Regression((Compared("a", compare(side({name: 100}), side({name: now}), EXACT)),))
    assert (found.outcome, found.status, found.passed) == (outcome, 1, False)
    assert ("--accept what is meant" in found.verdict()) == (outcome == CHANGED)
    assert ("Neither way is better of " in found.verdict()) == (name == "kv_usage_max")


def test_a_short_table_names_what_is_better_beside_what_changed() -> None:
    names = ["kv_usage_max", "steps", "std_ttft_ms"]
    one = Compared("a", compare(side(dict.fromkeys(names, 100)), side(dict.fromkeys(names, 50)), EXACT))
    verdicts = [row[-1] for row in changes_table(one).rows]
    assert sorted(verdicts) == ["better", "better", "changed"]


def test_one_number_is_no_tolerance_of_all_units() -> None:
    with pytest.raises(InputError, match="for all metrics would be 2 in the unit of each: did you mean 2%"):
        stated({"all": "2"})
    assert stated({"all": "0"})["all"].exact
    assert stated({"steps": "2"})["steps"].absolute == 2


def test_only_what_is_wanted_is_compared() -> None:
    sides = [side({"steps": 1, "mean_ttft_ms": 2.0, "p99_ttft_ms": 3.0})] * 2
    assert [change.name for change in compare(*sides, EXACT, ["ttft"])] == ["mean_ttft_ms", "p99_ttft_ms"]
    [change] = compare(*sides, EXACT, ["p99_tttf_ms"])
    assert (change.verdict, change.reason) == (
        "not compared", "the baseline has no such metric: did you mean 'p99_ttft_ms'?")


@given(st.dictionaries(st.sampled_from(NAMES), numbers, min_size=1, max_size=8), st.sampled_from(["exact", "5%", "2"]))
def test_the_same_twice_passes(metrics: dict[str, float], tolerance: str) -> None:
    allowed = Tolerances({}, Tolerance.read(tolerance), "")
    assert Compared("a", compare(side(metrics), side(dict(metrics)), allowed)).outcome == PASS


# Engine measurements


def test_tpot_without_the_first_token_and_what_the_file_says_of_it() -> None:
    """TTFT of 1 s and four gaps of 0.1 s: 0.1 s a token without the first, 0.28 s with it."""
    request = (1.0, [0.1] * 4, 5)
    found = side_of("a.json", bench([request], mean_tpot_ms=280.0))
    assert found.metrics["mean_tpot_ms"] == pytest.approx(100)
    assert found.notes == ("mean_tpot_ms of the file, 280, counts the first token; from its arrays, the first token "
                           "excluded, it is 100, which is compared",)
    assert side_of("b.json", bench([request], mean_tpot_ms=100.0)).notes == ()
    assert "is not what its arrays say" in side_of("c.json", bench([request], mean_tpot_ms=50.0)).notes[0]


def test_definitions_that_differ_are_not_mixed() -> None:
    metrics = {"mean_tpot_ms": 100.0, "output_throughput": 5.0}
    with_first = side(metrics, definitions={**DEFINITIONS, "tpot": "the first token counted"})
    found = compare(side(metrics), with_first, EXACT)
    assert [change.verdict for change in found] == ["not compared", "same"]
    assert found[0].reason == "its definition differs (tpot): the first token excluded, now the first token counted"


def test_chunks_are_no_tokens() -> None:
    """51 tokens, one a second or ten every ten seconds: a TPOT of 1 s both, gaps of 1 s and of 10 s."""
    single, chunks = (side_of(name, bench([(1.0, gaps, 51)])) for name, gaps in (
        ("single.json", [1.0] * 50), ("chunks.json", [10.0] * 5)))
    assert (single.metrics["mean_tpot_ms"], chunks.metrics["mean_tpot_ms"]) == (1000, 1000)
    assert (single.metrics["mean_itl_ms"], chunks.metrics["mean_itl_ms"]) == (1000, 10_000)
    assert (single.definitions["itl"], chunks.definitions["itl"]) == ("between tokens", "between chunks of 10 tokens")
    found = {change.name: change.verdict for change in compare(single, chunks, EXACT)}
    assert (found["mean_tpot_ms"], found["mean_itl_ms"]) == ("same", "not compared")


def test_without_arrays_nobody_knows_what_a_gap_is() -> None:
    summary = {"completed": 1, "duration": 2.0, "mean_itl_ms": 10.0, "mean_tpot_ms": 10.0, "p99_ttft_ms": 5.0}
    measured = side_of("a.json", summary)
    found = compare(side({"mean_itl_ms": 10.0, "mean_tpot_ms": 10.0}), measured, EXACT)
    assert [change.verdict for change in found] == ["not compared", "same"]
    assert {change.verdict for change in compare(measured, measured, EXACT)} == {"same"}


def test_three_slow_answers_among_ever_more_fast_ones() -> None:
    """The mean improves because three outliers are diluted; the median says that nothing was faster."""
    few, many = (side_of(f"{n}.json", bench([(1000.0, [], 1)] * 3 + [(0.1, [], 1)] * n, num_prompts=1))
                 for n in (100, 150))
    found = {change.name: change for change in compare(few, many, EXACT)}
    assert found["mean_ttft_ms"].verdict == "better"
    assert found["median_ttft_ms"].verdict == "same"
    assert found["p99_ttft_ms"].verdict == "same"


def test_who_was_not_answered_has_no_latency() -> None:
    requests = [(0.2, [0.1], 2), (9.0, [], 5), (0.0, [], 0)]
    found = side_of("a.json", bench(requests, errors=["", "refused", ""], p90_ttft_ms=1.0))
    assert (found.metrics["mean_ttft_ms"], found.metrics["p90_ttft_ms"]) == (200, 200)
    with pytest.raises(InputError, match=r"a\.json: holds no answered request"):
        side_of("a.json", bench(requests, errors=["x"] * 3))


@pytest.mark.parametrize(("document", "words"), [
    ([], "is no result"), ({"completed": 1}, "is no result"), (None, "is no result"),
    (bench([(0.1, [0.1], 2)], itls=[0.1]), "request 0: 'itls' must be a list of numbers"),
    (bench([(0.1, ["x"], 2)]), "request 0: 'itls' must be a number of seconds"),      # type: ignore[list-item]
    (bench([(inf, [0.1], 2)]), "request 0: 'ttfts' must be a number of seconds"),
    (bench([(0.1, [0.1], 2)], output_lens=[1, 2]), "its arrays differ in length")])
def test_what_is_no_result_is_refused(document: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        side_of("a.json", document)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner)
                    | st.dictionaries(st.sampled_from(["completed", "duration", *NAMES[:30], "p7_ttft_ms", "ttfts",
                                                       "itls", "output_lens", "backend", "scenario"]), inner)))
def test_whatever_a_file_holds_is_read_or_refused(document: Any) -> None:
    with suppress(InputError):
        json.dumps(dict(side_of("a.json", document).metrics), allow_nan=False)


def test_answers_to_two_questions_are_not_compared() -> None:
    one, other = (side_of("a.json", bench([(0.1, [0.1], 2)], request_rate=rate)) for rate in ("inf", 5.0))
    assert {change.reason for change in compare(one, other, EXACT)} == {
        "request_rate was inf, and is 5.0: these are answers to two questions"}


def test_null_is_an_answer_too() -> None:
    """No limit and one of 8 are two questions; a file that says nothing of it may have had either."""
    free, bound, silent = (side_of("a.json", bench([(0.1, [0.1], 2)], **more))
                           for more in ({"max_concurrency": None}, {"max_concurrency": 8}, {}))
    assert {change.reason for change in compare(free, bound, EXACT)} == {
        "max_concurrency was none, and is 8: these are answers to two questions"}
    assert {change.verdict for each in (free, bound) for change in compare(silent, each, EXACT)} == {"same"}
    simulated = side({"output_throughput": 5.0}, conditions={"request_rate": None})
    assert compare(simulated, side_of("a.json", bench([(0.1, [0.1], 2)])), EXACT)[0].verdict == "same"


def test_of_another_trace_only_a_rerun_is_compared() -> None:
    one, other = (side({"completed": 5}, origin={"trace_digest": digest}, scenario={"seed": 0}) for digest in "ab")
    assert compare(one, other, EXACT)[0].reason == "trace was a, and is b: these are answers to two questions"
    assert compare(one, other, EXACT, rerun=True)[0].verdict == "same"


def test_what_the_baseline_did_not_measure_is_told_so() -> None:
    [found] = compare(side({"dollars": None}), side({"dollars": 1.0}), EXACT, ["dollars"])
    assert (found.verdict, found.reason) == ("not compared", "the baseline did not measure it")


@pytest.mark.parametrize("name", ["request_goodput", "jain_index"])
def test_what_counts_promises_kept_depends_on_them(name: str) -> None:
    strict, lax = (side({name: 1.0}, definitions={**DEFINITIONS, "goodput": told}) for told in ("ttft:1", "ttft:9"))
    assert compare(strict, lax, EXACT)[0].reason == "its definition differs (goodput): ttft:1, now ttft:9"


def test_repetitions_widen_the_tolerance_of_what_scatters() -> None:
    """In one job figures lie 0.3% apart, between machines 26%: the tolerance follows what was seen."""
    sides = [side_of("a.json", bench([(0.1, [0.1], 2)], output_throughput=value, request_throughput=1.0))
             for value in (87.0, 100.0, 113.0)]
    found = merged(sides)
    allowed = tolerances(found, found, {})
    assert found.metrics["output_throughput"] == 100
    assert [str(allowed.of(name)) for name in ("output_throughput", "request_throughput")] == ["26%", "5%"]
    assert found.notes == ("the mean of 3 results",)
    with pytest.raises(InputError, match="were not made alike"):
        merged([sides[0], replace(sides[1], conditions={"num_prompts": 7})])
    with pytest.raises(InputError, match="were not made alike"):
        merged([sides[0], replace(sides[1], origin={"model_id": "another"})])


def test_runs_of_other_seeds_are_repetitions_and_those_of_other_policies_are_not() -> None:
    """Two policies as repetitions would lie so far apart that anything is within their scatter."""
    def ran(value: float, trace: str, **asked: Any) -> Side:
        return side({"steps": value}, origin={"trace_digest": trace}, scenario={"policy": "vllm", "seed": 0, **asked})
    found = merged([ran(9, "a"), ran(11, "b", seed=1)])
    assert (found.metrics["steps"], found.spread["steps"]) == (10, 0.2)
    with pytest.raises(InputError, match="were not made alike"):
        merged([ran(9, "a"), ran(100, "a", policy="static")])


def test_one_run_does_not_gate_on_what_one_run_does_not_tell() -> None:
    """Noise moves a tail and a standard deviation by more than a mean: they gate where both sides are repeated."""
    metrics = {"output_throughput": 100.0, "mean_ttft_ms": 100.0, "std_ttft_ms": 100.0, "p99_ttft_ms": 100.0,
               "max_concurrent_requests": 100}
    one = side(metrics, kind="measured")
    level = replace(one, metrics={**metrics, "mean_ttft_ms": 104.0, "std_ttft_ms": 90.0, "p99_ttft_ms": 130.0})
    found = Compared("a", compare(one, level, single := tolerances(one, level, {})))
    assert [change.verdict for change in found.changes] == ["same", "same", "told only", "told only", "same"]
    assert found.outcome == PASS
    assert Regression((found,)).verdict() == "Pass. a: 2 metrics within their tolerances, 3 told only."
    assert "standard deviations, tails and maxima told only: one run" in single.why
    stated = compare(one, level, tolerances(one, level, {"p99_ttft_ms": "20%"}))
    assert [change.name for change in stated if change.fails] == ["p99_ttft_ms"]
    few, many = merged([one, one, one]), merged([level, level, level])
    repeated = tolerances(few, many, {})
    assert [str(repeated.of(name)) for name in metrics] == ["5%", "5%", "10%", "10%", "10%"]
    assert [change.name for change in compare(few, many, repeated) if change.fails] == ["p99_ttft_ms"]


def test_where_all_that_is_asked_for_is_told_only_nothing_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(bench([(0.1, [0.1], 2)])))
    found = regression.regress(path, results=[path], metrics=["p99_ttft_ms"])
    assert found.outcome == NOTHING
    assert "one run does not tell how far they scatter" in str(found)
    assert regression.regress(path, results=[path], metrics=["ttft"]).passed


def test_what_is_told_of_a_tolerance_is_what_holds() -> None:
    """A spread of 12.8682% is told, and held, as 12.9%."""
    apart = Tolerances({}, Tolerance(0.05), "", {"duration": 0.128682})
    assert (str(apart.of("duration")), apart.of("duration").relative) == ("12.9%", 0.129)


def test_between_a_simulation_and_a_measurement_only_what_both_have_is_compared() -> None:
    measured = side_of("a.json", bench([(0.1, [0.1], 2)]))
    simulated = side({"steps": 7, "output_throughput": 5.1, "mean_ttft_ms": 100.0})
    found = compare(simulated, measured, tolerances(simulated, measured, {}))
    assert [(change.name, change.verdict) for change in found] == [("output_throughput", "same"),
                                                                   ("mean_ttft_ms", "same")]


# What is told


def change_of(name: str, before: float, after: float) -> Change:
    return Change(name, before, after, Tolerance(), "worse")


def test_a_mean_is_the_sum_of_its_parts() -> None:
    before = {"mean_ttft_ms": 100.0, "mean_queue_time_ms": 60.0, "mean_ttft_preemption_ms": 0.0,
              "mean_ttft_prefill_ms": 30.0, "mean_ttft_delivery_ms": 10.0, "mean_e2el_ms": 200.0}
    after = before | {"mean_ttft_ms": 128.0, "mean_queue_time_ms": 90.0, "mean_ttft_prefill_ms": 28.0,
                      "mean_e2el_ms": 210.0}
    assert mechanics(change_of("mean_ttft_ms", 100, 128), before, after) == "queue time +30, prefill -2 ms"
    assert mechanics(change_of("p99_ttft_ms", 100, 128), before, after) == (
        "its mean moved by +28 ms: queue time +30, prefill -2")
    assert mechanics(change_of("mean_e2el_ms", 200, 210), before, after) == (
        "until the first token +28, after it -18 ms")


def test_a_rate_is_the_product_of_its_parts() -> None:
    before = {"output_throughput": 100.0, "duration": 10.0, "steps": 50}
    after = {"output_throughput": 50.0, "duration": 20.0, "steps": 200}
    assert mechanics(change_of("output_throughput", 100, 50), before, after) == (
        "0.25 x the tokens a step, 2 x the steps a second")
    assert mechanics(change_of("duration", 10, 20), before, after) == "4 x the steps, 0.5 x as long each"


def test_the_rest_is_explained_by_the_work() -> None:
    before, after = {"preemptions": 0, "steps": 100, "mean_batch_size": 8.0}, {
        "preemptions": 3, "steps": 101, "mean_batch_size": 8.0}
    assert mechanics(change_of("p99_tpot_ms", 1, 2), before, after) == "preemptions 0 -> 3, steps 100 -> 101"
    assert mechanics(change_of("p99_tpot_ms", 1, 2), {}, {}) == ""


def test_the_largest_changes_are_of_different_subjects() -> None:
    before = {"duration": 10.0, "output_throughput": 100.0, "mean_ttft_ms": 5.0, "p99_ttft_ms": 9.0, "steps": 1,
              "mean_tpot_ms": 4.0, "preemptions": 0}
    after = {"duration": 20.0, "output_throughput": 50.0, "mean_ttft_ms": 6.0, "p99_ttft_ms": 18.1, "steps": 90,
             "mean_tpot_ms": 4.1, "preemptions": 50}
    found = Compared("a", compare(side(before), side(after), EXACT))
    assert [change.name for change in found.largest] == ["p99_ttft_ms", "duration", "mean_tpot_ms"]


def test_what_measurements_differ_in_is_not_known() -> None:
    """A file of an engine tells its model and backend, and nothing of its code, knobs and machine."""
    measured = Baseline("a.json", side({"steps": 1}, kind="measured"), {})
    found = Compared("a", compare(measured.side, side({"steps": 2}, kind="measured"), EXACT), "", measured,
                     side({"steps": 2}, kind="measured"))
    table = causes_table(found)
    assert (table.note, table.header) == ("In what the two runs differ, these files do not tell.", ("metric", "moved"))
    ran = side({"steps": 1}, scenario={"seed": 0})
    assert differing(replace(found, baseline=replace(measured, side=ran), current=ran)).endswith(
        "what differs is the code.")


def test_a_reason_is_told_once() -> None:
    found = Compared("a", compare(side(dict.fromkeys(NAMES[:20], 1)), side({}), EXACT))
    assert reasons(found) == [
        "20 metrics: the current result does not have it: it was renamed, or was not asked for"]
    assert reasons(replace(found, changes=found.changes[:2]))[0].startswith("completed, rejected: ")


@pytest.mark.parametrize(("before", "after", "words"), [
    (100.0, 100.0 + 1e-13, "same"), (100.0, 100.00001, "+<0.0001%"), (100.0, 99.9, "-0.1%"), (1.0, 71.3, "+7,030%"),
    (0.0, 1.0, "from 0"), (None, 1.0, "-")])
def test_a_change_reads_as_a_person_writes_it(before: float, after: float, words: str) -> None:
    assert moved(Change("steps", before, after, Tolerance(), "worse")) == words


def test_what_is_the_same_within_a_tolerance_shows_no_difference_that_nobody_can_read() -> None:
    found = [moved(Change("steps", 100.0, 100.0 + more, Tolerance(0.01), "same")) for more in (0, 1e-5, -1e-5, 0.5)]
    assert found == ["same", "same", "same", "+0.5%"]


@pytest.fixture
def odd(tmp_path: Path) -> Regression:
    """A regression whose baseline has a name that Markdown, XML and terminals would obey."""
    path = tmp_path / "a|b`<script>\x07*_.json"
    path.write_text(json.dumps(bench([(0.1, [0.1], 2)])))
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(bench([(0.5, [0.1], 2)], output_throughput=1.0)))
    return regression.regress(path, results=[worse])


def test_markdown_shows_odd_names_as_they_are(odd: Regression) -> None:
    text = odd.to_markdown()
    assert odd._repr_markdown_() == text, "a notebook shows the same"
    assert text.startswith("## batchsim regress: regression\n")
    assert "### a\\|b\\`\\<script>" in text
    assert "| output tokens/s | 5 | 1 | -80% | 5% | worse |" in text
    assert "1. **output tokens/s**: 5 → 1 (-80%)" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.count(" | ") == 5 for line in rows)


def test_junit_has_a_suite_a_baseline_and_a_test_a_metric(odd: Regression) -> None:
    [suite] = ElementTree.fromstring(odd.to_junit())
    assert suite.get("name") == "a|b`<script>?*_"
    assert (int(suite.get("tests", "")), int(suite.get("failures", ""))) == (
        len(suite.findall("testcase")), len(suite.findall("testcase/failure")))
    case = next(case for case in suite if case.get("name") == "output_throughput")
    assert case[0].get("message") == "output tokens/s: 5 -> 1 (-80%, tolerance 5%)"


def test_junit_of_nothing_is_an_error_and_no_pass(tmp_path: Path) -> None:
    for found in (regression.regress(tmp_path), regression.regress(tmp_path / "none.json")):
        suites = ElementTree.fromstring(found.to_junit())
        assert (suites.get("tests"), suites.get("errors"), suites.get("failures")) == ("1", "1", "0")
        assert "batchsim baseline save" in suites.find("testsuite/testcase/error").get("message")  # type: ignore
        assert "batchsim baseline save" in found.to_markdown()
        assert json.loads(json.dumps(found.to_dict()))["status"] == 3


def test_the_figure_shows_what_moved_and_how_far_it_may(odd: Regression) -> None:
    rows = frame(odd).set_index("metric")
    assert rows.loc["output tokens/s", ["moved", "low", "high", "verdict", "fails", "words"]].tolist() == [
        pytest.approx(-0.8), -0.05, 0.05, "worse", True, "5 → 1"]
    assert rows.loc["TTFT, mean", "moved"] == pytest.approx(4)
    [panel] = regression_figure(frame(odd), "title").axes
    assert [text.get_text() for text in panel.get_yticklabels()] == rows.index.tolist()
    marks = {line.get_ydata()[0]: line.get_xdata()[-1] for line in panel.lines if len(line.get_xdata()) == 1}
    assert marks[rows.index.get_loc("TTFT, mean")] == 1    # it leaves the picture, at the edge
    assert marks[rows.index.get_loc("output tokens/s")] == pytest.approx(-0.8)


def test_from_zero_is_no_share() -> None:
    found = Regression((Compared("a", compare(side({"preemptions": 0}), side({"preemptions": 5}), EXACT)),))
    assert frame(found)[["moved", "words"]].to_numpy().tolist() == [[inf, "0 → 5"]]
    assert len(regression_figure(frame(found)).axes) == 1
    assert len(regression_figure(frame(Regression(()))).axes) == 0


def test_of_several_baselines_each_has_a_panel_and_those_that_pass_a_line() -> None:
    same = Compared("same", compare(side({"steps": 1, "duration": 1}), side({"steps": 1, "duration": 1}), EXACT))
    moved = Compared("moved", compare(side({"steps": 1, "duration": 1}), side({"steps": 1, "duration": 2}), EXACT))
    rows = frame(Regression((same, moved)))
    assert rows[["baseline", "metric", "words"]].to_numpy().tolist() == [
        ["same", "all metrics", "2 as they were"], ["moved", "duration", "1 → 2 s"]]
    assert len(regression_figure(rows).axes) == 2
