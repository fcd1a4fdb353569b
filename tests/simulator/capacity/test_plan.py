"""Plans of queues whose answer can be worked out by hand.

A request of 4 output tokens takes 4 steps; with `constant` costs that is SERVICE, whatever else runs. Alone in its
replica it is answered SERVICE after it was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from worlds import Affine, trace_of

import simulator as sim
from cost_models import Constant
from simulator.errors import FileChanged, InputError
from simulator.policies import StaticBatching
from simulator.statistics import Interval, share_interval
from simulator.studies.capacity import Plan, around, crew, lab, solving, traffic
from simulator.studies.capacity.around import Relaxed
from simulator.studies.capacity.doubt import requests_needed
from simulator.studies.capacity.lab import notch_of, scale_of
from simulator.studies.capacity.reasons import binding
from simulator.studies.capacity.traffic import Probe

STEP = 10_000_000
SERVICE = 4 * STEP
MS = 40.0
EASY = {"attainment": 0.9, "confidence": 0.9}    # 29 requests can show it
ONE_AT_A_TIME: dict[str, Any] = {"policy": "static", "settings": {"max_batch_size": 1}, "cost_model": Constant(STEP),
                                 "goodput": {"e2el": MS}, **EASY}


@cache
def evenly(gap: int, count: int = 200) -> Any:
    return trace_of([(at * gap, 3, 4) for at in range(count)])


def lifted(found: Plan) -> dict[str, Relaxed]:
    assert found.around
    return {one.key: one for one in found.around.relaxed}


@pytest.mark.parametrize(("gap", "replicas"), [
    (2 * SERVICE, 1), (SERVICE, 1), (SERVICE - 1, 2), (SERVICE // 2, 2), (SERVICE // 2 - 1, 3), (SERVICE // 4, 4)])
def test_one_at_a_time_and_evenly_it_is_the_service_time_over_the_gap_rounded_up(gap: int, replicas: int) -> None:
    """D/D/1: with round-robin, each of N replicas sees a gap of N; nobody waits if that is no less than the service."""
    found = sim.plan(evenly(gap), **ONE_AT_A_TIME)
    assert (found.feasible, found.replicas) == (True, replicas)
    assert found.best.bound is not None
    assert found.best.bound.replicas <= replicas
    assert [probe.replicas for probe in found.around.neighbours] == [
        number for number in (replicas - 1, replicas, replicas + 1) if number]
    holds = [found.best.runs.verdict(probe.replicas).holds for probe in found.around.neighbours]
    assert holds == [False, True, True][-len(holds):]


def test_requests_that_come_nearly_at_once_get_a_replica_each_and_no_more() -> None:
    """Their rate asks for millions of replicas; there are but 100 requests, and any that waits misses."""
    found = sim.plan(evenly(1, 100), slo=["p90_e2el:40"], **ONE_AT_A_TIME)
    assert found.replicas is not None
    assert 90 < found.replicas <= 100
    assert max(probe.replicas for probe in found.best.runs.samples) <= 101


def test_who_must_try_again_has_waited_since_the_first_try() -> None:
    """One replica has no time for 40 of 100 requests: refused until one finds it free, which takes too long."""
    found = sim.plan(evenly(SERVICE * 6 // 10), queue_limit=1, max_retries=20, retry_backoff=0.01, **ONE_AT_A_TIME)
    assert found.replicas == 2
    sample = found.best.runs.sample(Probe(1))
    assert sample.causes["e2el"] == sample.requests - sample.met[0] > 0.3 * sample.requests
    assert sample.causes["lost"] == 0


def test_too_few_requests_are_told_where_warming_up_takes_some_of_enough() -> None:
    """40 requests would do, but half of them come before the fleet is as full as it is on the mean."""
    found = sim.plan(evenly(SERVICE // 20, 40), max_gpus=40, **ONE_AT_A_TIME)
    assert not found.feasible
    assert found.best.why_not.endswith("at a confidence of 0.9 that takes 29")
    assert "requests, those that come once the fleet is warm, cannot show" in found.best.why_not
    assert found.best.nearest[0].startswith("a longer trace would do")
    rate = sim.plan(evenly(1, 30), find="rate", replicas=30, **ONE_AT_A_TIME)    # all but together at any rate tried
    assert "cannot show" in rate.best.why_not


def test_no_more_replicas_are_tried_than_a_run_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lab, solving, around):
        monkeypatch.setattr(module, "MOST_REPLICAS", 3)
    four_at_once = trace_of([(at // 4 * 5 * SERVICE, 3, 4) for at in range(200)])
    found = sim.plan(four_at_once, **ONE_AT_A_TIME)
    assert not found.feasible
    assert found.best.why_not.startswith("3 replicas, the most that are possible in a run, are too few")
    assert sim.plan(evenly(-(-SERVICE // 3)), **ONE_AT_A_TIME).replicas == 3


def test_the_bound_is_the_answer_where_nobody_ever_waits_for_company() -> None:
    """200 requests of 4 steps at 10 ms in 199 gaps of 10 ms and 40 ms after them: 8.00 s of work in 2.03 s."""
    bound = sim.plan(evenly(STEP), **ONE_AT_A_TIME).best.bound
    assert bound is not None
    assert (bound.at_once, bound.limit, bound.steps, bound.prefill) == (1, "cap", 800, 0)
    assert (bound.decode, bound.available) == (pytest.approx(8.0), pytest.approx(2.03))
    assert bound.replicas == 4


def test_the_highest_rate_is_one_over_the_service_time_to_a_notch() -> None:
    found = sim.plan(evenly(2 * SERVICE), find="rate", **ONE_AT_A_TIME)
    assert found.rate is not None
    assert found.rate <= 25 < found.rate * 1.02
    assert [found.best.runs.verdict(1, probe.scale).holds for probe in found.around.neighbours] == [True, True, False]
    two = sim.plan(evenly(2 * SERVICE), find="rate", replicas=2, **ONE_AT_A_TIME)
    assert two.rate is not None
    assert two.rate <= 50 < two.rate * 1.02


def test_the_margin_is_what_is_left_of_the_gap() -> None:
    found = sim.plan(evenly(SERVICE * 6 // 10), **ONE_AT_A_TIME)    # two replicas see a gap of 1.2 services
    assert found.replicas == 2
    assert scale_of(found.around.top) <= 1.2 < scale_of(found.around.top + 1)
    assert scale_of(found.around.spare) <= 0.6 < scale_of(found.around.spare + 1)
    assert found.around.faster is not None
    assert scale_of(found.around.faster - 1) < 1 / 0.6 <= scale_of(found.around.faster) * 1.001


VLLM: dict[str, Any] = {"policy": "vllm", "cost_model": Constant(STEP), "goodput": {"e2el": 60}, **EASY}


def test_a_cap_is_proved_to_bind_by_lifting_it() -> None:
    """One sequence at a time needs 4 replicas; with any number in a step, one replica serves all."""
    found = sim.plan(evenly(STEP), settings={"max_num_seqs": 1}, **VLLM)
    assert found.replicas == 4
    assert {key: one.replicas for key, one in lifted(found).items() if one.replicas != 4} == {"cap": 1}
    assert lifted(found)["cap"].verdict.holds
    assert not lifted(found)["kv"].verdict.holds
    assert any(sentence.startswith("What binds, shown by lifting it: batch cap") for sentence in found.told())


def test_so_is_kv_memory() -> None:
    """Room for one request: 7 tokens in one block, beside the engine's null block."""
    found = sim.plan(evenly(STEP), kv_capacity_tokens=32, **VLLM)
    assert found.replicas == 4
    assert {key: one.replicas for key, one in lifted(found).items() if one.replicas != 4} == {"kv": 1}


