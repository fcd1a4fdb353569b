"""The parts of a plan by themselves: the search, the lag, the warm-up, objectives, verdicts, work."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import Affine, trace_of

import simulator as sim
from cost_models import Constant, StepShape
from simulator.counting import plainly
from simulator.lagging import lag
from simulator.scenario import Scenario
from simulator.statistics import Interval, share_interval
from simulator.studies.capacity import tables
from simulator.studies.capacity.changes import ShortPrompts, faster, words
from simulator.studies.capacity.doubt import reason, remedies, requests_needed
from simulator.studies.capacity.following import outstanding, served, warm_from
from simulator.studies.capacity.lab import notch_of, scale_of
from simulator.studies.capacity.objectives import (
    Objective,
    a_second,
    limits_that_would_do,
    objectives_of,
    percent,
    stretch_that_would_do,
)
from simulator.studies.capacity.question import REPLICATIONS, question_of
from simulator.studies.capacity.sample import Sample, sample, sample_of
from simulator.studies.capacity.search import fewest, highest
from simulator.studies.capacity.traffic import Traffic, is_random, with_seeds
from simulator.studies.capacity.verdict import Verdict, fewest_requests, share_of, verdict_of
from simulator.studies.capacity.windows import cut, merged, shares, worst
from simulator.studies.capacity.work import work_of
from simulator.timeline import Timeline

STEP = 10_000_000
SECOND = 1_000_000_000
SERVICE = 4 * STEP


def line_of(sent: list[int], left: list[int], service: int | None = None) -> Timeline:
    """Requests of one token. They get a slot at once, or so long before they leave."""
    came, done = np.array(sent, np.int64), np.array(left, np.int64)
    ones = np.ones(len(came), np.int64)
    begun = came if service is None else done - service
    return Timeline(np.arange(len(came)), ones, ones, came, begun, begun, done, done, done, done, done, ones * 0, True)


@given(answer=st.integers(1, 400), guess=st.integers(1, 400), least=st.integers(1, 400))
def test_the_search_finds_the_smallest_and_has_asked_the_one_below(answer: int, guess: int, least: int) -> None:
    asked: dict[int, bool] = {}

    def suffices(numbers: object) -> list[bool]:
        told = [number >= answer for number in numbers]    # type: ignore[attr-defined]
        asked.update(zip(numbers, told, strict=True))    # type: ignore[call-overload]
        return told

    found = fewest(suffices, least, guess, 400)
    expected = max(answer, least)
    assert found == expected
    assert asked[expected]
    assert expected == least or asked[expected - 1] is False
    assert all(least <= number <= 400 for number in asked)
    assert len(asked) <= 26


@given(enough=st.sets(st.integers(1, 60)), guess=st.integers(1, 60))
def test_it_ends_with_one_that_suffices_even_where_more_is_not_always_better(enough: set[int], guess: int) -> None:
    found = fewest(lambda numbers: [number in enough for number in numbers], 1, guess, 60)
    assert found in enough or (found is None and 60 not in enough)


@given(answer=st.integers(-200, 200), guess=st.integers(-200, 200))
def test_the_largest_is_found_alike(answer: int, guess: int) -> None:
    assert highest(lambda numbers: [number <= answer for number in numbers], -200, guess, 200) == answer
    assert highest(lambda numbers: [False for _ in numbers], -200, guess, 200) is None
    assert fewest(lambda numbers: [False for _ in numbers], 1, 5, 90) is None


@pytest.mark.parametrize("latency", [1, 50, 420])
def test_who_answers_everybody_a_while_later_does_not_lag(latency: int) -> None:
    line = line_of([10 * at for at in range(200)], [10 * at + latency for at in range(200)])
    assert lag(line) == pytest.approx(0, abs=1e-12)
    assert served(line) == pytest.approx(1e9 / 10, rel=0.01)


@pytest.mark.parametrize(("load", "told"), [(1.0, 0.0), (1.02, 0.02), (1.25, 0.25), (3.0, 2.0)])
def test_the_lag_is_the_overload(load: float, told: float) -> None:
    """One server that takes `load` times the gap: the completions come so much more slowly."""
    took = int(1000 * load)
    line = line_of([1000 * at for at in range(300)], [took * (at + 1) for at in range(300)], took)
    assert lag(line) == pytest.approx(told, abs=1e-3)


def test_answers_of_all_lengths_in_a_short_run_are_no_lag() -> None:
    """Whoever gets a slot at once is not kept waiting, however long its answer takes after that."""
    sent = [10 * at for at in range(100)]
    assert lag(line_of(sent, [at + 7 * at % 400 for at in sent])) == pytest.approx(0)


@pytest.mark.parametrize(("stay", "known"), [(421, True), (430, False), (5000, False)])
def test_a_run_that_is_over_before_the_fleet_fills_tells_nothing(stay: int, known: bool) -> None:
    """Arrivals from the first tenth to the last twentieth take 0.85 x 199 x 10 ns; a fourth of it is 422.9."""
    sent = [10 * at for at in range(200)]
    assert (lag(line_of(sent, [at + stay for at in sent])) is not None) is known
    assert lag(line_of(sent[:49], sent[:49])) is None


def test_no_more_requests_look_answered_than_come() -> None:
    """A busy middle: 50 a second there, 10 before and after it, and each is answered at once."""
    slow = [100 * at for at in range(50)]
    sent = [*slow, *(5000 + 20 * at for at in range(200)), *(9000 + at for at in slow)]
    line = line_of(sent, [at + 5 for at in sent])
    assert served(line) > 25e6
    assert served(line, 20e6, lag(line)) == pytest.approx(20e6)
    assert served(line, 20e6, 0.25) == 16e6


def test_whom_nobody_answers_lags_for_ever() -> None:
    line = line_of([10 * at for at in range(100)], [10 * at + 5 for at in range(100)])
    assert lag(line, 1) == pytest.approx(0)
    assert lag(line, 25) == 0.25
    assert lag(line_of([], []), 7) == 7


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize(("slots", "timeout", "follows"), [(64, "request_timeout", True), (1, "ttft_timeout", False)])
def test_only_who_gives_up_without_a_slot_is_a_lag(slots: int, timeout: str, follows: bool, replicas: int) -> None:
    """Every other answer takes 1 s, and no client waits for more than half of it: for an answer, or for a slot."""
    trace = trace_of((row * SECOND // 20, 8, 100 if row % 2 else 2) for row in range(100))
    found = sample(Scenario(trace, policy="vllm", knobs={"max_num_seqs": slots}, cost_model=Constant(STEP),
                            kv_capacity_tokens=100_000, replicas=replicas, **{timeout: 0.5}),
                   objectives_of(Scenario(trace, goodput={"ttft": 1000}), 0.5))
    assert found.follows is follows
    assert 2 * found.met[0] <= found.asked[0]


def test_a_burst_that_is_worked_off_is_no_lag() -> None:
    sent = sorted([1000 * at for at in range(400)] + [150_000 + at for at in range(100)])
    left, free = [], 0
    for at in sent:
        free = max(free, at) + 500
        left.append(free)
    assert abs(lag(line_of(sent, left, 500))) < 0.03


def test_the_fleet_is_warm_once_as_many_are_there_as_on_the_mean() -> None:
    """Answers take 95 ns and one comes every 10: the tenth finds nine others, and so do all after it."""
    line = line_of([10 * at for at in range(100)], [10 * at + 95 for at in range(100)])
    assert outstanding(line, np.array([0, 45, 90, 500])).tolist() == [1, 5, 10, 10]
    assert warm_from(line) == 90
    assert warm_from(line_of([0, 10, 20], [5, 15, 25])) == 0


def test_a_quiet_start_is_not_called_warm_up_for_longer_than_a_long_answer() -> None:
    sent = [1000 * at for at in range(100)] + [100_000 + 10 * at for at in range(300)]
    assert warm_from(line_of(sent, [at + 95 for at in sent])) == 95


def test_objectives_are_read() -> None:
    scenario = Scenario(goodput={"ttft": 500, "tpot": 50})
    both, p99, p50 = objectives_of(scenario, 0.99, ["p99_ttft:500", "p50_tpot_ms:30"])
    assert (both.limits, both.share) == ({"ttft": 500, "tpot": 50}, 0.99)
    assert (p99.limits, p99.share, p50.limits, p50.share) == ({"ttft": 500}, 0.99, {"tpot": 30}, 0.5)
    assert [percent(share) for share in (0.99, 0.999, 0.5, 1 / 3)] == ["99%", "99.9%", "50%", "33.333%"]


def test_the_limit_that_would_do_is_the_worst_of_those_that_must_be_met() -> None:
    """E2EL of 1 to 100 ms: 95 of 100 need 95 ms, and of the 120 that were asked nobody can say."""
    line = line_of([0] * 100, [at * 1_000_000 for at in range(1, 101)])
    objective = Objective({"e2el": 50}, 0.95)
    assert limits_that_would_do(line, 100, objective) == {"e2el": 95.0}
    assert limits_that_would_do(line, 120, objective) == {"e2el": None}
    both = Objective({"e2el": 50, "ttft": 10}, 0.95)
    assert stretch_that_would_do(line, 100, both) == 9.5    # whole answers: first tokens come with the last ones
    assert stretch_that_would_do(line, 120, both) is None


def made(met: int, asked: int, windows: tuple[float, ...], lagging: float | None = 0.0) -> Sample:
    found = sample(Scenario(trace_of([(at * SERVICE, 3, 4) for at in range(60)]), "static", cost_model=Constant(STEP)),
                   [Objective({"e2el": 50}, 0.9)])
    return replace(found, requests=asked, asked=(asked,), distinct=(asked,), met=(met,), windows=(windows,),
                   lag=lagging)


def test_a_verdict_is_sure_only_beyond_the_wider_of_its_two_intervals() -> None:
    objective = [Objective({"e2el": 50}, 0.9)]
    alike = verdict_of([made(980, 1000, (0.98,) * 20)], objective, 0.95)
    apart = verdict_of([made(980, 1000, (1.0,) * 18 + (0.8, 0.8))], objective, 0.95)
    exact = share_interval(980, 1000)
    assert (alike.shares[0].low, alike.shares[0].high) == (exact.low, exact.high)
    assert apart.shares[0].low < exact.low
    assert (alike.holds, apart.holds, alike.fails) == (True, True, False)
    poor = verdict_of([made(920, 1000, (1.0,) * 12 + (0.8,) * 8)], objective, 0.95)
    assert (poor.holds, poor.holds_on_the_mean, poor.fails) == (False, True, False)
    assert verdict_of([made(500, 1000, (0.5,) * 20)], objective, 0.95).fails
    assert verdict_of([made(980, 1000, (0.98,) * 20, 0.5)], objective, 0.95).fails
    known, unknown, lagging = (made(980, 1000, (0.98,) * 20, lag) for lag in (0.0, None, 0.5))
    assert [verdict_of(runs, objective, 0.95).follows for runs in ([known], [known, unknown], [unknown, lagging])] == [
        True, None, False]
    assert verdict_of([unknown], objective, 0.95).holds


def test_copies_stand_in_one_window_and_count_once() -> None:
    """300 requests in two rounds, the first 75 of which always miss: four windows, however often each is asked."""
    met, original = np.tile(np.arange(300) >= 75, 2), np.tile(np.arange(300), 2)
    assert shares(met, original) == shares(met[:300]) == (0.0, 1.0, 1.0, 1.0)
    once, twice = share_of(225, 300, shares(met[:300]), 0.95), share_of(450, 600, shares(met, original), 0.95, 300)
    assert once == twice
    assert share_of(450, 600, shares(met), 0.95).half_width < 0.7 * once.half_width
    assert share_of(79, 80, (), 0.95, 40).low == share_interval(39.5, 40).low
    assert merged([(0.0, 0.5, 1.0), (0.25, 0.0)]) == (0.375, 0.5)


@pytest.mark.parametrize(("fields", "fresh"), [
    ({"noise": 0.1}, False), ({"request_rate": 3.0}, False), ({"sample": 0.5}, False),
    ({"trace": "azure-conv-2023"}, True),
    ({"trace": trace_of([(at * SECOND, 1, 1) for at in range(60)]), "request_rate": 3.0}, True),
    ({"trace": trace_of([(at * SECOND, 1, 1) for at in range(60)]), "noise": 0.1}, False)])
def test_seeds_with_the_same_requests_count_them_once(fields: dict[str, Any], fresh: bool) -> None:
    trace = trace_of([(at * SECOND, 1, 1 + at) for at in range(60)])
    asked = Scenario(**({"trace": trace, "num_prompts": 50, "max_model_len": 100_000} | fields))
    traffic = Traffic(with_seeds(asked, 3))
    assert traffic.fresh is fresh
    assert traffic.concerned(Objective({"ttft": 5}, 0.9)) == len(traffic.setup.trace) * (3 if fresh else 1)


@pytest.mark.parametrize(("rows", "sizes"), [(1, [1]), (19, [19]), (20, [10, 10]), (149, [74, 75]), (225, [75] * 3),
                                             (1500, [75] * 20), (20_000, [1000] * 20)])
def test_windows_are_few_and_long(rows: int, sizes: list[int]) -> None:
    assert [part.stop - part.start for part in cut(rows)] == sizes


def test_a_share_of_all_is_bounded_by_how_many_there_are() -> None:
    assert fewest_requests(0.99, 0.95) == 368
    assert share_interval(368, 368).low >= 0.99 > share_interval(367, 367).low


def test_where_the_time_of_a_run_goes() -> None:
    """One at a time: a step for the prompt and three for the other tokens, and as much rest."""
    result = sim.simulate(trace_of([(at * 2 * SERVICE, 3, 4) for at in range(10)]), "static", cost_model=Constant(STEP))
    work = work_of(result)
    assert (work.prefill, work.decode) == (pytest.approx(0.1), pytest.approx(0.3))
    assert (work.elapsed, work.idle) == (pytest.approx(0.76), pytest.approx(0.36))
    assert (work.prompt_tokens, work.output_tokens) == (30, 40)
    assert replace(work, prefill=0.1, decode=0.2, elapsed=0.1 + 0.2 + 1e-16).idle == 0


def test_requests_that_miss_are_told_by_cause() -> None:
    """Two at once, one at a time, answered whole: the second has waited for a slot, and its answer took long."""
    trace = trace_of([(at // 2 * 3 * SERVICE, 3, 4) for at in range(100)])
    result = sim.run(Scenario(trace, "static", {"max_batch_size": 1}, cost_model=Constant(STEP)))
    by_first = sample_of(result, [Objective({"ttft": 50}, 0.9)])
    by_whole = sample_of(result, [Objective({"e2el": 50}, 0.9)])
    assert {why: many for why, many in by_first.causes.items() if many} in ({"queue": 50}, {"queue": 49})
    assert {why: many for why, many in by_whole.causes.items() if many} in ({"e2el": 50}, {"e2el": 49})


def test_prompts_that_cost_nothing_are_priced_as_one_token_each() -> None:
    """Affine: 7 + 2 a row + 1 a prompt token + an eighth of the context."""
    cost = ShortPrompts(Affine())
    assert cost.name == "affine, prompts free"
    assert cost.time(StepShape(2, 32)) == 7 + 4 + 4
    assert cost.time(StepShape(2, 30, ((500, 0), (7, 3)))) == 7 + 8 + 4
    assert cost.decode_times(StepShape(8, 32), 2) == [7 + 16 + 4, 7 + 16 + 5]
    assert (words(faster(0.9)), words(faster(1.05))) == ("every step 10% shorter", "every step 5% longer")


@pytest.mark.parametrize(("fields", "drawn"), [
    ({}, False), ({"rate_scale": 3.0}, False), ({"request_rate": 3.0}, True),
    ({"request_rate": 3.0, "burstiness": float("inf")}, False), ({"noise": 0.1}, True), ({"sample": 0.5}, True),
    ({"trace": "azure-conv-2023"}, True), ({"router": "random"}, True), ({"shape": "ramp:1-2/30s"}, True),
    ({"shape": "burst:x2/1s@1s"}, False)])
def test_only_what_is_drawn_is_drawn_again(fields: dict[str, object], drawn: bool) -> None:
    trace = trace_of([(at * SECOND, 1, 1 + at) for at in range(60)])
    assert is_random(Scenario(**({"trace": trace, "num_prompts": 50} | fields))) is drawn    # type: ignore[arg-type]


def test_a_file_of_clients_that_is_drawn_is_no_recorded_trace(tmp_path: Path) -> None:
    """ServeGen's pools hold rates and lengths: one seed alone would hide how far chance moves the answer."""
    (tmp_path / "chunk-0-trace.csv").write_text("0,0.5,1,Gamma,1,2\n600,0,0,,0,0\n")
    lengths = dict.fromkeys(("input_tokens", "output_tokens"), "{10: 0.5, 20: 0.5}")
    (tmp_path / "chunk-0-dataset.json").write_text(json.dumps({"0": lengths}))
    asked = question_of(Scenario(trace=str(tmp_path), goodput={"ttft": 500.0}))
    assert asked.seeds == REPLICATIONS


