"""explain: the story moment by moment, the ledgers, and the three questions with the signs that public cases give."""

from __future__ import annotations

import json
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ledger import drawn_rows
from worlds import Affine, trace_of

import simulator as sim
from cost_models import Constant
from simulator.errors import InputError
from simulator.ledger import LEDGERS
from simulator.policies import Sglang, StaticBatching, Vllm
from simulator.result import Result
from simulator.scenario import Scenario
from simulator.studies.explain import explain
from simulator.studies.explain.answer import number as answer_number
from simulator.studies.explain.contention import contention
from simulator.studies.explain.exhaustion import BLOCK, SHARES, exhaustion, pool, preemptions, sweep
from simulator.studies.explain.following import moments, moments_table, strip_frame
from simulator.studies.explain.ledgers import ledger_table
from simulator.studies.explain.paging import FULL, paging

ROWS = [(0, 10, 5), (0, 10, 1), (0, 10, 1), (0, 10, 1)]
SMALL = Scenario(trace=trace_of([(0, 40 + 37 * row % 300, 1 + 53 * row % 90) for row in range(60)]))


def of_story(policy: Any) -> Result:
    return sim.simulate(trace_of(ROWS), policy, load="saturated", cost_model=Constant(1000), kv_capacity_tokens=1e6)


# --- one request ----------------------------------------------------------------------------------------------------

def test_a_held_request_moment_by_moment() -> None:
    found = moments(of_story(StaticBatching(max_batch_size=2)), 1)
    assert [(one.kind, one.first_step, one.last_step, one.start_s, one.end_s) for one in found] == [
        ("prefill", 0, 0, 0, 1e-6), ("held", 1, 4, 1e-6, 5e-6)]
    assert found[0].words == "its prompt of 10 tokens is read, in 1 step with 2 chunks of 20 tokens in all"
    assert found[1].words == ("finished, but held for request 0 with its 5 tokens: 4 steps do nothing for it; of the "
                              "rows, 1 are useful at first and 1 at last")


def test_one_that_waits_reads_and_writes() -> None:
    found = moments(of_story(Vllm(max_num_seqs=1, max_num_batched_tokens=99)), 1)
    assert [(one.kind, one.start_s, one.end_s) for one in found] == [("queue", 0, 5e-6), ("prefill", 5e-6, 6e-6)]
    longest = moments(of_story(Vllm(max_num_seqs=2, max_num_batched_tokens=99)), 0)
    assert longest[-1].words == ("a token a step: 4 steps of 0.0 ms on average; 2 rows do useful work in the first, "
                                 "1 in the last")
    table = moments_table(of_story(Vllm(max_num_seqs=2, max_num_batched_tokens=99)), 0, "vllm")
    assert [row[1] for row in table.rows] == ["0", "1 to 4"]


def test_one_that_is_preempted_goes_back_and_catches_up() -> None:
    policy = Vllm(max_num_seqs=2, max_num_batched_tokens=99, block_size=4)
    result = sim.simulate(trace_of([(0, 8, 9), (0, 8, 9)]), policy, cost_model=Constant(10), kv_capacity_tokens=28)
    found = moments(result, 1)
    assert [one.kind for one in found] == ["prefill", "decode", "back in the queue", "recompute", "decode"]
    assert found[3].words.startswith("catches up with what the preemption took, in 1 step with 1 chunk of ")
    assert set(strip_frame(result, 1)["kind"]) == {"prefill", "decode", "queue", "recompute"}


def test_the_strip_shows_whom_it_waits_for_its_slot_and_who_is_next() -> None:
    frame = strip_frame(of_story(StaticBatching(max_batch_size=2)), 1)
    assert frame.drop_duplicates("row")["label"].tolist() == [
        "request 0, the longest beside it", "request 1", "its slot", "request 3, who comes next"]
    slot = frame[frame["label"] == "its slot"]
    assert slot[["kind", "request"]].to_numpy().tolist() == [["prefill", 1], ["held", 1], ["prefill", 3]]
    nxt = frame[frame["row"] == 4]
    assert nxt[["kind", "start_s", "end_s"]].to_numpy().tolist() == [["queue", 0, 5e-6], ["prefill", 5e-6, 6e-6]]


