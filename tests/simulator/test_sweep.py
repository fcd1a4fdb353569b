"""A sweep: names and values become scenarios, records have vLLM's shape, and pictures show what the records say."""

from __future__ import annotations

import json
import sys
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import trace_of

from cost_models import Constant
from simulator import InputError, Scenario, simulate, sweep
from simulator.memory.base import UNLIMITED
from simulator.policies import Vllm
from simulator.studies.campaign import Failure
from simulator.studies.differences import UNMEASURED
from simulator.studies.sweep.account import MOST_NAMED, remarks
from simulator.studies.sweep.loads import loads, pareto
from simulator.studies.sweep.pictures import (
    heatmap_frame,
    less_is_better,
    pareto_frame,
    pareto_title,
    scattered_frame,
)
from simulator.studies.sweep.records import checked, efficiency, knob_of, record, to_csv, varied
from simulator.studies.sweep.tables import table, tenants
from simulator.studies.sweep.tuning import OTHERS, tune
from simulator.studies.sweep.variants import as_field, grid, variants
from simulator.studies.sweep.words import words
from traces import Trace

TRACE = Trace("tiny", np.arange(12) * 10 ** 8, np.full(12, 40), np.arange(1, 13) * 4)
BASE = Scenario(trace=TRACE)


def test_a_grid_runs_its_last_name_fastest() -> None:
    assert grid({"a": [1, 2], "b": [3, 4]}) == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
    assert grid({}) == [{}]


def test_a_name_is_a_field_an_entry_or_a_knob() -> None:
    found = variants(BASE.but(goodput={"tpot": 50}), {"block_size": 32}, [
        {"max_num_seqs": 8, "request_rate": 2, "goodput.ttft": 100, "gpu": "h200"}])
    [(key, variant)] = found.items()
    assert key == "max_num_seqs=8,request_rate=2,goodput.ttft=100,gpu=h200"
    assert variant.scenario == BASE.but(knobs={"block_size": 32, "max_num_seqs": 8}, request_rate=2.0, gpu="h200",
                                        goodput={"tpot": 50, "ttft": 100})


def test_a_knob_of_one_policy_does_not_multiply_the_others() -> None:
    found = variants(BASE, {"max_num_seqs": 4}, grid({"policy": ["static", "vllm"], "static.max_batch_size": [2, 8]}))
    assert {key: dict(variant.scenario.knobs) for key, variant in found.items()} == {
        "policy=static,static.max_batch_size=2": {"max_batch_size": 2},
        "policy=static,static.max_batch_size=8": {"max_batch_size": 8},
        "policy=vllm": {"max_num_seqs": 4}}


@pytest.mark.parametrize(("values", "told"), [
    ({"max_num_seq": 1}, "unknown field or knob of vllm 'max_num_seq': did you mean 'max_num_seqs'?"),
    ({"request_rat": 1}, "unknown field or knob of vllm 'request_rat': did you mean 'request_rate'?"),
    ({"vlm.max_num_seqs": 1}, "unknown policy or mapping before a dot 'vlm': did you mean 'vllm'? (known: vllm, "),
    ({"vllm.max_num_seq": 1}, "unknown field or knob of vllm 'max_num_seq': did you mean 'max_num_seqs'?"),
    ({"static.max_batch_size": 1}, "unknown policy or mapping before a dot 'static' (known: vllm, "),
    ({"policy": "vlm"}, "unknown policy 'vlm': did you mean 'vllm'?"),
    ({"max_num_seqs": "many"}, "vllm: max_num_seqs must be a whole number of at least 1, not 'many'"),
    ({"goodput.ttf": 1}, "unknown goodput objective 'ttf' (known: ttft, tpot, e2el)"),
    ({"tensor_parallel_size": 0}, "tensor_parallel_size must be a whole number of at least 1, not 0")])