@given(st.integers(-350, 350))
def test_a_notch_and_its_scale_lead_to_each_other(notch: int) -> None:
    assert notch_of(scale_of(notch)) == notch


@given(mean=st.floats(0.9, 0.999), wanted=st.floats(0.85, 0.99), distinct=st.integers(50, 2000))
def test_so_many_requests_are_sure_and_a_tenth_fewer_are_not(mean: float, wanted: float, distinct: int) -> None:
    found = share_interval(mean * distinct, distinct)
    needed = requests_needed(found, wanted, distinct)
    if needed is None or needed <= distinct + distinct // 10 + 1:
        return
    assert share_interval(mean * needed, needed).low >= wanted
    fewer = int(needed * 0.9)    # they are rounded up to two digits
    assert share_interval(mean * fewer, fewer).low < wanted


def test_an_interval_of_windows_narrows_by_the_square_root() -> None:
    """Half as wide takes four times as many requests."""
    assert requests_needed(Interval(0.5, 0.9, 1.0), 0.7, 1000) == 4000
    assert requests_needed(Interval(0.5, 0.9, 1.0), 0.9, 1000) is None
    assert requests_needed(Interval(0.5, 0.9, 1.0), 0.95, 1000) is None
    assert requests_needed(Interval(0.5, 0.9, 1.0), 0.9 - 1e-7, 1000) is None