@given(drawn_rows(), st.sampled_from([StaticBatching(max_batch_size=2), Vllm(max_num_seqs=3,
                                                                             max_num_batched_tokens=8, block_size=4)]))
def test_moments_follow_one_another_from_sending_to_leaving(rows, policy) -> None:
    result = sim.simulate(trace_of(sorted(rows)), policy, cost_model=Affine(), kv_capacity_tokens=64)
    line = result.timeline
    for at, request in enumerate(line.request.tolist()):
        found = moments(result, request)
        assert all(one.end_s == other.start_s for one, other in pairwise(found))
        assert (found[0].start_s, found[-1].end_s) == (line.sent[at] / 1e9, line.left[at] / 1e9)
        steps = [one for one in found if one.first_step is not None]
        assert all(one.last_step < other.first_step for one, other in pairwise(steps))


# --- all of it ------------------------------------------------------------------------------------------------------

def test_the_whole_answer_is_plain_and_says_which_requests_were_used() -> None:
    found = explain("azure-conv-2023", num_prompts=150)
    assert found.used.startswith("the first 150 of 19,366 requests of azure-conv-2023 (")
    document = json.loads(json.dumps(found.records(), allow_nan=False))
    assert any(line.startswith("cost model: llama-3.1-8b-h100-80-bf16 (") for line in document["facts"])
    assert set(document) == {"requests", "facts", "request", "story", "moments", "ledgers", "answers"}
    assert set(document["answers"]) == {"paging", "contention", "exhaustion"}
    for name, parts in LEDGERS.items():
        assert {label: set(each) for label, each in document["ledgers"][name].items()} == {
            "static": set(parts), "vllm": set(parts)}
    assert document["moments"]["static"][-1]["kind"] == "held"
    assert document["moments"]["vllm"][-1]["kind"] != "held"
    assert [table.title.split(" (")[0] for table in found.ledgers()] == [
        "Where every slot-second went", "Where every token position went", "Where the KV cache went, in token-seconds"]
    assert found.story["static"].slots.count == found.story["vllm"].policy.slots


def test_the_columns_of_a_ledger_table_add_up() -> None:
    found = explain("azure-conv-2023", num_prompts=60)
    for table in found.ledgers():
        for at in (1, 2):
            cells = [float(row[at].split()[0].replace(",", "")) for row in table.rows]
            assert sum(cells[:-1]) == pytest.approx(cells[-1], rel=0.01)


@pytest.mark.parametrize("rows", [[(0, 10, 1)], [(0, 10, 5)], [(0, 900, 1), *[(0, 10, 20 + row) for row in range(9)]]])
def test_the_smallest_traces_have_an_answer_too(rows: list[tuple[int, ...]]) -> None:
    found = explain(trace_of(rows), max_model_len=100)
    assert [len(answer.told) for answer in found.answers] == [4, 3, 1]
    json.dumps(found.records(), allow_nan=False)


def test_a_given_request_is_followed_under_the_policies_asked_for() -> None:
    found = explain(trace_of(ROWS), ["vllm", "orca"], request=2, cost_model=Constant(1000), kv_capacity_tokens=1000)
    assert list(found.told()) == ["vllm", "orca"]
    assert found.request == 2
    assert found.used.startswith("all 4 requests of made")


@pytest.mark.parametrize(("request_", "message"), [
    (4, "request must be shortest or a row of the 4 used, from 0 on, not 4: give num_prompts to use more"),
    (-1, "request must be shortest or a row of the 4 used, from 0 on, not -1: give num_prompts to use more"),
    ("longest", "request must be shortest or a row of the 4 used, from 0 on, not 'longest': give num_prompts to use "
                "more"),
])
def test_a_request_that_is_none(request_, message) -> None:
    with pytest.raises(InputError) as caught:
        explain(trace_of(ROWS), request=request_, cost_model=Constant(1000))
    assert str(caught.value) == message


def test_who_gets_no_answer_cannot_be_followed() -> None:
    rows = [(0, 10, 5), (0, 900, 1)]
    with pytest.raises(InputError, match="request 1 gets no answer from static: follow another one"):
        explain(trace_of(rows), request=1, max_model_len=100, cost_model=Constant(1000))
    with pytest.raises(InputError, match="explain follows the request once under each policy: vllm, vllm"):
        explain(trace_of(rows), ["vllm", "vllm"])