def test_a_name_or_value_that_cannot_be_is_refused_before_anything_runs(values: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        variants(BASE, {}, [values])
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(("name", "given", "taken"), [
    ("request_rate", 2, 2.0), ("num_prompts", inf, None), ("max_concurrency", inf, None),
    ("max_model_len", inf, UNLIMITED), ("replicas", inf, inf), ("kv_capacity_tokens", inf, inf),
    ("noise", "none", None), ("cuda_graph_sizes", "none", "none"), ("seed", 3, 3),
    ("exact", True, True), ("max_tokens", "exact", "exact")])
def test_a_value_becomes_what_the_field_takes(name: str, given: Any, taken: Any) -> None:
    found = as_field(name, given)
    assert (found, type(found)) == (taken, type(taken))


def test_points_that_go_together_cross_what_is_varied() -> None:
    together = [{"max_num_seqs": 1}, {"max_num_seqs": 2, "block_size": 32}]
    found = sweep(TRACE, vary={"request_rate": [4, 8]}, points=together)
    assert list(found.outcomes) == [
        "max_num_seqs=1,request_rate=4", "max_num_seqs=1,request_rate=8",
        "max_num_seqs=2,block_size=32,request_rate=4", "max_num_seqs=2,block_size=32,request_rate=8"]


@pytest.mark.parametrize(("options", "told"), [
    ({"vary": {"seed": []}}, "seed is varied over no value: give some, such as seed=1,2,4"),
    ({"points": []}, "the list has no points: give one mapping of names to values for each"),
    ({"points": [{"seed": 1}], "vary": {"seed": [2]}}, "seed is both varied and listed: give one")])
def test_what_it_refuses(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        sweep(TRACE, **options)
    assert str(caught.value) == told


def test_a_record_is_the_summary_of_its_run_then_what_was_varied() -> None:
    [found] = sweep(TRACE, vary={"max_num_seqs": [2], "request_rate": [4]}).records
    alone = simulate(TRACE, "vllm", knobs={"max_num_seqs": 2}, request_rate=4.0).summary()
    assert list(found)[-3:] == ["run_number", "max_num_seqs", "request_rate"]
    assert (found["run_number"], found["max_num_seqs"], found["request_rate"]) == (0, 2, 4)
    del alone["date"]    # the same run has the same bytes whenever it is made
    assert {name: found[name] for name in alone} == alone


def test_all_points_see_the_same_arrivals() -> None:
    found = sweep(TRACE, vary={"policy": ["vllm", "static", "orca"]}, request_rate=5.0, seed=3)
    assert len({each["trace_digest"] for each in found.records}) == 1
    assert len({each["offered_request_rate"] for each in found.records}) == 1


def test_a_mapping_is_one_cell_spelled_as_its_flag() -> None:
    assert record({"completed": 3}, {"goodput": {"ttft": 5, "tpot": inf}}) == {
        "completed": 3, "run_number": 0, "goodput": "ttft:5,tpot:inf"}


def test_what_fails_is_apart() -> None:
    found = sweep(TRACE, vary={"tensor_parallel_size": [1, 3]})
    assert [each["tensor_parallel_size"] for each in found.records] == [1]
    [(key, failure)] = found.failures.items()
    assert key == "tensor_parallel_size=3"
    assert isinstance(failure, Failure)
    assert failure.scenario.tensor_parallel_size == 3


def test_varied_finds_what_differs_in_our_records_and_in_those_of_vllm() -> None:
    ours = [record({"request_rate": 1, "duration": 4 - cap}, {"max_num_seqs": cap, "dtype": "fp8"}) for cap in (1, 2)]
    assert varied(ours) == ["max_num_seqs"]
    theirs = [{"request_rate": rate, "duration": rate, "run_number": 0, "block_size": 7 * rate} for rate in (1, 2)]
    assert varied(theirs) == ["block_size", "request_rate"]
    assert varied([]) == []


def test_efficiency_is_for_each_user_and_each_gpu() -> None:
    assert efficiency({"output_throughput": 800, "median_tpot_ms": 20, "tensor_parallel_size": 2, "replicas": 2}) == (
        50, 200)
    assert efficiency({"output_throughput": 800, "mean_tpot_ms": 10}) == (100, 800)
    assert efficiency({"output_throughput": None, "median_tpot_ms": None}) is None


def at(user: float, gpu: float) -> dict[str, float]:
    return {"median_tpot_ms": 1000 / user, "output_throughput": gpu}


def test_the_pareto_set_is_what_nobody_beats() -> None:
    points = [at(10, 100), at(20, 50), at(10, 50), at(20, 50), at(5, 100), {"output_throughput": None}]
    assert pareto(points) == [True, True, False, True, False, False]


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 2)), max_size=30))
def test_the_pareto_set_is_its_definition(drawn: list[tuple[int, int, int]]) -> None:
    """Against every pair, load by load; ties and doubles are in it together."""
    records = [record(at(user, gpu), {"rate_scale": load}) for user, gpu, load in drawn]
    points = [(efficiency(each), load) for each, (_, _, load) in zip(records, drawn, strict=True)]
    assert pareto(records) == [not any(load == theirs and other != point and other[0] >= point[0]
                                       and other[1] >= point[1] for other, theirs in points)
                               for point, load in points]