def test_what_would_be_sure_is_told() -> None:
    found = Interval(0.5, 0.9, 1.0)
    assert reason(found, 0.7, 1000, "with 2 replicas") == (
        "90.00% of the requests meet their limits with 2 replicas, and 70% are asked, but 1,000 requests are too few "
        "to be sure of that (95% interval 50.00% to 100.00%)")
    more, lower = remedies(found, 0.7, 1000)
    assert more.startswith("about 4,000 requests, 4 times as many, would do if as many of them meet their limits")
    assert lower == "of these requests 50% is sure to be met, in place of 70%"
    assert remedies(Interval(0.0, 0.9, 1.0), 0.9, 20)[0].startswith("no trace is long enough")
    assert len(remedies(Interval(0.0, 0.9, 1.0), 0.9, 20)) == 1


def test_a_number_many_times_too_large_is_no_power_of_ten() -> None:
    """960,000 in place of 615 requests; and limits, latencies and rates alike."""
    found, slow = Interval(0.9789, 0.9902, 0.9999), Objective({"ttft": 10000, "tpot": 0.5}, 0.99)
    assert ", 1,561 times as many, would do" in remedies(found, 0.99, 615)[0]
    assert str(slow) == "TTFT <= 10,000 ms and TPOT <= 0.5 ms"
    assert [plainly(value) for value in (5871.2, 99.96, 0.01234, -1e6)] == ["5,871", "100", "0.0123", "-1,000,000"]