# --- the three questions --------------------------------------------------------------------------------------------

def test_paging_needs_no_hole_and_no_reservation() -> None:
    found = paging(SMALL, sim.run)
    rows = {row["memory"]: row for row in found.data["memories"]}
    tokens = max(2 * (339 + 128), round(FULL * np.mean(SMALL.trace.prompt + SMALL.trace.output)))
    assert found.table.title == f"Four memories of {tokens:,} tokens (saturated)"
    assert rows["first fit"]["refused_with_enough_free"] > 0
    assert rows["first fit"]["external_share"] > 0
    assert rows["buddy"]["internal_share"] > rows["paged"]["internal_share"]
    for name in ("reserved, but anywhere", "paged"):
        assert (rows[name]["refused_with_enough_free"], rows[name]["external_share"]) == (0, 0)
    assert rows["paged"]["reserved_share"] == 0
    assert rows["buddy"]["effective_batch"] < rows["first fit"]["effective_batch"] < rows[
        "reserved, but anywhere"]["effective_batch"] < rows["paged"]["effective_batch"]
    assert {row["rejected"] for row in rows.values()} == {0}
    for row in rows.values():
        assert sum(row[f"{part}_share"] for part in LEDGERS["kv"]) == pytest.approx(1)


def test_a_pool_that_is_given_is_taken() -> None:
    found = paging(SMALL.but(kv_capacity_tokens=5000), sim.run)
    assert found.table.title == "Four memories of 5,000 tokens (saturated)"


def test_a_larger_budget_makes_gaps_longer_and_first_tokens_earlier() -> None:
    """Public case: ITL p99 rises with the budget of a step while TTFT falls."""
    rows = [(0, 4000 if row % 4 == 0 else 200, 150) for row in range(120)]
    found = contention(Scenario(trace=trace_of(rows)), sim.run).data["budgets"]
    gaps = [row["p99_itl_ms"] for row in found]
    assert all(before <= after * 1.001 for before, after in pairwise(gaps))
    assert gaps[-1] > 2 * gaps[0]
    assert found[-1]["p99_ttft_ms"] < found[0]["p99_ttft_ms"] / 2
    assert found[-1]["median_ttft_ms"] < found[0]["median_ttft_ms"]
    assert len({row["max_num_batched_tokens"] for row in found}) == len(found)


def test_where_no_prompt_is_cut_no_larger_budget_is_said_to_be_sooner() -> None:
    """Prompts of one token: the smallest budget already takes them whole."""
    found = contention(Scenario(trace=trace_of([(0, 1, 20)] * 8)), sim.run)
    assert any(line.startswith("The first token comes soonest with the smallest budget") for line in found.told)
    assert not any("takes the other way" in line for line in found.told)


def test_a_rate_that_is_given_is_taken() -> None:
    found = contention(SMALL.but(request_rate=3.5), sim.run)
    assert "3.5 requests/s" in found.table.title


def test_memory_below_the_peak_is_a_cliff() -> None:
    """Public case: 200 requests of 512 and 256 tokens; cutting the pool by 5% made the p99 of TTFT 4.7 times as long.

    Flat above the peak, then sharp; no preemption before, some after; never better with less.
    """
    scenario = Scenario(trace=trace_of([(0, 512, 256)] * 200))
    found = sweep(scenario, 30.0, sim.run)
    rows = {row["share_of_peak"]: row for row in found.rows}
    flat = [rows[share] for share in SHARES if share >= 1]
    assert {row["p99_ttft_ms"] for row in flat} == {rows[1.0]["p99_ttft_ms"]}
    assert {row["preemptions"] for row in flat} == {0}
    assert rows[0.95]["preemptions"] > 0
    assert rows[0.95]["p99_ttft_ms"] > 4 * rows[1.0]["p99_ttft_ms"]
    late = [row["p99_ttft_ms"] for row in found.rows]
    assert late == sorted(late)
    assert all(row["recomputed_share"] > 0 for row in found.rows if row["preemptions"])


