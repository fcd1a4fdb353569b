"""Attribution: factors multiply exactly, shares add up, and nothing beats the slot bound."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from math import ceil, exp, inf, isclose, log, prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_same_bytes import COSTS, DECLARED, MODEL_LEN, requests, spread, traces
from worlds import STEP, Affine, trace_of

import simulator as sim
from cost_models import Constant
from simulator.errors import InputError
from simulator.policies import Hybrid, Policy, StaticBatching, Vllm
from simulator.scenario import scenario_of
from simulator.setup import prepare
from simulator.studies import points
from simulator.studies.attribution import Attribution, attribute
from simulator.studies.bound import expected_longest, harmonic, slot_bound
from simulator.studies.climb import Climb
from simulator.studies.points import Point
from simulator.studies.rungs import Rung
from simulator.studies.shapley import prefixes, shapley_value, subsets
from simulator.studies.switches import as_hybrid, between, flags_of, switches_between
from simulator.studies.why import story
from simulator.studies.why_records import frame, records
from simulator.studies.why_tables import flag_table, ladder_table, row_flags, tables

OPTIONS: dict[str, Any] = {"kv_capacity_tokens": 480, "max_model_len": MODEL_LEN, "max_tokens": DECLARED,
                           "cost_model": Affine()}
SMALL = {"static.max_batch_size": 3, "vllm.block_size": 4}


def multiplied(rungs: tuple[Rung, ...], name: str) -> Fraction:
    return prod((getattr(rung, name) for rung in rungs[1:]), start=Fraction(1))


@given(trace=traces(), cost=st.sampled_from(COSTS), tokens=st.sampled_from([160, 240, 20_000]),
       static=st.fixed_dictionaries({"static.max_batch_size": st.sampled_from([1, 2, 5]),
                                     "static.padded": st.booleans(), "static.max_wait": st.sampled_from([0, inf]),
                                     "static.run_to": st.sampled_from([None, 40]),
                                     "static.reserve": st.sampled_from(["model", "declared", "exact"])}),
       metric=st.sampled_from(["throughput", "cost"]))
@settings(max_examples=100)
def test_factors_multiply_exactly_to_the_whole(trace, cost, tokens, static, metric) -> None:
    found = attribute(trace, settings=SMALL | static, metric=metric, cost_model=cost, kv_capacity_tokens=tokens,
                      max_model_len=MODEL_LEN, max_tokens=DECLARED)
    for rungs in found.ladders.values():
        assert multiplied(rungs, "factor") == found.total
        assert multiplied(rungs, "factor_in_steps") == found.total_in_steps
        assert (rungs[0].point, rungs[-1].point) == (found.ladder[0].point, found.ladder[-1].point)
    assert multiplied(found.corrections, "factor") * found.total == found.raw
    assert len(found.corrections) == (2 if static["static.run_to"] else 1)
    assert not {"run_to", "sleep_per_batch"} & {rung.key for rungs in found.ladders.values() for rung in rungs}


@given(trace=traces(), cost=st.sampled_from(COSTS), tokens=st.sampled_from([96, 160, 240, 20_000]),
       slots=st.sampled_from([1, 2, 3, 8]), reserve=st.sampled_from(["model", "declared", "exact"]),
       load=st.sampled_from(["saturated", "trace"]), padded=st.booleans())
@settings(max_examples=200)
def test_freed_slots_never_beat_the_bound_in_steps(trace, cost, tokens, slots, reserve, load, padded) -> None:
    knobs = {"static.max_batch_size": slots, "static.reserve": reserve, "static.padded": padded}
    found = attribute(trace, settings=knobs, cost_model=cost, kv_capacity_tokens=tokens, max_model_len=MODEL_LEN,
                      max_tokens=DECLARED, load=load)
    if found.bound is None:
        assert found.ladder[0].point.completed == 0
        return
    foot = found.ladder[0].point
    assert foot.longest == foot.steps, "a batch takes as many steps as its longest answer"
    worth = [rung.factor_in_steps for rungs in found.ladders.values() for rung in rungs
             if rung.key == "granularity" and not rung.before.preemptions and rung.point.slots == slots]
    for factor in [*worth, found.slots_in_steps]:
        assert factor is None or factor <= found.bound.batches


def test_the_bound_is_reached_where_slots_are_never_empty() -> None:
    """Two slots, and answers of 1 and 9 in turn: 45 steps for the 50 that 5 batches of them need in slots of one."""
    trace = trace_of([(0, 1, 1 + 8 * (at % 2)) for at in range(10)])
    found = attribute(trace, settings={"static.max_batch_size": 2}, cost_model=Constant(STEP))
    assert found.bound is not None
    assert found.ladder[0].point.steps == 5 * 9
    assert found.bound.batches == Fraction(2 * 45, 50)
    assert found.bound.order == Fraction(7, 5), "of two draws one is a 9 in three of four cases"
    assert found.slots_in_steps == Fraction(45, found_steps(found))
    assert found.bound.harmonic == Fraction(3, 2)


def found_steps(found: Attribution) -> int:
    """Steps of vLLM with as many slots, from a run of its own."""
    policy = Hybrid(reserve="declared", max_batch_size=found.ladder[0].point.slots)
    return sim.run(found.scenario.but(policy=policy)).summary()["steps"]


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5), draws=st.integers(1, 4))
def test_the_expected_longest_is_that_of_all_draws(lengths: list[int], draws: int) -> None:
    all_draws = [max(drawn) for drawn in product(lengths, repeat=draws)]
    assert expected_longest(lengths, draws) == Fraction(sum(all_draws), len(all_draws))


@pytest.mark.parametrize("slots", [1, 2, 8, 32, 64])
@pytest.mark.parametrize("mean", [5, 128])
def test_exponential_lengths_come_to_the_harmonic_number_and_stay_below(slots: int, mean: int) -> None:
    """Quantiles of an exponential distribution, rounded up: the published 2.7 at 8, 4.1 at 32, 4.7 at 64."""
    lengths = [ceil(-mean * log(1 - (at + 0.5) / 20_000)) for at in range(20_000)]
    bound = slot_bound(lengths, slots, sum(lengths))
    assert bound is not None
    assert bound.order <= bound.harmonic
    assert float(bound.order) == pytest.approx(float(bound.harmonic), rel=0.12 if mean == 5 else 0.02)
    assert float(harmonic(slots)) == pytest.approx({1: 1, 2: 1.5, 8: 2.718, 32: 4.058, 64: 4.744}[slots], abs=1e-3)


def test_equal_lengths_have_no_bound_above_one() -> None:
    bound = slot_bound([7] * 8, 4, 14)
    assert bound is not None
    assert (bound.batches, bound.order) == (1, 1)
    assert slot_bound([], 4, 0) is None


def test_shapley_values_are_the_mean_over_all_orders() -> None:
    players = "abc"
    worth = {players_in: float(len(players_in) ** 2 + ("a" in players_in) * 3 * ("b" in players_in))
             for players_in in subsets(players)}
    for player in players:
        added = []
        for order in permutations(players):
            before = frozenset(order[:order.index(player)])
            added.append(worth[before | {player}] - worth[before])
        assert isclose(shapley_value(player, players, worth), sum(added) / len(added))
    assert isclose(sum(shapley_value(player, players, worth) for player in players), worth[frozenset("abc")])


def test_who_never_adds_anything_has_no_share() -> None:
    worth = {players: float("a" in players) for players in subsets("ab")}
    assert (shapley_value("a", "ab", worth), shapley_value("b", "ab", worth)) == (1, 0)
    assert prefixes("ab") == [frozenset(), frozenset("a"), frozenset("ab")]


@pytest.fixture(scope="module")
def found() -> Attribution:
    return attribute(spread([0], 60), settings=SMALL | {"static.run_to": 40}, shapley=True, **OPTIONS)


def test_shares_add_up_to_the_logarithm_of_the_whole(found: Attribution) -> None:
    assert found.shares is not None
    assert isclose(exp(sum(seconds for seconds, _ in found.shares.values())), float(found.total or 0))
    assert isclose(exp(sum(steps for _, steps in found.shares.values())), float(found.total_in_steps or 0))
    assert list(found.shares) == [switch.key for switch in found.switches]


def test_the_ends_are_the_policies_themselves(found: Attribution) -> None:
    start = StaticBatching(max_batch_size=3, padded=True)
    runs = [Point.of(sim.run(found.scenario.but(policy=policy))) for policy in
            (StaticBatching(max_batch_size=3, padded=True, run_to=40), start, Vllm(block_size=4))]
    assert [found.corrections[0].point, found.ladder[0].point, found.ladder[-1].point] == runs
    assert found.raw == Fraction(runs[0].duration, runs[2].duration)


def test_a_batch_cannot_mix_its_prompts_and_a_reservation_cannot_be_shared() -> None:
    start, end = as_hybrid(StaticBatching(padded=True)), as_hybrid(Vllm())
    every = {switch.key: switch for switch in switches_between(start, end)}
    assert list(every) == ["granularity", "cap", "memory", "padding", "prefill", "prefix"]
    assert between(start, [every["prefill"]]) == between(start, [])
    assert between(start, [every["prefix"]]) == between(start, [])
    assert between(start, every.values()) == end
    assert between(start, [every["memory"], every["prefix"]]) != between(start, [every["memory"]])


@pytest.mark.parametrize(("knobs", "keys"), [
    ({}, ["granularity", "cap", "memory", "prefill", "prefix"]),
    ({"padded": True, "max_wait": inf}, ["granularity", "cap", "memory", "padding", "forming", "prefill", "prefix"]),
    ({"reserve": "model"}, ["granularity", "cap", "reservation", "memory", "prefill", "prefix"]),
])
def test_only_what_differs_counts(knobs: dict[str, Any], keys: list[str]) -> None:
    found = attribute(spread([0], 12), StaticBatching(**knobs), Vllm(), **OPTIONS)
    assert [switch.key for switch in found.switches] == keys
    assert list(found.ladders) == ["in the natural order", "with padding first" if "padding" in keys else "from behind"]


def test_blocks_make_reservations_pointless() -> None:
    start = as_hybrid(StaticBatching(reserve="model"))
    every = {switch.key: switch for switch in switches_between(start, Hybrid())}
    assert between(start, [every["reservation"]]).reserve == "declared"
    assert between(start, [every["reservation"], every["memory"]]) == between(start, [every["memory"]])


ROOMY = {**OPTIONS, "kv_capacity_tokens": 20_000}


def test_the_cap_is_one_thing_and_the_memory_another() -> None:
    """Where memory has room for everybody, a cap is all that blocks bring; with the same cap they bring nothing."""
    rows = spread([0], 60)
    found = attribute(rows, StaticBatching(max_batch_size=3), Vllm(block_size=1, max_num_seqs=9), **ROOMY)
    worth = {rung.key: rung for rung in found.ladder}
    assert [worth[key].point.sequences for key in ("granularity", "cap", "memory")] == [3, 9, 9]
    assert worth["memory"].factor == 1
    behind = {rung.key: rung.point.sequences for rung in found.ladders["from behind"]}
    assert (behind["memory"], behind["cap"]) == (3, 9), "paged memory alone runs the baseline's batch"
    same = attribute(rows, StaticBatching(max_batch_size=9), Vllm(block_size=1, max_num_seqs=9), **ROOMY)
    assert "cap" not in [switch.key for switch in same.switches]


def test_reservations_bound_a_larger_cap() -> None:
    found = attribute(spread([0], 60), StaticBatching(max_batch_size=2, reserve="model"), Vllm(), **OPTIONS)
    worth = {rung.key: rung.point.sequences for rung in found.ladder}
    assert worth["cap"] == OPTIONS["kv_capacity_tokens"] // MODEL_LEN
    assert worth["reservation"] > worth["cap"] > worth["granularity"] == 2


@pytest.mark.parametrize("ends", [
    (StaticBatching(), Vllm()), (Vllm(), StaticBatching()), (StaticBatching(reserve="model"), Vllm(max_num_seqs=7)),
    (StaticBatching(), Hybrid(granularity="batch", reserve="exact", prefill="alone", enable_prefix_caching=False)),
])
def test_a_cap_that_nobody_gave_is_the_one_that_comes_out(ends: tuple[Policy, Policy]) -> None:
    """With the cap alone on the other side, the slots are the other's; with all but the cap, they are the start's."""
    climb = Climb(scenario_of(trace=spread([0], 20), load="saturated", **OPTIONS), *ends)
    slots = [prepare(climb.scenario(frozenset()).but(policy=policy)).policy.slots for policy in ends]
    for corner in subsets(climb.keys):
        assert prepare(climb.scenario(corner)).policy.slots == slots["cap" in corner], climb.flags(corner)


def test_a_ladder_leads_down_as_well_as_up() -> None:
    up, down = (attribute(spread([0], 30), *ends, settings=SMALL, **OPTIONS)
                for ends in (("static", "vllm"), ("vllm", "static")))
    assert down.bound is None
    assert up.total is not None
    assert up.total > 1
    assert down.total == 1 / up.total


def test_host_time_is_a_switch_where_the_policies_differ_in_it() -> None:
    found = attribute(spread([0], 30), settings=SMALL, **OPTIONS, shapley=True, max_switches=7,
                      scheduler_overhead={"vllm": (1e-5, 1e-6)})
    assert found.switches[-1].key == "engine"
    assert found.ladder[-1].factor is not None
    assert found.ladder[-1].factor < 1
    assert found.ladder[-1].flags.endswith("--scheduler-overhead hybrid:1e-05,1e-06")
    assert "scheduler" not in found.ladder[-2].flags
    same = attribute(spread([0], 30), settings=SMALL, **OPTIONS, scheduler_overhead={"all": (1e-5, 0)})
    assert "engine" not in [switch.key for switch in same.switches]
    assert all("hybrid:1e-05,0" in rung.flags for rung in same.ladder)


def test_the_cost_of_a_token_is_throughput_upside_down_and_counts_gpus() -> None:
    found = attribute(spread([0], 30), settings=SMALL, metric="cost", **OPTIONS)
    same = attribute(spread([0], 30), settings=SMALL, **OPTIONS)
    assert found.total == same.total
    point = same.ladder[0].point
    assert point.value("cost") == Fraction(point.duration * 1_000_000, point.tokens * 10**9)
    assert Point(1, 1, 10, 10**9, 5, 4, 1, 1, 0, 1).value("cost") == 400_000
    assert Point(0, 0, 0, 0, 0, 4, 0, 1, 0, 0).value("cost") is None


def test_goodput_is_measured_at_the_traces_own_times() -> None:
    trace = requests([(900, 20, 10, 0, 0)] * 20)
    found = attribute(trace, settings=SMALL, metric="goodput", goodput={"e2el": 1e-3}, **OPTIONS)
    assert found.scenario.load == "trace"
    assert found.ladder[-1].point.good == sim.run(found.scenario.but(policy=Vllm(block_size=4))).summary()["completed"]


def test_a_ratio_without_a_value_is_told_as_none() -> None:
    trace = requests([(0, 20, 10, 0, 0)] * 20)
    found = attribute(trace, settings=SMALL, metric="goodput", goodput={"e2el": 1e-9}, **OPTIONS)
    assert found.total is None
    assert found.ladder[1].factor is None
    assert story(found) == ["good requests/s: static 0, vllm 0.", 
                            "That is no ratio: static and vllm serve nothing within the objectives."]
    assert ladder_table(found).title == ("One switch after the other, in the natural order; no ratio, for static and "
                                         "vllm serve nothing within the objectives")
    assert records(found)["ratio"] is None
    assert len(frame(found)) == 0
    with pytest.raises(InputError, match="loosen the objectives"):
        attribute(trace, settings=SMALL, metric="goodput", goodput={"e2el": 1e-9}, shapley=True, **OPTIONS)


@pytest.mark.parametrize(("requests", "processes"), [(24_999, 1), (25_000, 4)])
def test_few_requests_start_no_processes(requests: int, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(points, "campaign", lambda *_, backend, **__: asked.append(backend.workers) or {})
    scenario = scenario_of().but(read=trace_of([(0, 1, 1)] * requests))
    points.measure({"one": scenario, "two": scenario}, workers=4)
    assert asked == [processes]


def test_any_number_of_workers_gives_the_same(found: Attribution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "FEW", 0)    # nothing is too small for processes of its own
    told: list[tuple[int, int]] = []
    again = attribute(spread([0], 60), settings=SMALL | {"static.run_to": 40}, shapley=True, workers=2,
                      told=lambda done, of: told.append((done, of)), **OPTIONS)
    assert records(again) == records(found)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert len(told) == told[-1][1] == 36 + 1, "of 64 corners 36 differ, and the start has an artefact"


def test_it_is_told_in_sentences_and_tables(found: Attribution) -> None:
    assert (found.told(), found.tables()) == (story(found), tables(found))
    assert found.frame().equals(frame(found))
    text = " ".join(story(found))
    for rung in found.ladder[1:]:
        assert f"{float(rung.factor or 0):.2f} ({rung.words}" in text
    assert "an artefact of the baseline" in text
    assert [table.title.partition(",")[2] for table in tables(found)[:2]] == [" in the natural order",
                                                                              " with padding first"]
    rows = ladder_table(found).rows
    assert [row[0] for row in rows[:3]] == ["[0] static", "[1] + no run to a fixed length",
                                            "[2] + slots refilled at every step"]
    assert (rows[1][3], rows[-1][3]) == ("1.00x", f"{float(found.total or 0):.2f}x")
    assert [row[1] for row in flag_table(found).rows] == [flags or "(none)" for flags in row_flags(found)]


def test_the_sentences_do_not_contradict_each_other() -> None:
    """A bound is of the order of arrival, and slots in seconds stand beside slots in steps."""
    rows = [(0, 1 + 37 * (at % 7 == 0), 2 + 20 * (at % 5 == 0)) for at in range(40)]
    found = attribute(trace_of(rows), settings={"static.max_batch_size": 4}, cost_model=Affine(10, 1, 3, 1))
    text, worth = " ".join(story(found)), {rung.key: rung for rung in found.ladder}
    own, ragged = worth["granularity"], found.ladders["with padding first"][2]
    assert f"{float(own.factor):.2f}x in tokens a second beside {float(own.factor_in_steps):.2f}x in steps" in text
    assert ragged.key == "granularity"
    assert own.factor > ragged.factor
    assert f"{float(ragged.factor):.2f}x with padding first" in text
    assert "in steps with up to 4 at once" in text
    assert worth["cap"].factor < 1
    assert "4 to 40 sequences at once; larger padded batches pad more" in text


def test_the_bound_is_of_the_batches_that_ran() -> None:
    """Memory for two lets no batch of eight run: the bound is that of two."""
    found = attribute(spread([0], 30), StaticBatching(max_batch_size=8, reserve="model"), Vllm(),
                      **{**OPTIONS, "kv_capacity_tokens": 2 * MODEL_LEN + 1})
    assert found.ladder[0].point.slots == 8
    assert found.bound is not None
    assert found.bound.slots == 2


def test_the_records_are_plain(found: Attribution) -> None:
    told = json.loads(json.dumps(records(found, "batchsim run")))
    assert told["ratio"] == pytest.approx(float(found.total or 0))
    assert prod(rung["factor"] for rung in told["ladders"][0]["rungs"]) == pytest.approx(told["ratio"])
    assert told["ladders"][0]["rungs"][0]["command"].startswith("batchsim run --set granularity=batch")


def test_the_bars_of_a_ladder_follow_one_another(found: Attribution) -> None:
    bars = frame(found)
    assert list(dict.fromkeys(bars["order"])) == ["in the natural order", "with padding first", "without an order"]
    for _, rows in bars.groupby("order"):
        assert rows["start"].iloc[1:].tolist() == pytest.approx(rows["end"].iloc[:-1].tolist())
        assert rows["end"].iloc[-1] == pytest.approx(float(found.total or 0))
        assert (rows["end"] / rows["start"]).tolist() == pytest.approx(rows["factor"].tolist())
    assert bars["start"].iloc[0] == pytest.approx(float((found.total or 0) / (found.raw or 1)))


def test_flags_leave_out_what_cannot_act() -> None:
    assert flags_of(Hybrid(granularity="batch", prefill="alone", max_num_seqs=4, reserve="declared")) == (
        "--set granularity=batch --set reserve=declared")
    assert flags_of(Hybrid()) == ""


@pytest.mark.parametrize(("arguments", "told"), [
    ({"start": "orca"}, "orca cannot be taken apart by switches: choose among static, vllm and hybrid"),
    ({"start": "vllm"}, "vllm differs from itself in nothing: give two policies, such as --from static --to vllm"),
    ({"start": "hybrid"}, "hybrid and vllm differ in no switch: change a knob of one of them"),
    ({"metric": "goodput"}, "goodput needs an objective: give --goodput ttft:500,tpot:50, for example"),
    ({"metric": "cots"}, "unknown metric 'cots': did you mean 'cost'? (known: throughput, goodput, cost)"),
    ({"shapley": True, "max_switches": 4}, "6 switches differ, and their Shapley shares take up to 64 runs: give "
                                           "--max-switches 6 if you have the time"),
    ({"workers": 0}, "workers must be a whole number of at least 1, not 0"),
])
def test_what_it_refuses(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        attribute(spread([0], 6), **arguments, **OPTIONS)
    assert str(caught.value) == told


TRIAL = {("azure-conv-2023", 8): (13.4, {"padding": 1.17, "prefill": 1.10}, 2.1),
         ("azure-conv-2023", 32): (7.5, {"padding": 1.87, "prefill": 1.10}, 2.6),
         ("azure-code-2023", 32): (6.4, {"prefill": 1.05}, 7.6)}
"""What an independent trial simulation of the published traces reached: all, some factors with padding first or last,
and freed slots in steps."""


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "slots"), TRIAL)
def test_stand_ins_give_about_what_a_trial_simulation_gave(trace: str, slots: int) -> None:
    whole, factors, in_steps = TRIAL[trace, slots]
    found = attribute(trace, settings={"static.max_batch_size": slots})
    assert float(found.total or 0) == pytest.approx(whole, rel=0.12)
    assert float(found.slots_in_steps or 0) == pytest.approx(in_steps, rel=0.05)
    first = {rung.key: float(rung.factor or 0) for rung in found.ladders["with padding first"][1:]}
    assert first["prefill"] == pytest.approx(factors["prefill"], rel=0.05)
    assert first["padding"] == pytest.approx(factors.get("padding", first["padding"]), rel=0.1)


def test_two_that_differ_in_one_switch_have_one_order() -> None:
    climb = Climb(scenario_of(trace=spread([0], 4), load="saturated", **OPTIONS), Hybrid(), Hybrid(prefill="alone"))
    assert climb.orders() == {"in the natural order": ("prefill",)}


def test_a_ragged_baseline_has_no_padding_to_save_and_a_bound_stands_alone_where_nothing_came_of_it() -> None:
    found = attribute(spread([0], 30), StaticBatching(max_batch_size=3), Vllm(block_size=4), **OPTIONS)
    [told] = [line for line in story(found) if line.startswith("Slots are worth")]
    assert told.endswith(" in steps, for steps differ in what they cost: fuller ones cost more.")
    bound = "Freed slots alone cannot be worth more than"
    [with_slots], [without] = ([line for line in story(each) if line.startswith(bound)]
                               for each in (found, replace(found, slots_in_steps=None)))
    assert with_slots.startswith(without + " Here they come to ")


def test_a_corner_that_cannot_be_run_ends_it_by_whose_fault_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_of(trace=spread([0], 4), **OPTIONS)
    with pytest.raises(InputError, match=r"^unknown policy 'vlm': did you mean 'vllm'"):
        points.measure({"a": scenario.but(policy="vlm")})

    def fail(_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(points, "run", fail)
    with pytest.raises(RuntimeError, match="ZeroDivisionError: ours"):
        points.measure({"a": scenario})
