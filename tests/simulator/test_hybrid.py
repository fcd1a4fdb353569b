"""Hybrid: its corners are `static` and `vllm` to the byte, and what lies between them does what its docstring says.

A step lasts 10 ns unless said otherwise. A log line reads as in test_static.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from drawn.same import bytes_of
from drawn.scenarios import KINDS, scenarios
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from test_same_bytes import BLOCK, COSTS, DECLARED, LOADS, MODEL_LEN, traces
from worlds import Affine, World, play, play_both

import simulator as sim
from simulator.batch import LockstepSet
from simulator.deployment import Deployment
from simulator.errors import InputError, PolicyError
from simulator.policies import Hybrid, Policy, StaticBatching, Vllm
from simulator.policies.hybrid_rules import pad
from simulator.policies.making import make_policy
from simulator.request import Request
from simulator.result import Result
from simulator.step import Queue, Step
from simulator.studies.switches import as_hybrid, settled

NAMED = ("backend", "policy", "policy_version", "policy_args", "scenario")
"""What a result says of its policy's name and knobs."""
THREE = [(0, 4, 3), (0, 6, 1), (0, 2, 2)]


def parts(result: Result) -> dict[str, Any]:
    """All that a run came to, but for the policy's own name and knobs."""
    document = json.loads(result.to_json(detailed=True))
    return bytes_of(result) | {"json": {key: value for key, value in document.items() if key not in NAMED}}


def assert_same(policy: Policy, **options: Any) -> None:
    """The policy and the hybrid that stands for it come to the same, byte for byte."""
    trace = options.pop("trace")
    one, other = (parts(sim.simulate(trace, each, **options)) for each in (policy, as_hybrid(policy)))
    assert [name for name in one if one[name] != other[name]] == []


CORNERS: dict[str, Policy] = {
    "static": StaticBatching(),
    "static, padded": StaticBatching(max_batch_size=4, padded=True),
    "static, model": StaticBatching(reserve="model", padded=True),
    "static, buddy": StaticBatching(reserve="pow2", placement="buddy", max_batch_size=5),
    "static, full batches": StaticBatching(max_batch_size=4, max_wait=inf),
    "static, artefacts": StaticBatching(max_batch_size=4, run_to=50, sleep_per_batch=20e-6, padded=True),
    "vllm": Vllm(),
    "vllm, no cache": Vllm(enable_prefix_caching=False),
    "vllm, small steps": Vllm(max_num_seqs=4, max_num_batched_tokens=24, block_size=BLOCK, watermark=0.1),
    "vllm, whole prompts": Vllm(enable_chunked_prefill=False, scheduler_reserve_full_isl=False),
    "vllm, by priority": Vllm(scheduling_policy="priority", max_num_seqs=6, long_prefill_token_threshold=9),
    "vllm, shorter": Vllm(max_model_len=80),
}


@pytest.mark.parametrize("tokens", [240, 20_000])
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("policy", CORNERS.values(), ids=CORNERS)
def test_the_corners_are_static_and_vllm_to_the_byte(policy: Policy, load: str, tokens: int) -> None:
    trace, options = LOADS[load]
    if options.get("max_concurrency") and getattr(policy, "max_wait", 0) == inf:
        options = options | {"max_concurrency": None}
    for exact in (False, True):
        assert_same(policy, trace=trace, exact=exact, kv_capacity_tokens=tokens, max_model_len=MODEL_LEN,
                    max_tokens=DECLARED, **options)


@pytest.mark.parametrize("name", ["static", "vllm"])
@given(data=st.data())
@settings(max_examples=60)
def test_the_corners_are_static_and_vllm_in_any_world(name: str, data: st.DataObject) -> None:
    scenario = data.draw(st.sampled_from(list(KINDS)).flatmap(lambda kind: scenarios(name, kind)), "scenario")
    policy = make_policy(scenario.policy, {})
    if getattr(policy, "max_wait", 0) == inf:    # the batch that it waits for may never fill
        policy = replace(policy, max_wait=37e-6)
    try:
        one, other = (parts(sim.run(scenario.but(policy=each))) for each in (policy, as_hybrid(policy)))
    except (InputError, PolicyError):    # the world has no slots to scale by, or ties that push each other out
        reject()
    assert [part for part in one if one[part] != other[part]] == []


@pytest.mark.parametrize("name", ["azure-conv-2023", "azure-code-2023"])
@pytest.mark.parametrize("policy", ["static", "static, padded", "vllm", "vllm, no cache"])
@pytest.mark.parametrize("tokens", [None, 20_000])
def test_the_corners_are_static_and_vllm_on_stand_ins(name: str, policy: str, tokens: int | None) -> None:
    for load in ("saturated", "trace"):
        assert_same(CORNERS[policy], trace=name, num_prompts=120, load=load, kv_capacity_tokens=tokens)