def test_what_was_lost_comes_back_and_swap_computes_nothing_again() -> None:
    scenario = Scenario(trace=trace_of([(0, 512, 256)] * 200))
    found = exhaustion(scenario.but(request_rate=30.0), sim.run)
    recompute, swap = found.data["modes"]
    assert recompute["preemptions"] > 0
    assert recompute["recomputed_tokens"] > swap["recomputed_tokens"] == 0
    tight = found.data["tight"][0]
    assert len(found.data["preemptions"]) == tight["preemptions"] > 0
    for row in found.data["preemptions"]:
        assert row["lost_s"] <= row["admitted_s"] < row["next_token_s"]
    assert max(row["used_share"] for row in found.data["kv"]) <= 1
    assert len(found.told) == 3


def test_where_memory_never_runs_out_it_is_said() -> None:
    found = exhaustion(Scenario(trace=trace_of([(0, 100, 5)] * 3), request_rate=0.01), sim.run)
    assert found.told[0].endswith("Nor does less, as long as it holds the longest request.")
    assert found.data["preemptions"] == []


@pytest.mark.parametrize(("rows", "asked", "used"), [(250, None, 200), (250, 30, 30), (40, 100, 40)])
def test_the_last_question_says_which_requests_it_is_asked_of(rows: int, asked: int | None, used: int) -> None:
    scenario = Scenario(trace=trace_of([(0, 100, 5)] * rows), num_prompts=asked, request_rate=50.0)
    found = exhaustion(scenario, sim.run)
    assert f"At 50 requests/s the first {used} requests, all that are used here, take " in found.told[0]
    assert f"(vllm, the first {used} requests, 50 requests/s, " in found.table.title


def test_the_smallest_pool_holds_the_longest_request() -> None:
    assert pool(1000, 0.5, 100) == 528
    assert pool(1000, 0.1, 800) == 832
    assert all(pool(peak, share, longest) % BLOCK == 0 for peak, share, longest in ((7, 0.3, 5), (990, 1.2, 3)))


def test_nobody_lost_anything() -> None:
    assert preemptions(of_story(Vllm(max_num_seqs=2, max_num_batched_tokens=99))) == []


def test_where_nobody_runs_nobody_can_be_followed() -> None:
    with pytest.raises(InputError, match=r"^nobody ran, so there is nobody to follow: look at the trace with `batch"):
        explain(trace_of(ROWS), max_model_len=4)


def test_who_keeps_a_slot_while_others_compute_is_told_so() -> None:
    """Its prompt is read in step 0; then three steps read another one, and nobody decodes meanwhile."""
    rows = [(0, 4, 3), (500, 10, 2)]
    result = sim.simulate(trace_of(rows), Sglang(chunked_prefill_size=4), cost_model=Constant(1000),
                          kv_capacity_tokens=100)
    [found] = [one for one in moments(result, 0) if one.kind == "stalled"]
    assert (found.first_step, found.last_step) == (1, 3)
    assert found.words == "keeps its slot, but 3 steps leave it out"


def test_a_moment_in_which_nothing_runs_has_no_steps() -> None:
    rows = [(0, 10, 1), (5_000_000, 10, 1)]
    result = sim.simulate(trace_of(rows), StaticBatching(max_batch_size=2, max_wait=1), cost_model=Constant(1000),
                          kv_capacity_tokens=100)
    waits, reads = moments(result, 0)
    assert (waits.kind, waits.first_step, waits.last_step, reads.first_step) == ("queue", None, None, 0)
    assert [row[1] for row in moments_table(result, 0, "static").rows] == ["-", "0"]


def test_a_cache_without_bound_has_no_total() -> None:
    ran = {"a": sim.simulate(trace_of(ROWS), "vllm", cost_model=Constant(1000), kv_capacity_tokens=inf)}
    assert ledger_table("kv", ran, "here").rows[-1] == ("all token-seconds", "no bound")
    assert ledger_table("slots", ran, "here").rows[-1][1] != "no bound"


@pytest.mark.parametrize(("value", "told"), [(None, "-"), (7.0, "7"), (7.25, "7.2"), (1234.5, "1,234")])
def test_numbers_have_as_many_digits_as_say_something(value: float | None, told: str) -> None:
    assert answer_number(value) == told