def test_the_pareto_set_of_ten_thousand_points_takes_no_look_at_every_pair() -> None:
    """All of them in the set: by pairs, 100 million comparisons, half a minute."""
    assert all(pareto([at(1 + place, 10_001 - place) for place in range(10_000)]))


def test_who_turns_requests_away_is_in_no_pareto_set() -> None:
    whole, part = at(10, 100) | {"completed": 4}, at(90, 900) | {"completed": 3, "rejected": 1}
    assert pareto([whole, part]) == [True, False]
    assert pareto([part, part]) == [True, True]    # what all of them refuse tells none of them apart
    rates = [record(each, {"rate_scale": rate, "max_num_seqs": 1}) for each, rate in ((whole, 1), (part, 2), (part, 2))]
    assert pareto(rates) == [True, True, True]


def test_a_point_that_serves_a_part_is_marked_and_not_crowned() -> None:
    found = sweep(Trace("made", np.array([0, 0, 5 * 10**9]), np.array([4, 50, 60]), np.array([2, 20, 20])),
                  vary={"kv_capacity_tokens": [48, 1000]}, max_tokens="exact", cost_model=Constant(5_000_000))
    assert [each["completed"] for each in found.records] == [1, 3]
    account = found.account()
    crowned = [line for line in account.answer if " with " in line]
    assert len(crowned) == 3
    among = "kv_capacity_tokens=1000, among those that serve the largest share of their requests."
    assert all(among in line for line in crowned)
    assert account.warnings == ("2 of 3 requests were rejected with kv_capacity_tokens=48", UNMEASURED)
    rows = table(found)
    assert (rows.rows[0][-1], rows.rows[1][-1]) == ("", "*")
    assert rows.rows[0][rows.header.index("not served")] == "2 (66.7%)"
    assert "Who leaves a larger share of the requests unserved" in rows.note


def test_an_answer_spells_numbers_as_its_table_does() -> None:
    found = sweep(vary={"max_num_seqs": [1]}, num_prompts=200, rate_scale=8)
    cell = found.account().tables[0].rows[0][found.account().tables[0].header.index("TTFT p99, ms")]
    assert len(cell) > 5
    assert f"Shortest TTFT, p99: {cell} ms with" in str(found)


def test_points_of_different_load_are_no_alternatives() -> None:
    records = [record(at(*speed), {"max_num_seqs": cap, "rate_scale": rate}) for rate, cap, speed in (
        (2, 8, (10, 100)), (2, 16, (9, 90)), (4, 8, (5, 50)), (4, 16, (4, 60)))]
    assert pareto(records) == [True, False, True, True]
    assert loads(records) == ["rate_scale=2"] * 2 + ["rate_scale=4"] * 2
    frame = pareto_frame(records)
    assert frame["name"].tolist() == ["max_num_seqs=8", "max_num_seqs=16"] * 2
    assert pareto_title(frame) == "4 points, 3 in the Pareto sets of their loads"
    assert pareto_title(pareto_frame(records[1:3])) == (
        "2 points, each of another load, so that none is an alternative to another")


def test_points_that_come_to_the_same_are_counted_once() -> None:
    records = [record(at(10, 100), {"max_num_seqs": cap}) for cap in (1, 2, 3)]
    assert pareto_title(pareto_frame(records)) == (
        "3 points, 3 in the Pareto set, which come to 1 result")
    assert pareto_title(pareto_frame(records[:1])) == "1 point, 1 in the Pareto set"