def test_so_is_the_token_budget() -> None:
    """383 tokens a request in steps of 100: with 4 replicas one comes every 4 steps, with 3 too often, every 3.

    Without a budget, prompts are computed together.
    """
    trace = trace_of([(at * STEP, 380, 4) for at in range(200)])
    found = sim.plan(trace, **{**VLLM, "goodput": {"e2el": 100}},
                     settings={"max_num_batched_tokens": 100, "max_num_seqs": 16})
    assert found.replicas == 4
    assert {key: one.replicas for key, one in lifted(found).items() if one.replicas != 4} == {"budget": 1}


def test_so_are_bursts() -> None:
    """Four at once and then nobody for five services: one replica serves them evenly spaced, or all in a batch."""
    trace = trace_of([(at // 4 * 5 * SERVICE, 3, 4) for at in range(200)])
    found = sim.plan(trace, **ONE_AT_A_TIME)
    assert found.replicas == 4
    assert {key: one.replicas for key, one in lifted(found).items() if one.replicas != 4} == {"bursts": 1, "cap": 1}


def test_so_is_prefill() -> None:
    """Prompts of 1,000 tokens at 1 ns a token beside steps of 7 ns: what they take is nearly all there is."""
    trace = trace_of([(at * 300, 1000, 2) for at in range(200)])
    found = sim.plan(trace, "vllm", cost_model=Affine(per_row=0), goodput={"e2el": 0.0015}, **EASY)
    assert found.replicas is not None
    assert found.replicas > 1
    assert lifted(found)["prefill"].replicas == 1
    assert not lifted(found)["cap"].verdict.holds


def test_nobody_can_be_faster_than_alone() -> None:
    found = sim.plan(evenly(2 * SERVICE), **{**ONE_AT_A_TIME, "goodput": {"e2el": 39}})
    assert (found.feasible, found.replicas, found.rate, found.around) == (False, None, None, None)
    told = " ".join(found.told())
    assert "even with a replica to itself, a request meets its limits in 0.0% of the cases" in told
    assert "a limit of 40 ms on E2EL in place of 39 ms would do" in told
    whole = sim.plan(evenly(2 * SERVICE), **{**ONE_AT_A_TIME, "goodput": {"ttft": 5, "tpot": 4}})
    assert "TTFT is 40 ms on the median and 40 ms at p99 there, TPOT is not measured" in " ".join(whole.told())
    both = sim.plan(evenly(2 * SERVICE), "vllm", cost_model=Constant(STEP), goodput={"ttft": 5, "tpot": 4}, **EASY)
    told = " ".join(both.told())
    assert "TTFT is 10 ms on the median and 10 ms at p99 there, TPOT 10 ms and 10 ms" in told
    assert "Nearest: limits of 13 ms on TTFT and 10 ms on TPOT together would do in this run." in told


def test_what_is_called_nearest_is_the_answer_itself() -> None:
    """Three seeds of 40 are sure where one is not: fewer GPUs are not told of more replicas than it takes."""
    asked: dict[str, Any] = {"request_rate": 60, **ONE_AT_A_TIME, "goodput": {"e2el": 400}}
    free, bound = (sim.plan(evenly(SERVICE, 40), max_gpus=most, **asked) for most in (None, 1))
    assert free.replicas is not None
    assert bound.best.nearest[0].startswith(f"{free.replicas} replicas on {free.replicas} GPUs would do")
    rate = sim.plan(evenly(SERVICE, 40), find="rate", **asked).rate
    assert rate is not None
    assert bound.best.nearest[1].endswith(f"{rate:,.4g} requests/s")


def test_a_rate_is_not_the_one_that_chance_lets_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holds up to notch 4 and, by chance, at 7: the answer is 4, which the one below confirms."""
    one = sim.plan(evenly(2 * SERVICE), **ONE_AT_A_TIME).best.runs
    monkeypatch.setattr(one, "hold", lambda kinds, why, seeds=None: [notch_of(kind[1]) in {-1, 0, 1, 2, 3, 4, 7}
                                                                     for kind in kinds])
    monkeypatch.setattr(one, "verdict", lambda replicas, scale, change="": Told(notch_of(scale) in {0, 1, 2, 3, 4, 7}))
    assert one.highest_notch(1, 7, least=-1) == 7
    assert one.highest_sure(1, 7, least=-1) == 4


@dataclass(frozen=True)
class Told:
    """All that the search asks of a verdict."""

    holds: bool


def test_more_replicas_than_there_are_gpus_carry_nothing() -> None:
    found = sim.plan(evenly(2 * SERVICE), find="rate", replicas=3, max_gpus=2, **ONE_AT_A_TIME)
    assert found.best.why_not == "3 replicas take 3 GPUs, and only 2 are allowed"
    slow = sim.plan(evenly(2 * SERVICE), find="rate", **{**ONE_AT_A_TIME, "goodput": {"e2el": 39}})
    assert "even with a replica to itself" in slow.best.why_not


def test_so_short_a_trace_says_that_it_cannot_tell_whether_completions_follow() -> None:
    """Twenty at once in each of 3 replicas: requests come for 0.6 s, and each holds its slot for 0.4 s of that."""
    trace = trace_of([(at * STEP, 3, 40) for at in range(60)])
    found = sim.plan(trace, "vllm", cost_model=Constant(STEP), goodput={"e2el": 500}, **EASY)
    told = " ".join(found.told())
    assert "Whether completions follow arrivals cannot be told" in told
    assert "of faster traffic so short a trace cannot tell, and throughput alone allows 150 at most" in told
    assert "Margin: 49% more traffic and 1 replica still do, as far as so short a trace can tell." in told
    assert found.around.top == notch_of(1.5)    # all that throughput allows: 60 answers of 0.4 s at once, 100/s given
    assert found.records()["around"]["neighbours"][0]["completions_follow"] is None
    assert {True, False, None} == {row["follows"] for row in found.records()["curve"]}
    assert "unknown" in str(found)


def test_what_is_better_by_chance_does_not_bind() -> None:
    """The same requests with the change and without: what some gain others lose."""
    found = sim.plan(evenly(STEP), settings={"max_num_seqs": 1}, **VLLM)
    cap = lifted(found)["cap"]
    assert cap.gain.low > 0.5
    doubtful = replace(cap, gain=Interval(-0.01, 0.02, 0.05, 0.9))
    about = replace(found.around, relaxed=(doubtful,))
    told = list(binding(found.best, about))
    assert told == ["Whether what binds is batch cap cannot be told: without that the answer is better, but no more of "
                    "the same requests meet their limits than chance may explain."]


def test_too_few_gpus_are_told_with_what_comes_nearest() -> None:
    """Half of the traffic is what 2 of 4 replicas carry: 49% is the next notch of 2% below it."""
    found = sim.plan(evenly(STEP), max_gpus=2, **ONE_AT_A_TIME)
    told = " ".join(found.told())
    assert not found.feasible
    assert "2 replicas, the most that are allowed, are too few" in told
    assert "4 replicas on 4 GPUs would do" in told
    assert "2 replicas carry 49% of this traffic" in told
    assert found.records()["feasible"] is False


def test_so_few_requests_show_nothing() -> None:
    found = sim.plan(evenly(SERVICE, 200), **{**ONE_AT_A_TIME, "attainment": 0.99, "confidence": 0.95})
    assert not found.feasible
    assert "200 requests cannot show that 99% of all meet their limits" in found.best.why_not
    assert "takes 368" in found.best.why_not


def test_a_rate_over_the_first_requests_is_told_to_be_that() -> None:
    """Half of the requests come twice as fast as the others: 200 at 12.5 a second, and 400 at 8.34 on the mean."""
    rows = [((at + max(0, at - 200)) * 2 * SERVICE, 3, 4) for at in range(400)]
    told = sim.plan(trace_of(rows), num_prompts=200, **ONE_AT_A_TIME).told()
    assert told[0].endswith("for 12.5 requests/s")
    assert told[1] == ("That rate is the mean over the first 200 requests, all that --num-prompts lets come; the whole "
                       "trace comes at 8.34 requests/s at the same speed.")
    assert "--num-prompts" not in sim.plan(trace_of(rows), **ONE_AT_A_TIME).told()[1]


def test_a_trace_gone_through_again_shows_no_more_than_once() -> None:
    """Nor do seeds that draw nothing but the times of steps."""
    asked = {**ONE_AT_A_TIME, "attainment": 0.99, "confidence": 0.95}
    found = sim.plan(evenly(SERVICE, 200), repeat=3, **asked)
    assert "200 requests, copies left out, cannot show" in found.best.why_not
    assert "cannot show" in sim.plan(evenly(SERVICE, 200), noise=0.01, **asked).best.why_not
    again = sim.plan(evenly(SERVICE, 400), repeat=2, **asked)
    verdict, sample = again.best.verdict(), again.best.sample()
    assert (sample.asked, sample.distinct) == ((800,), (400,))
    assert verdict.shares[0].low == share_interval(400, 400).low
    assert "of 800 requests 400 are no copies" in " ".join(again.told())


def test_the_error_band_moves_the_answer_where_it_is_close() -> None:
    found = sim.plan(evenly(SERVICE // 2), error_band=10, **{**ONE_AT_A_TIME, "goodput": {"e2el": 60}})
    assert found.around.band is not None
    assert (found.around.band.bias, found.around.band.shorter, found.around.band.longer) == (0.1, 2, 3)


def test_the_cheapest_layout_comes_first_and_what_does_not_fit_says_why() -> None:
    found = sim.plan(evenly(SERVICE // 2), gpus=("h100-80", "l40s"), model="llama-3.1-70b",
                     tensor_parallel_sizes=(1, 4, 8), prices={"h100-80": 3.0, "l40s": 1.0}, **ONE_AT_A_TIME)
    order = [(layout.gpu, layout.size, layout.replicas) for layout in found.layouts]
    assert order == [("l40s", 4, 2), ("l40s", 8, 2), ("h100-80", 4, 2), ("h100-80", 8, 2), ("h100-80", 1, None),
                     ("l40s", 1, None)]
    assert "does not fit" in found.layouts[-1].why_not
    assert [row["an_hour"] for row in found.records()["layouts"]] == [8, 16, 24, 48, None, None]
    flags = [row["flags"] for row in found.records()["around"]["neighbours"]]
    assert flags[1] == "--gpu l40s --tensor-parallel-size 4 --replicas 2"
    assert "l40s does not do: " in " ".join(found.told())
    assert "does not fit" not in str(found.tables()[-1])


def test_dollars_a_million_tokens() -> None:
    """Flat out, one at a time: 7 tokens in 40 ms, all of it decode under constant costs but the prompt's own step."""
    found = sim.plan(evenly(2 * SERVICE), prices={"h100-80": 3.6}, **ONE_AT_A_TIME)
    costs = found.records()["layouts"][0]["cost_per_million_tokens"]
    flat, kept = costs["flat out"], costs["within the objectives"]
    assert flat["total"] == pytest.approx(3.6 / 3600 * 0.04 * 1e6 / 7)
    assert flat["all_on_output"] == pytest.approx(3.6 / 3600 * 0.04 * 1e6 / 4)
    assert flat["prompt"] == pytest.approx(1e-3 * 0.01 * 1e6 / 3)
    assert flat["output"] == pytest.approx(1e-3 * 0.03 * 1e6 / 4)
    assert (flat["busy"], flat["idle"]) == (1.0, 0.0)
    assert kept["idle"] == pytest.approx(kept["total"] - flat["total"])
    assert kept["busy"] == pytest.approx(0.5, abs=0.01)


def test_tenants_with_limits_of_their_own_are_judged_apart() -> None:
    trace = replace(evenly(2 * SERVICE), tenant=("chat", "batch") * 100)
    strict = sim.plan(trace, classes={"batch": {"e2el": 4000}}, **{**ONE_AT_A_TIME, "goodput": {"e2el": MS}})
    assert strict.replicas == 1
    assert [str(each) for each in strict.question.objectives] == ["E2EL <= 40 ms", "E2EL <= 4,000 ms for batch"]
    assert strict.best.sample().asked == (100, 100)


def test_an_objective_of_everybody_else_is_none_where_all_have_their_own() -> None:
    trace = replace(evenly(2 * SERVICE), tenant=("chat", "batch") * 100)
    classes = {"batch": {"e2el": 4000}, "chat": {"e2el": MS}}
    found = sim.plan(trace, classes=classes, **{**ONE_AT_A_TIME, "goodput": {"e2el": 1}})
    assert (found.feasible, [each.tenant for each in found.question.objectives]) == (True, ["batch", "chat"])
    few = sim.plan(trace, classes=classes, **{**ONE_AT_A_TIME, "attainment": 0.98})
    assert few.best.why_not.startswith("100 requests of batch cannot show that 98% of all meet their limits")


def test_the_same_plan_is_the_same_document_however_many_processes_make_it() -> None:
    asked: dict[str, Any] = {"request_rate": 30, "seed": 3, **{**ONE_AT_A_TIME, "goodput": {"e2el": 100}}}
    one, two = (sim.plan(evenly(SERVICE), workers=workers, **asked) for workers in (1, 2))
    assert one.to_json() == two.to_json()
    assert one.question.seeds == 3
    assert "3 seeds" in " ".join(one.told())
    assert {probe.seed for probe in one.best.runs.samples} == {0, 1, 2}


def test_it_shows_itself_in_words_in_tables_and_in_a_notebook() -> None:
    found = sim.plan(evenly(SERVICE // 2), **ONE_AT_A_TIME)
    assert repr(found).startswith("<Plan: 2 replicas on 2 h100-80")
    assert "The answer and its neighbours" in str(found)
    assert "<table>" in found._repr_html_()
    curve = found.curve()
    assert set(curve["mark"]) == {"asked, knee, saturation", ""}
    assert (curve["goodput"] <= curve["offered"] + 1e-9).all()
    assert len(found.frame()) == found.runs
    rows = found.records()["around"]["neighbours"]
    assert [row["flags"] for row in rows] == ["--replicas 1", "--replicas 2", "--replicas 3"]


def test_faster_traffic_is_the_same_requests_closer_together() -> None:
    found = sim.plan(evenly(SERVICE), request_rate=10, **{**ONE_AT_A_TIME, "goodput": {"e2el": 400}})
    lab = found.best.runs
    slow, fast = (lab.traffic.scenario_of(Probe(1, scale)) for scale in (1.0, 2.0))
    times = [sim.run(scenario).timeline.sent for scenario in (slow, fast)]
    assert abs(times[0] - 2 * times[1]).max() <= 1


@pytest.mark.parametrize(("asked", "said"), [
    ({"goodput": {}}, "a plan needs an objective: give --goodput"),
    ({"attainment": 1}, "attainment must be below 1, not 1"),
    ({"attainment": 99.5}, "attainment is a share below 1, not 99.5: did you mean 0.995?"),
    ({"confidence": 0}, "confidence must be above 0, not 0"),
    ({"find": "replica"}, "unknown answer to find 'replica': did you mean 'replicas'?"),
    ({"load": "saturated"}, "a plan needs requests that come over time: --load saturated has none"),
    ({"request_rate": float("inf")}, "a plan needs requests that come over time, and all of these come at once"),
    ({"max_concurrency": 4}, "a plan needs clients that do not wait for each other"),
    ({"autoscale": "queue:3", "max_replicas": 4}, "a plan looks for a number of replicas that stays"),
    ({"max_model_len": 5}, "no replica of this kind can serve a single request of the trace"),
    ({"prices": {"h200": 3.0}}, "there is no price for h100-80: give --prices h100-80=DOLLARS, or none at all"),
    ({"prices": {"h200": 3.0}, "gpus": ("l40s", "a100-80")},
     "there is no price for l40s and a100-80: give --prices l40s=DOLLARS,a100-80=DOLLARS, or none at all"),
    ({"gpus": ("a100-80", "h100")}, "unknown GPU 'h100': did you mean 'h100-80'?"),
    ({"classes": {"chat": {"ttft": 100}}}, "unknown tenant 'chat'"),
    ({"slo": ["p99_ttf:5"]}, "unknown latency 'ttf': did you mean 'ttft'?"),
    ({"slo": ["ttft:5"]}, "--slo takes pP_METRIC:MS such as p99_ttft:500, not 'ttft:5'"),
    ({"slo": ["p0_ttft:5"]}, "--slo takes a percentile above 0 and below 100, not 'p0_ttft:5'"),
    ({"settings": {"max_batch": 3}}, "unknown knob of static 'max_batch': did you mean 'max_batch_size'?"),
])
def test_what_cannot_be_planned_is_told(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as told:
        sim.plan(evenly(SERVICE), **{**ONE_AT_A_TIME, **asked})
    assert str(told.value).startswith(said)


def one_in_a_hundred_is_long() -> Any:
    """By itself a long one takes 50 ms, and all others 40 ms."""
    return trace_of([(at * 2 * SERVICE, 3, 5 if at % 100 == 50 else 4) for at in range(1000)])


def test_it_is_not_the_replicas_that_are_too_few_where_only_the_requests_are() -> None:
    """99 of 100 are in time with any number of replicas: 98.9% is not sure of 1,000 requests."""
    asked = {**ONE_AT_A_TIME, "attainment": 0.988}
    found = sim.plan(one_in_a_hundred_is_long(), **asked)
    assert (found.feasible, found.best.in_doubt) == (False, True)
    told, (share, wanted) = " ".join(found.told()), found.best.runs.verdict(16).tightest
    assert "99.00% of the requests meet their limits with 16 replicas, and 98.8% are asked, but 1,000" in told
    assert "too few to be sure of that (90% interval 98.3" in told
    assert f"Nearest: about {requests_needed(share, wanted, 1000):,} requests" in told
    assert "of these requests 98.3% is sure to be met, in place of 98.8%" in told
    assert "replicas, the most" not in told
    assert sim.plan(one_in_a_hundred_is_long(), **{**asked, "attainment": 0.983}).replicas == 1
    rate = sim.plan(one_in_a_hundred_is_long(), find="rate", **asked)
    assert rate.best.why_not.startswith("99.00% of the requests meet their limits at a thousandth of the traffic, and")
    ranked = sim.plan(one_in_a_hundred_is_long(), gpus=["h100-80", "l40s"], **asked)
    assert "l40s: 99.00% of the requests" in " ".join(ranked.told())


def test_whose_bound_the_most_replicas_are_is_told() -> None:
    """Two who come at once take one replica at random in some cases, however many there are: 95% is not kept."""
    trace = trace_of([(at // 40 * 20 * SERVICE, 3, 4) for at in range(400)])
    asked = {**ONE_AT_A_TIME, "router": "random", "replications": 1, "attainment": 0.95}
    free, bound, loose = (sim.plan(trace, max_gpus=most, **asked).best.why_not for most in (None, 3, 1000))
    assert "replicas, the most that are tried (16 times as many as throughput suggests), are too few" in free
    assert bound.startswith("3 replicas, the most that are allowed, are too few")
    assert loose == free


def test_no_more_replicas_are_tried_than_there_are_requests() -> None:
    """Two seeds of 20 are sure where one is not, so that the search looks at the most there are; 21 are 20 again."""
    asked: dict[str, Any] = {"request_rate": 1e6, **ONE_AT_A_TIME, "replications": 2, "max_gpus": None}
    found = sim.plan(evenly(1, 20), **{**asked, "goodput": {"e2el": 80}})
    assert max(probe.replicas for probe in found.best.runs.samples) <= 21
    rest = sim.plan(evenly(1, 20), router="random", **{**asked, "goodput": {"e2el": 80}})
    assert max(probe.replicas for probe in rest.best.runs.samples) > 21


def test_traffic_beyond_any_fleet_is_told_before_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 replicas by the bound, where a run may have 2: nothing runs but the requests by themselves and flat out."""
    monkeypatch.setattr(solving, "MOST_REPLICAS", 2)
    found = sim.plan(evenly(STEP), **ONE_AT_A_TIME)
    assert found.best.why_not == ("throughput alone asks for 4 replicas, and no more than 2 are possible in a run: "
                                  "less traffic would do, or requests over a longer time")
    assert found.runs == 2


def test_one_for_each_request_is_told_to_be_the_most_of_any_help() -> None:
    """Nobody waits then, and still every eighth request of 40 is too long by itself: too few of them to know before."""
    trace = trace_of([(at * STEP // 4, 3, 5 if at % 8 == 0 else 4) for at in range(40)])
    told = sim.plan(trace, **ONE_AT_A_TIME).best.why_not
    assert told.startswith("40 replicas, the most that are of any help (one for each request), are too few")


def test_the_warm_up_is_told_to_count_in_a_run_and_what_it_comes_to() -> None:
    """Of the 100 requests that fill the fleet, five have long prompts, which hold up those behind them."""
    trace = trace_of([(at * STEP, 850 if at < 40 and at % 8 == 0 else 3, 100) for at in range(400)])
    asked: dict[str, Any] = {"cost_model": Constant(STEP), "goodput": {"ttft": 30}}
    knobs = {"max_num_batched_tokens": 200}
    found = sim.plan(trace, settings=knobs, attainment=0.98, confidence=0.5, **asked)
    sample = found.best.sample()
    run = sim.simulate(trace, "vllm", knobs=knobs, replicas=found.replicas, **asked).summary()
    assert sample.left_out > 40
    assert sample.whole == (pytest.approx(run["request_goodput"] * run["duration"] / run["num_prompts"]),)
    assert sample.whole[0] < 0.98 <= found.best.verdict().shares[0].low
    assert f"as `batchsim run` counts, {sample.whole[0]:.2%} do, below the 98% asked." in found.told()[1]


@pytest.mark.parametrize(("outside", "told"), [
    (1, "Fewer than 0.1% of the steps lie outside what the cost model was measured for"), (2, "0.1% of the steps lie"),
    (800, "40.0% of the steps lie"), (0, None)])
def test_few_steps_outside_the_range_are_not_told_to_be_none(outside: int, told: str | None) -> None:
    found = sim.plan(evenly(SERVICE), **ONE_AT_A_TIME)
    layout = found.best
    sample = replace(layout.sample(), out_of_range=outside, steps=2000)
    layout.sample = lambda: sample    # type: ignore[method-assign]
    lines = [line for line in found.told() if "outside what the cost model" in line]
    assert [line.startswith(told or "") for line in lines] == ([] if told is None else [True])


def test_the_highest_rate_of_two_replicas_is_told_with_what_lies_beyond_it() -> None:
    """Steps 10% longer take 44 ms, and a request misses 40 ms at any rate."""
    found = sim.plan(evenly(2 * SERVICE), find="rate", replicas=2, error_band=10, **ONE_AT_A_TIME)
    told = found.told()
    assert told[0] == ("49.99 requests/s, 25 a replica, at most on 2 replicas on 2 h100-80: 4 times the traffic given, "
                       "to 2%")
    [beyond] = [line for line in told if " is too much: " in line]
    assert beyond.startswith("50.99 requests/s is too much: 0.00% of the requests meet their limits ")
    assert not any(line.startswith("Margin") for line in told)
    assert told[-1] == "With every step 10% shorter or longer, as asked: 55.2 requests/s and no answer."
    assert found.around.band.longer is None
    assert scale_of(found.around.band.shorter) * found.best.offered == pytest.approx(50 / 0.9, rel=0.02)
    assert [row[0] for row in found.tables()[0].rows] == ["49.01 requests/s", "49.99 requests/s", "50.99 requests/s"]
    one = sim.plan(evenly(2 * SERVICE), find="rate", **ONE_AT_A_TIME)
    assert one.told()[0] == "25 requests/s at most on 1 replica on 1 h100-80: 2 times the traffic given, to 2%"


def test_where_no_layout_holds_the_model_there_are_no_facts() -> None:
    found = sim.plan(evenly(2 * SERVICE), model="llama-3.1-70b", gpus=("l40s", "rtx-4090"), **ONE_AT_A_TIME)
    told = found.told()
    assert told[0] == "No answer on any of these layouts"
    assert [line.partition(" in bf16")[0] for line in told[1:]] == ["l40s: llama-3.1-70b", "rtx-4090: llama-3.1-70b"]
    account = found.account()
    assert (account.answer, account.tables, account.facts, account.warnings) == (tuple(told), (), (), ())


@pytest.mark.parametrize(("asked", "told"), [
    ({"tensor_parallel_size": 2, "max_gpus": 1}, "one replica takes 2 GPUs, and only 1 is allowed."),
    ({"tensor_parallel_size": 4, "max_gpus": 2}, "one replica takes 4 GPUs, and only 2 are allowed."),
    ({"replicas": 2, "find": "rate", "max_gpus": 1}, "2 replicas take 2 GPUs, and only 1 is allowed.")])
def test_fewer_gpus_than_a_replica_takes_carry_nothing(asked: dict[str, Any], told: str) -> None:
    found = sim.plan(evenly(2 * SERVICE), **asked, **ONE_AT_A_TIME)
    assert found.told()[1] == told
    assert found.told()[2].startswith("Throughput alone asks for 1 or more: ")


def test_a_policy_in_memory_is_planned_like_one_by_name() -> None:
    named = sim.plan(evenly(SERVICE * 6 // 10), **ONE_AT_A_TIME)
    own = {**ONE_AT_A_TIME, "policy": StaticBatching(max_batch_size=1), "settings": {}}
    assert sim.plan(evenly(SERVICE * 6 // 10), **own).told() == named.told()
    assert lifted(named)["cap"].replicas == 2


def test_who_is_too_long_is_counted_apart() -> None:
    trace = trace_of([(at * 2 * SERVICE, 3 if at % 9 else 90, 4) for at in range(200)])
    told = sim.plan(trace, max_model_len=50, **ONE_AT_A_TIME).told()
    assert told[-1] == ("23 requests not counted: longer than the model or its KV cache allows, so that no number of "
                        "replicas serves them.")


def test_a_measured_model_beside_another_one_and_steps_beyond_its_range_are_said() -> None:
    """What fits in a quarter of the steps was timed; there is no profile of the other GPU."""
    found = sim.plan(evenly(2 * SERVICE), "vllm", gpus=("h100-80", "l40s"), goodput={"e2el": 400}, **EASY)
    told = found.told()
    assert any("of the steps lie outside what the cost model was measured for" in line for line in told)
    assert told[-1] == (
        "The layouts are ranked across cost models of different kinds: llama-3.1-8b-h100-80-bf16 with a stated error, "
        "roofline without. What sets them apart may be the models; --cost-model roofline ranks all by the same one.")


def test_a_layout_that_may_do_is_not_said_to_fail() -> None:
    """Every eleventh comes with another one: alone, a replica keeps 91%, which is not surely 90; two keep all."""
    trace = trace_of([((at - (at % 11 == 10)) * 2 * SERVICE, 3, 4) for at in range(220)])
    found = sim.plan(trace, tensor_parallel_sizes=(1, 2), max_gpus=2, **ONE_AT_A_TIME)
    assert [(layout.size, layout.replicas, layout.in_doubt) for layout in found.layouts] == [
        (1, 2, False), (2, None, True)]
    [doubt] = [line for line in found.told() if line.startswith("Whether 2 x h100-80 (tp2) does is not sure: ")]
    assert found.layouts[1].why_not in doubt
    assert doubt.endswith(f"; {found.layouts[1].nearest[0]}.")


@pytest.mark.parametrize(("asked", "cut"), [(100, True), (200, False), (500, False)])
def test_a_trace_that_is_used_whole_is_not_cut(asked: int, cut: bool) -> None:
    found = sim.plan(evenly(2 * SERVICE), num_prompts=asked, **ONE_AT_A_TIME)
    assert (found.best.runs.traffic.uncut is not None) == cut


def test_rates_over_time_are_turned_into_arrivals_that_come_faster() -> None:
    """Twice the rate for a second, four seconds after the start and after each other: 25 gaps of 40 ms."""
    found = sim.plan(evenly(2 * SERVICE), shape="burst:x2/1s@4s", **ONE_AT_A_TIME)
    traffic = found.best.runs.traffic
    one, two = (traffic.scenario_of(Probe(1, scale)) for scale in (1.0, 2.0))
    assert (one.shape, one.rate_scale, two.rate_scale) == (None, 1, 2)
    assert np.unique(np.diff(one.trace.arrival), return_counts=True)[0].tolist() == [SERVICE, 2 * SERVICE]
    assert one.trace.arrival[[1, 51, 75]].tolist() == [2 * SERVICE, 100 * SERVICE + SERVICE, 125 * SERVICE]
    assert scale_of(found.around.top) == 1, "the bursts are as fast as one replica serves"


def test_the_fewest_may_be_fewer_than_were_thought_to_be_needed() -> None:
    runs = sim.plan(evenly(2 * SERVICE), **ONE_AT_A_TIME).best.runs
    assert runs.fewest_sure(3, 3, 5) == 1


def test_a_run_that_fails_ends_the_plan_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(crew, "sample", fail)
    with pytest.raises(InputError, match="ZeroDivisionError: ours"):
        sim.plan(evenly(2 * SERVICE), **ONE_AT_A_TIME)


def test_a_change_that_cannot_be_made_is_not_tried_and_a_file_that_changes_ends_it(
        monkeypatch: pytest.MonkeyPatch) -> None:
    planned = sim.plan(evenly(2 * SERVICE), **ONE_AT_A_TIME).best.runs.traffic

    def fail(error: type[Exception]) -> Callable[[object], None]:
        def prepare(_: object) -> None:
            raise error("x.yaml")

        return prepare

    assert planned.can("cap")
    monkeypatch.setattr(traffic, "prepare", fail(InputError))
    assert not planned.can("cap")
    monkeypatch.setattr(traffic, "prepare", fail(FileChanged))
    with pytest.raises(FileChanged):
        planned.can("cap")


@pytest.mark.parametrize(("pool", "told"), [(float("inf"), "no bound"), (20_000, "20,000")])
def test_the_layouts_are_shown_with_their_pools(pool: float, told: str) -> None:
    found = sim.plan(evenly(2 * SERVICE), gpus=("h100-80", "l40s"), kv_capacity_tokens=pool, **ONE_AT_A_TIME)
    [table] = [each for each in found.tables() if each.title.startswith("Layouts")]
    assert [row[5] for row in table.rows] == [told, told]