@st.composite
def hybrids(draw: st.DrawFn) -> Hybrid:
    """Any of them, those in between included."""
    return Hybrid(granularity=draw(st.sampled_from(["batch", "step"])),
                  reserve=draw(st.sampled_from(["model", "declared", "exact", "pow2", "paged", "paged"])),
                  padded=draw(st.booleans()), prefill=draw(st.sampled_from(["alone", "mixed"])),
                  max_batch_size=draw(st.sampled_from([None, 1, 2, 5])),
                  run_to=draw(st.sampled_from([None, None, 4, 45])),
                  max_num_seqs=draw(st.sampled_from([None, 1, 3, 12])), block_size=draw(st.sampled_from([1, 4, BLOCK])),
                  enable_prefix_caching=draw(st.booleans()), watermark=draw(st.sampled_from([0.0, 0.1])),
                  max_num_batched_tokens=draw(st.sampled_from([None, None, 1024])))


@given(trace=traces(), policy=hybrids(), cost=st.sampled_from(COSTS), tokens=st.sampled_from([128, 160, 240, 20_000]),
       limit=st.sampled_from([None, 1, 3]))
@settings(max_examples=200)
def test_what_lies_between_is_fast_as_it_is_exact_and_knobs_that_cannot_act_do_not(trace, policy, cost, tokens,
                                                                                   limit) -> None:
    options: dict[str, Any] = {"cost_model": cost, "kv_capacity_tokens": tokens, "max_concurrency": limit,
                               "max_model_len": MODEL_LEN, "max_tokens": DECLARED}
    one, other, idle = (parts(sim.simulate(trace, each, exact=exact, **options)) for each, exact in
                        ((policy, False), (policy, True), (settled(policy), False)))
    assert [name for name in one if one[name] != other[name]] == []
    assert [name for name in one if one[name] != idle[name]] == []


ROWS = st.lists(st.tuples(st.sampled_from([0, 0, 10, 35]), st.integers(1, 40), st.integers(1, 40)), min_size=1,
                max_size=12)


def batches(rows: list[tuple[int, ...]], capacity: int, **knobs: Any) -> World:
    """Batches over paged memory with blocks of one token, or what the knobs make of them."""
    policy = Hybrid(**{"granularity": "batch", "block_size": 1, "enable_prefix_caching": False, **knobs})
    return play_both(rows, policy, capacity=capacity + 1, max_model_len=64)    # block 0 is vLLM's null block


def test_a_batch_over_blocks_gives_up_those_of_whoever_has_finished_and_keeps_its_slot() -> None:
    world = batches([*THREE, (0, 1, 1)], 100, max_num_seqs=3)
    assert world.log == [
        "0: 0+4 1+6 2+2 | wait 3 | emit 0 1 2",
        "10: 0+1 2+1 | held 1 | wait 3 | emit 0 2",
        "20: 0+1 | held 1 2 | wait 3 | emit 0 | leave 0 1 2",
        "30: 3+1 | emit 3 | leave 3",
    ]
    assert world.record.used.tolist() == [12, 5 + 3, 6, 1]
    assert world.left_at == {0: 30, 1: 30, 2: 30, 3: 40}, "answers return with their batch"


def test_a_batch_over_blocks_asks_only_for_what_it_does_not_find() -> None:
    """The second prompt finds the 16 tokens of the first; with them, its 8 own and a token each, 4 blocks of 8 do."""
    policy = Hybrid(granularity="batch", max_num_seqs=2, block_size=8)
    world = play([(0, 16, 1), (0, 24, 1)], policy, capacity=8 * 6, prefixes=[(("a", 16),), (("a", 16),)])
    assert [tick.admitted for tick in world.ticks] == [[0, 1]]


def test_a_request_preempted_from_a_batch_leads_the_next_one() -> None:
    world = batches([(0, 4, 4), (0, 4, 4), (0, 1, 1)], 9, max_num_seqs=2)
    assert world.log == [
        "0: 0+4 1+4 | wait 2 | emit 0 1",
        "10: 0+1 | wait 1 2 | preempt 1 | emit 0",                      # 8 blocks taken, 1 free, 2 asked for
        "20: 0+1 | wait 1 2 | emit 0",
        "30: 0+1 | wait 1 2 | emit 0 | leave 0",
        "40: 1+5 2+1 | emit 1 2",                                       # what it had, and the token that it emitted
        "50: 1+1 | held 2 | emit 1",
        "60: 1+1 | held 2 | emit 1 | leave 1 2",
    ]
    assert world.record.steps["redone"].tolist() == [0, 0, 0, 0, 4, 0, 0]