@pytest.mark.parametrize(("interval", "follows", "kept"), [
    ((0.995, 0.998, 1.0), True, "yes"), ((0.98, 0.992, 1.0), None, "yes, not for sure"),
    ((0.956, 0.976, 0.996), None, "no, not for sure"), ((0.9, 0.95, 0.98), True, "no"),
    ((0.995, 0.998, 1.0), False, "no, the backlog grows")])
def test_a_table_tells_what_was_seen_and_whether_it_is_sure(interval: tuple[float, float, float], follows: bool | None,
                                                            kept: str) -> None:
    assert tables._kept(Verdict((Interval(*interval),), (0.99,), follows)) == kept


def test_one_request_a_second_is_no_plural() -> None:
    assert [a_second(rate) for rate in (1, 0.99999, 1.001, 0.5)] == [
        "1 request/s", "1 request/s", "1.001 requests/s", "0.5 requests/s"]


def test_of_nobody_nothing_is_told() -> None:
    nobody = line_of([], [])
    assert (served(nobody, 3.0), warm_from(nobody)) == (0, 0)
    assert worst(np.zeros(0, bool), np.zeros(0, np.int64)) == (0, 0, 0)
    assert worst(np.array([True, False]), np.array([SECOND, 3 * SECOND])) == (0.5, 1, 3)
