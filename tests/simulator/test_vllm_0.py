"""vLLM before V1: prompts first and alone, a watermark, and both ways to preempt. Whole logs of tiny worlds."""

from __future__ import annotations

import pytest
from worlds import play_both

import simulator as sim
from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.policies import Vllm0


def v0(**knobs):
    return Vllm0(**{"max_num_seqs": 8, "max_num_batched_tokens": 64, "block_size": 4, "watermark": 0.0} | knobs)


def test_a_prompt_that_arrives_stops_the_decodes_for_a_step() -> None:
    world = play_both([(0, 4, 4), (15, 4, 2)], v0())
    assert world.log == [
        "0: 0+4 | emit 0",
        "10: 0+1 | emit 0",
        "20: 1+4 | emit 1",
        "30: 0+1 1+1 | emit 0 1 | leave 1",
        "40: 0+1 | emit 0 | leave 0"]
    assert world.token_times(0) == [10, 20, 40, 50], "the prefill of another is a long gap"
    assert world.record.steps["paused"].tolist() == [1, 0, 1, 0, 0]


def test_recompute_starts_again_from_the_prompt_and_what_was_generated() -> None:
    world = play_both([(0, 4, 4), (0, 4, 4)], v0(), capacity=4 * 3)
    assert world.log == [
        "0: 0+4 1+4 | emit 0 1",
        "10: 0+1 | wait 1 | preempt 1 | emit 0",
        "20: 0+1 | wait 1 | emit 0",
        "30: 0+1 | wait 1 | emit 0 | leave 0",
        "40: 1+5 | emit 1",
        "50: 1+1 | emit 1",
        "60: 1+1 | emit 1 | leave 1"]
    assert int(world.record.steps["redone"].sum()) == 4


def test_swapped_kv_comes_back_and_nothing_is_computed_twice() -> None:
    policy = v0(preemption_mode="swap", kv_bytes_per_token=1000, swap_bandwidth=1e12)    # 1 ns a token
    world = play_both([(0, 4, 4), (0, 4, 4)], policy, capacity=4 * 3)
    assert world.log == [
        "0: 0+4 1+4 | emit 0 1",
        "10: 0+1 | preempt 1 | emit 0",
        "24: 0+1 | emit 0",
        "34: 0+1 | emit 0 | leave 0",
        "44: 1+1 | emit 1",
        "58: 1+1 | emit 1",
        "68: 1+1 | emit 1 | leave 1"]
    assert int(world.record.steps["redone"].sum()) == 0


def test_the_watermark_is_left_free_by_every_admission() -> None:
    world = play_both([(0, 8, 1), (0, 8, 1)], v0(watermark=0.2), capacity=4 * 5)    # 5 blocks, 1 of them spare
    assert world.log[0] == "0: 0+8 1+8 | emit 0 1 | leave 0 1"
    world = play_both([(0, 8, 1), (0, 12, 1)], v0(watermark=0.2), capacity=4 * 5)
    assert world.log == ["0: 0+8 | wait 1 | emit 0 | leave 0", "10: 1+12 | emit 1 | leave 1"]


def test_a_prompt_is_never_cut() -> None:
    world = play_both([(0, 40, 1), (0, 40, 1)], v0())
    assert [tick.computing for tick in world.ticks] == [[(0, 40, 0)], [(1, 40, 0)]]


def test_the_knobs_where_nobody_sets_them() -> None:
    assert Vllm0().settings() == {
        "max_num_seqs": 256, "max_num_batched_tokens": None, "block_size": 16, "watermark": 0.01,
        "preemption_mode": "recompute", "swap_bandwidth": 25e9, "kv_bytes_per_token": None}


def test_what_could_never_be_recomputed_is_refused() -> None:
    assert v0().resolve(Deployment(longest_exact=65)).max_num_batched_tokens == 64, "its last token is never computed"
    with pytest.raises(InputError, match="for it is never chunked: raise it"):
        v0().resolve(Deployment(longest_exact=66))


def test_prompts_fill_the_budget_to_the_last_token() -> None:
    world = play_both([(0, 40, 1), (0, 24, 1), (0, 1, 1)], v0())
    assert [tick.computing for tick in world.ticks] == [[(0, 40, 0), (1, 24, 0)], [(2, 1, 0)]]


def test_what_a_deployment_settles() -> None:
    assert Vllm0().resolve(Deployment(max_model_len=2047)).max_num_batched_tokens == 2048
    assert Vllm0(swap_bandwidth=1).resolve(Deployment(max_model_len=2049)).max_num_batched_tokens == 2049
    memory = v0(watermark=0.1).memory(Deployment(kv_capacity_tokens=4 * 30), None)    # type: ignore[arg-type]
    assert (memory.capacity, memory.longest_run()) == (30, 27), "nobody may need the blocks that admissions leave free"


@pytest.mark.parametrize("knobs", [{"preemption_mode": "forget"}, {"watermark": 1}, {"swap_bandwidth": 0},
                                   {"block_size": 0}])
def test_wrong_knobs(knobs: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"vllm-0: {next(iter(knobs))} must be"):
        Vllm0(**knobs)    # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_tight_memory_fast_and_exact_agree_and_all_is_served(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")

    def answer(exact: bool) -> str:
        return sim.simulate("azure-conv-2023", "vllm-0", knobs={"preemption_mode": mode}, num_prompts=400,
                            load="saturated", kv_capacity_tokens=40_000, max_model_len=16_384,
                            exact=exact).to_json(detailed=True)

    assert answer(False) == answer(True)