def test_the_oldest_who_is_not_done_is_never_preempted_and_the_finished_are_no_victims() -> None:
    world = batches([(0, 3, 1), (0, 3, 6), (0, 3, 6), (0, 3, 1)], 12, max_num_seqs=4)
    victims = [who for tick in world.ticks for who in tick.preempted]
    assert victims == [2]


def test_a_padded_batch_over_blocks_is_as_wide_as_what_its_rows_began_with() -> None:
    """A request that comes back begins with its prompt and all it had emitted."""
    world = batches([(0, 4, 4), (0, 4, 4), (0, 1, 1)], 9, max_num_seqs=2, padded=True)
    assert [tick.pad_to for tick in world.ticks] == [4, 4, 5, 6, 5, 5, 6]
    assert world.log[5] == "50: 1+1 spent 1 | held 2 | emit 1 | pad 5"
    assert world.record.steps["padding"].tolist() == [0, 0, 0, 0, 4, 1, 1]


def steps(rows: list[tuple[int, ...]], capacity: int = 1000, **knobs: Any) -> World:
    return play_both(rows, Hybrid(**{"block_size": 1, **knobs}), capacity=capacity + 1, max_model_len=64)


def test_with_reservations_a_request_enters_at_any_step_once_all_of_it_finds_a_place() -> None:
    world = steps([*THREE, (0, 1, 1)], 16, reserve="declared", max_batch_size=3)
    assert world.log == [
        "0: 0+4 1+6 | wait 2 3 | emit 0 1 | leave 1",      # 7 + 7 of 17: 4 more do not fit
        "10: 0+1 2+2 3+1 | emit 0 2 3 | leave 3",
        "20: 0+1 2+1 | emit 0 2 | leave 0 2",
    ]
    assert not any(tick.preempted for tick in world.ticks)


def test_prompts_alone_run_whole_and_first_while_decodes_pause() -> None:
    world = steps([(0, 4, 3), (0, 6, 2), (15, 5, 2)], prefill="alone", max_num_batched_tokens=1024)
    assert world.log == [
        "0: 0+4 1+6 | emit 0 1",
        "10: 0+1 1+1 | emit 0 1 | leave 1",
        "20: 2+5 | emit 2",
        "30: 0+1 2+1 | emit 0 2 | leave 0 2",
    ]
    assert world.record.steps["paused"].tolist() == [1, 0, 1, 0]


def test_prompts_mixed_are_cut_to_the_budget() -> None:
    world = steps([(0, 4, 3), (0, 6, 2)], max_num_batched_tokens=8, max_num_seqs=4)
    assert world.log == ["0: 0+4 1+4 | emit 0", "10: 0+1 1+2 | emit 0 1", "20: 0+1 1+1 | emit 0 1 | leave 0 1"]


def test_a_padded_step_is_as_wide_as_its_longest_chunk_and_its_longest_context() -> None:
    rows, cost = [(0, 9, 3), (0, 2, 2), (0, 4, 1), (12, 3, 1)], Affine(0, 100, 1, 1)
    padded, ragged = (play(rows, Hybrid(padded=padded), cost=cost, max_model_len=64) for padded in (True, False))
    assert [line.partition(": ")[2] for line in ragged.log] == [
        "0+9 1+2 2+4 | emit 0 1 2 | leave 2",
        "0+1 1+1 3+3 | emit 0 1 3 | leave 1 3",
        "0+1 | emit 0 | leave 0"]
    assert ragged.record.ends.tolist() == [15, 15 + 200 + 3 + 9 + 2, 229 + 100 + 10]
    # three chunks of 9; then two contexts of 9 and a chunk of 3; then one context of 10
    assert padded.record.ends.tolist() == [27, 27 + 200 + 3 + 2 * 9, 248 + 100 + 10]
    assert padded.record.steps["padding"].tolist() == [7 + 5, 0, 0]


def test_a_late_decode_is_as_wide_as_its_context_and_the_end_of_a_prompt_is_not() -> None:
    queue = Queue(LockstepSet(4, lambda *_: None))
    for index, prompt in enumerate((4, 20, 51)):
        queue.wait(Request(index, 0, prompt, 9))
    decodes, late, ends = queue.admit(), queue.admit(), queue.admit()
    decodes._computed, decodes._generated = 4, 1
    queue.emitted(decodes, 5)
    late._computed, late._generated, ends._computed = 22, 3, 50
    step = pad(Step([(late, 1), (ends, 1)]), queue)
    assert (step.pad_to, step.pad_chunks_to) == (22, 1)