@pytest.mark.parametrize(("name", "told"), [
    ("request_goodput", "goodput, requests/s"), ("p99_tpot_ms", "p99 TPOT, ms"), ("preemptions", "preemptions"),
    ("output_throughput", "output tokens/s"), ("std_ttft_ms", "standard deviation of TTFT, ms"), ("what", "what"),
    ("p99.9_queue_time_ms", "p99.9 queue time, ms"), ("duration", "duration, s"), ("p99_what_ms", "p99_what_ms"),
    ("tenant.my.app.p99_ttft_ms", "p99 TTFT, ms, of my.app")])
def test_figures_are_told_in_the_words_of_the_glossary(name: str, told: str) -> None:
    assert words(name) == told


def test_a_search_is_shown_as_points_and_a_grid_as_cells() -> None:
    search = [record({"output_throughput": at}, {"max_num_seqs": at, "block_size": 32 - at}) for at in range(1, 5)]
    frame, title, less = scattered_frame(search) or pytest.fail("no points")
    assert (list(frame.columns), title, less) == (["max_num_seqs", "block_size", "output_throughput"],
                                                  "output tokens/s", False)
    assert frame.to_numpy().tolist() == [[at, 32 - at, at] for at in range(1, 5)]
    assert scattered_frame(GRID) is None
    assert scattered_frame([each | {"block_size": str(each["block_size"])} for each in search]) is None


def test_values_without_a_bound_come_after_the_numbers() -> None:
    frame, _ = heatmap_frame([record({"output_throughput": 1}, {"request_rate": rate}) for rate in ("inf", 8, 2)])
    assert list(frame.columns) == ["2", "8", "inf"]


def test_what_a_point_leaves_as_it_is_has_a_place_beside_the_others() -> None:
    found = sweep(TRACE, points=[{"max_num_seqs": 2}, {}, {"policy": "static"}])
    assert [each.get("max_num_seqs") for each in found.records] == [2, 1024, None]
    assert [row[0] for row in table(found).rows] == ["2", "1024 (as given)", "-"]


SHARED = Trace("shared", np.zeros(12, np.int64), np.full(12, 40), np.full(12, 100),
               tenant=["chat", "code", "code", "code"] * 3)


def test_a_knob_that_is_a_list_stays_whole_where_a_point_leaves_it_as_it_is() -> None:
    found = sweep(trace_of([(0, 10, 2)] * 4), "dynamic", cost_model=Constant(1),
                  points=[{"preferred_batch_size": [4, 8]}, {"goodput": {"ttft": 500}}])
    assert [each["preferred_batch_size"] for each in found.records] == [(4, 8), (32,)]
    assert json.loads(json.dumps(found.records))[1]["preferred_batch_size"] == [32]
    args = {"policy_args": "words=('a', 'b'),line=a,b,bound=inf,last=(1, 2)"}
    assert [knob_of(args, knob) for knob in ("words", "line", "bound", "last", "none")] == [
        "('a', 'b')", "a,b", "inf", (1, 2), None]


def test_tenants_and_whom_a_point_does_not_serve() -> None:
    found = sweep(SHARED, vary={"overflow": ["fcfs", "shed"]}, queue_limit=4, goodput={"ttft": 10_000})
    waited, shed = found.records
    assert [waited[f"tenant.{name}.completed"] for name in ("chat", "code")] == [3, 9]
    assert [shed[f"tenant.{name}.completed"] for name in ("chat", "code")] == [1, 3]
    told = table(found)
    row = dict(zip(told.header, told.rows[1], strict=True))
    assert (row["not served"], row["Jain index"]) == ("8 (66.7%)", "1")
    assert told.rows[0][told.header.index("not served")] == "-"
    by_tenant = tenants(found)
    assert by_tenant is not None
    assert [row[:4] + row[5:6] for row in by_tenant.rows] == [
        ("fcfs", "chat", "3", "3", "100.0%"), ("fcfs", "code", "9", "9", "100.0%"),
        ("shed", "chat", "3", "1", "33.3%"), ("shed", "code", "9", "3", "33.3%")]
    hasty = sweep(SHARED, vary={"overflow": ["fcfs", "shed"]}, queue_limit=4, goodput={"ttft": 11}).account().answer
    assert "overflow=shed, which leaves 8 of 12 requests unserved" in hasty[0]    # goodput counts them as badly served
    assert all("overflow=fcfs" in line for line in hasty[1:4])
    assert tenants(sweep(TRACE, vary={"seed": [0, 1]})) is None