def test_the_knobs_are_those_of_the_two_where_nobody_sets_them() -> None:
    mine = Hybrid().settings()
    for policy, others in ((Vllm(), set()), (StaticBatching(), {"reserve"})):
        assert {knob for knob, value in policy.settings().items() if mine[knob] != value} == others


def test_padding_touches_costs_only() -> None:
    """Who is in which step does not change: with everybody there at once, no clock could change it."""
    rows = [(0, 1 + 7 * at % 23, 1 + 5 * at % 19) for at in range(30)]
    for knobs in ({}, {"prefill": "alone"}, {"reserve": "declared"}, {"granularity": "batch"}):
        worlds = [play(rows, Hybrid(padded=padded, max_batch_size=4, block_size=1, **knobs), capacity=121,
                       cost=Affine(), max_model_len=64) for padded in (False, True)]
        seen = [[(tick.computing, tick.preempted) for tick in world.ticks] for world in worlds]
        assert len(seen[0]) > 30 or knobs.get("granularity")
        assert seen[0] == seen[1]
        assert worlds[0].record.ends[-1] < worlds[1].record.ends[-1]


def test_a_batch_streams_nothing_and_a_step_does() -> None:
    assert not Hybrid(granularity="batch").streams
    assert Hybrid().streams
    assert (Hybrid(granularity="batch").unit, Hybrid().unit) == (StaticBatching.unit, Vllm.unit)


def test_the_cap_is_that_of_the_memory() -> None:
    policy = Hybrid(max_batch_size=3, max_num_seqs=7)
    assert policy.slots == 7
    assert replace(policy, reserve="declared").slots == 3
    assert replace(policy, granularity="batch").slots == 7


def test_a_batch_must_be_one_that_clients_can_fill() -> None:
    """Over blocks a batch is as large as max_num_seqs says, whatever a reservation would come to."""
    fifty = Deployment(max_concurrency=50)
    endless = Hybrid(granularity="batch", max_wait=inf)
    with pytest.raises(InputError, match=r"\Ahybrid: .*50 .* a batch of 64: .* lower max_num_seqs or max_wait"):
        replace(endless, max_num_seqs=64).resolve(fifty)
    assert replace(endless, max_num_seqs=8).resolve(replace(fifty, max_concurrency=10)).slots == 8
    assert Hybrid(reserve="declared", max_wait=inf).resolve(replace(fifty, max_concurrency=10)).slots == 32
    with pytest.raises(InputError, match=r"\Ahybrid: .*50 .* a batch of 64: .* lower max_batch_size or max_wait"):
        Hybrid(granularity="batch", reserve="declared", max_batch_size=64, max_wait=inf).resolve(fifty)


def test_prompts_alone_know_no_token_budget() -> None:
    policy = Hybrid(reserve="declared", prefill="alone", max_batch_size=4, max_num_seqs=2, max_num_batched_tokens=2)
    world = play_both([(0, 3, 2)] * 4, policy)
    assert world.log == ["0: 0+3 1+3 2+3 3+3 | emit 0 1 2 3", "10: 0+1 1+1 2+1 3+1 | emit 0 1 2 3 | leave 0 1 2 3"]


@pytest.mark.parametrize(("knobs", "told"), [
    ({"granularity": "row"}, "hybrid: granularity must be one of batch, step, not 'row'"),
    ({"reserve": "all"}, "hybrid: reserve must be one of model, declared, exact, pow2, paged, not 'all'"),
    ({"prefill": "first"}, "hybrid: prefill must be one of alone, mixed, not 'first'"),
    ({"sleep_per_batch": -1}, "hybrid: sleep_per_batch must be a number of at least 0, not -1"),
    ({"watermark": 1}, "hybrid: watermark must be at least 0 and below 1, not 1"),
])
def test_what_it_refuses(knobs: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        Hybrid(**knobs)
    assert str(caught.value) == told


def test_a_budget_too_small_for_the_cap_is_told_by_the_names_of_its_own_knobs() -> None:
    for reserve, cap in (("paged", "max_num_seqs"), ("declared", "max_batch_size")):
        with pytest.raises(InputError, match=rf"\Ahybrid: max_num_batched_tokens \(1\) must be at least {cap} \(64\)"):
            Hybrid(reserve=reserve, max_num_batched_tokens=1, **{cap: 64}).resolve(Deployment())