@pytest.mark.parametrize(("options", "told"), [
    ({"model": "lama"}, "unknown model 'lama'"), ({"tensor_parallel_size": 3}, "does not deal the 32 heads"),
    ({"model": "llama-3.1-70b"}, "llama-3.1-70b")])
def test_what_is_wrong_with_every_point_is_refused_once(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        sweep(TRACE, vary={"max_num_seqs": [1, 2]}, **options)
    assert "\n" not in str(caught.value)


def test_csv_has_a_row_a_record_and_an_empty_cell_for_what_is_missing() -> None:
    assert to_csv([{"a": 1, "b": None}, {"a": "x,y", "c": 2.5}]) == 'a,b,c\n1,,\n"x,y",,2.5\n'


GRID = [record({"output_throughput": 10 * x + y, "median_tpot_ms": x, "p99_ttft_ms": 10 * x + y, "policy": policy},
               {"max_num_seqs": x, "request_rate": y, "policy": policy})
        for x in (10, 2) for y in (3, 1) for policy in ("vllm", "orca") if (x, y) != (2, 1)]


def test_a_heat_map_has_the_numbers_of_the_records() -> None:
    frame, title = heatmap_frame(GRID)
    assert title == "output tokens/s (the highest over policy)"
    assert (frame.columns.name, list(frame.columns)) == ("max_num_seqs", ["2", "10"])
    assert (frame.index.name, list(frame.index)) == ("request_rate", ["1", "3"])
    assert np.array_equal(frame.to_numpy(), [[np.nan, 101], [23, 103]], equal_nan=True)


def test_a_heat_map_takes_other_axes_and_the_least_of_what_is_worse_as_it_grows() -> None:
    frame, title = heatmap_frame(GRID, x="policy", metric="p99_ttft_ms")
    assert title == "p99 TTFT, ms (the lowest over request_rate)"
    assert (list(frame.columns), list(frame.index)) == (["vllm", "orca"], ["2", "10"])
    assert frame.to_numpy().tolist() == [[23, 23], [101, 101]]
    assert list(heatmap_frame(GRID, y="policy")[0].columns) == ["2", "10"]


def test_one_name_alone_is_one_row() -> None:
    frame, _ = heatmap_frame([record({"output_throughput": x}, {"max_num_seqs": x}) for x in (1, 2)])
    assert (frame.shape, frame.index.name) == ((1, 2), "")


@pytest.mark.parametrize(("records", "asked", "told"), [
    ([record({"output_throughput": 1}, {"seed": 1})], {}, "nothing was varied here: there is no heat map to draw"),
    (GRID, {"x": "block_size"}, "unknown varied name 'block_size' (known: max_num_seqs, request_rate, policy)"),
    (GRID, {"metric": "ttft_p99"}, "unknown metric 'ttft_p99': did you mean 'p99_ttft_ms'?"),
    (GRID, {"metric": "p99_tftt_ms"}, "unknown metric 'p99_tftt_ms': did you mean 'p99_ttft_ms'?"),
    ([record({}, {"gpu": gpu}) for gpu in "ab"], {}, "no point has an output throughput: nothing was served")])
def test_a_heat_map_that_cannot_be_drawn(records: list[dict[str, Any]], asked: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        heatmap_frame(records, **asked)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(("name", "less"), [("p99_ttft_ms", True), ("mean_queue_time_ms", True), ("preemptions", True),
                                            ("request_goodput", False), ("output_throughput", False)])
def test_which_way_is_better(name: str, less: bool) -> None:
    assert less_is_better(name) == less


def test_the_pareto_frame_names_each_point() -> None:
    frame = pareto_frame(GRID)
    assert frame.loc[0].to_dict() == {"tokens_per_user": 100, "tokens_per_gpu": 103, "pareto": True,
                                      "name": "max_num_seqs=10, policy=vllm", "load": "request_rate=3"}


def test_the_table_has_a_row_a_point() -> None:
    found = sweep(TRACE, vary={"max_num_seqs": [1, 4], "policy": ["vllm", "static"]})
    told = table(found)
    assert told.header[:3] == ("max_num_seqs", "policy", "tok/s")
    assert [row[:2] for row in told.rows] == [("1", "vllm"), ("-", "static"), ("4", "vllm")]
    assert found.table()["pareto"].sum() == sum(row[-1] == "*" for row in told.rows)


def test_tuning_finds_the_best_of_a_small_space_and_always_the_same() -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'batchsim[tune]'")
    space = {"max_num_seqs": (1, 16), "enable_chunked_prefill": [True, False]}
    told: list[tuple[int, int]] = []
    found, again = (tune(space, trials=12, trace=TRACE, load="saturated", settings={"max_num_seqs": 1},
                         told=lambda done, of: told.append((done, of))) for _ in range(2))
    assert json.dumps(found.records) == json.dumps(again.records)
    assert found.best == again.best
    throughput = {key: outcome.value["output_throughput"] for key, outcome in found.outcomes.items()}    # type: ignore[union-attr]
    assert found.best is not None
    assert throughput[found.best] == max(throughput.values())
    assert throughput[found.best] > throughput["as given"]
    assert next(iter(found.outcomes)) == "as given"
    assert told[0] == (1, 13)
    assert {record["seed"] for record in found.records} == {0}


def test_the_best_point_is_run_again_on_traffic_that_did_not_choose_it() -> None:
    """Where chance draws nothing, there is no other traffic, and a sentence must do."""
    pytest.importorskip("optuna", reason="needs optuna: pip install 'batchsim[tune]'")
    found = tune({"max_num_seqs": (1, 40)}, trials=6, num_prompts=60, rate_scale=20, settings={"max_num_seqs": 2},
                 seed=4)
    best = found.variants[found.best].values    # type: ignore[index]
    fresh = [[sweep(num_prompts=60, rate_scale=20, settings={"max_num_seqs": 2}, points=[point],
                    seed=seed).records[0]["output_throughput"] for seed in range(5, 10)] for point in ({}, best)]
    assert found.again is not None
    assert found.again.baseline.mean == pytest.approx(np.mean(fresh[0]))
    assert found.again.other.mean == pytest.approx(np.mean(fresh[1]))
    told = found.account().answer[1]
    assert "it was run again with seeds 5 to 9" in told
    assert f"{found.again.difference.low:+,.4g} to" in told
    recorded = tune({"max_num_seqs": (1, 16)}, trials=4, trace=TRACE, load="saturated", settings={"max_num_seqs": 1})
    assert recorded.again is None
    assert (found.account().warnings[-1], recorded.account().warnings[-1]) == (OTHERS, UNMEASURED)
    assert recorded.account().answer[1].startswith("Mind that the best of ")


def test_tuning_goes_the_way_of_what_is_better() -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'batchsim[tune]'")
    found = tune({"max_num_seqs": [1, 12]}, trials=4, objective="p99_e2el_ms", trace=TRACE, load="saturated")
    assert found.best == "as given"
    assert len(found.outcomes) == 3
    value = found.outcomes[found.best].value["p99_e2el_ms"]    # type: ignore[union-attr]
    assert found.praise(found.best) == (
        f"Best p99 E2EL, ms: {value:,.4g} for the scenario as given, and 1 more that shows as much.")


@pytest.mark.parametrize(("options", "told"), [
    ({"objective": "request_goodput"}, "request_goodput needs an objective: give --goodput ttft:500,tpot:50"),
    ({"objective": "slots"}, "unknown objective 'slots'"),
    ({"objective": "output_throughputs"}, "unknown objective 'output_throughputs': did you mean 'output_throughput'?")])
def test_what_tuning_refuses(options: dict[str, Any], told: str) -> None:
    pytest.importorskip("optuna", reason="needs optuna: pip install 'batchsim[tune]'")
    with pytest.raises(InputError) as caught:
        tune({"max_num_seqs": [1, 2]}, trace=TRACE, **options)
    assert str(caught.value).startswith(told)


def test_the_best_seed_is_not_looked_for() -> None:
    with pytest.raises(InputError, match="the best seed is luck: leave seed out"):
        tune({"seed": (0, 50)}, trace=TRACE)


def test_tuning_without_optuna_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError) as caught:
        tune({"max_num_seqs": [1, 2]}, trace=TRACE)
    assert str(caught.value) == "tuning needs optuna, which is not installed: pip install 'batchsim[tune]'"


def test_points_of_cost_models_that_differ_in_kind_are_told_where_nobody_asked_for_them() -> None:
    """On one GPU there is a calibrated profile, on two none."""
    told = ("The points are compared across cost models of different kinds: llama-3.1-8b-h100-80-bf16 with a stated "
            "error, roofline without. What sets them apart may be the models; --cost-model roofline ranks all by the "
            "same one.")
    sizes = {"tensor_parallel_size": [1, 2]}
    assert told in sweep(TRACE, vary=sizes).account().warnings
    assert told not in sweep(TRACE, vary=sizes, cost_model="roofline").account().warnings
    assert told not in sweep(TRACE, vary={"cost_model": ["auto", "roofline"]}).account().warnings


def test_the_scenario_as_given_is_named_among_the_points_and_in_no_grid() -> None:
    """A search may start from beyond what it searches, and another point may come to the same."""
    found = sweep(TRACE, points=[{}, {"max_num_seqs": 3}], settings={"max_num_seqs": 8})
    assert [row[0] for row in table(found).rows] == ["8 (as given)", "3"]
    assert [row[0] for row in table(sweep(TRACE, vary={"max_num_seqs": [8, 3]})).rows] == ["8", "3"]
    assert table(sweep(TRACE)).header[0] == "tok/s"


def test_the_best_is_told_of_each_load_where_points_share_one() -> None:
    asked: dict[str, Any] = {"cost_model": Constant(5_000_000), "policy": "vllm"}
    both = sweep(TRACE, vary={"max_num_seqs": [1, 12], "rate_scale": [1, 2]}, **asked).account().answer[0]
    best, other = both.removeprefix("Most output tokens/s of each load: ").split("; ")
    assert best.endswith(" with max_num_seqs=12, rate_scale=1")
    assert other.endswith(" with max_num_seqs=12, rate_scale=2.")
    each = sweep(TRACE, vary={"rate_scale": [1, 2]}, **asked).account().answer[0]
    assert each.startswith("Most output tokens/s: ")
    assert each.endswith(" with rate_scale=2.")
    many = sweep(TRACE, vary={"max_num_seqs": [1, 12], "rate_scale": [1, 2, 3, 4, 5]}, **asked).account().answer[0]
    assert many.endswith("rate_scale=3; 2 more loads in the table.")


def test_what_was_done_to_some_traces_is_told_of_these() -> None:
    some = sweep(TRACE, vary={"prompt_scale": [1, 2], "max_num_seqs": [1, 2]})
    assert "prompts x 2, outputs x 1: with prompt_scale=2, max_num_seqs=1 and 1 more point" in remarks(some)
    assert "prompts x 2, outputs x 1" in remarks(sweep(TRACE, vary={"max_num_seqs": [1, 2]}, prompt_scale=2))


def test_many_points_that_reject_are_counted() -> None:
    found = sweep(trace_of([(0, 90, 10), (0, 30, 5)]), vary={"max_model_len": list(range(60, 60 + MOST_NAMED + 2))},
                  cost_model="constant:1")
    told = [line for line in remarks(found) if "rejected" in line]
    assert told[0].startswith("1 of 2 requests was rejected with max_model_len=60")
    assert told[MOST_NAMED:] == ["2 more points with rejected requests"]


def test_a_record_of_a_file_is_reckoned_with_only_if_it_holds_numbers() -> None:
    each = {"completed": 3, "output_throughput": None}
    assert checked(each, "it") is each
    for value in ("many", [1], 1e301):
        with pytest.raises(InputError, match=r"^it: completed must be a number or null, not "):
            checked({"completed": value}, "it")


def test_a_policy_is_named_and_its_knobs_stand_beside_it() -> None:
    with pytest.raises(InputError, match=r"^a sweep takes the policy by its name, and its knobs beside it, not Vllm\("):
        sweep(trace_of([(0, 5, 5)]), Vllm(), vary={"seed": [1, 2]})


def test_a_file_that_cannot_be_looked_for_fails_its_own_point() -> None:
    found = sweep(trace_of([(0, 5, 5)]), vary={"cost_model": ["a" * 300 + ".yaml", "constant:1"]})
    [failure] = found.failures.values()
    assert "File name too long" in failure.reason
    assert len(found.records) == 1
