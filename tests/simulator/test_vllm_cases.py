"""Public questions about vLLM's scheduler: small inputs with right values, and shapes that must come out."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import play, trace_of

import simulator as sim
from cost_models import Constant
from simulator.policies import Vllm
from traces import Trace


def run(rows, *, policy: Vllm | None = None, **options):
    return sim.simulate(trace_of(rows), policy or "vllm", **{"max_tokens": "exact"} | options)


def test_a_long_prompt_alone_takes_as_many_steps_as_the_budget_says() -> None:
    """130,000 tokens at 512 a step; beside 64 decodes 448 are left a step."""
    alone = play([(0, 130_000, 1)], Vllm(max_num_seqs=128, max_num_batched_tokens=512), max_model_len=200_000)
    assert len(alone.record.ends) == 254
    rows = [(0, 1, 600)] * 64 + [(5, 130_000, 1)]
    beside = play(rows, Vllm(max_num_seqs=128, max_num_batched_tokens=512), max_model_len=200_000)
    (first, _), = [(last, first) for request, first, last in beside.record.spans.tolist() if request == 64]
    begun = np.searchsorted(beside.record.steps["start"], beside.stays(64)[0][0])
    assert first - begun + 1 == 291 == -(-130_000 // 448)


def test_one_that_needs_more_than_the_pool_is_rejected_and_the_others_are_served() -> None:
    """50 blocks of 16; the fifth request would need 57."""
    rows = [(0, 100, 50)] * 4 + [(0, 800, 100)] + [(0, 100, 50)] * 4
    summary = run(rows, kv_capacity_tokens=51 * 16, cost_model=Constant(1000)).summary()
    assert (summary["completed"], summary["rejected"]) == (8, 1)
    assert summary["rejected_reasons"] == "never fits the KV pool: 1"


def test_a_heavy_head_stops_the_light_ones_behind_it() -> None:
    """First come, first served: 50 blocks are free, the head needs 100, two of 10 would fit."""
    rows = [(0, 16 * 100, 40), (10, 16 * 100 - 1, 2), (11, 160, 2), (12, 160, 2)]
    world = play(rows, Vllm(max_num_seqs=8, max_num_batched_tokens=10_000, enable_prefix_caching=False),
                 capacity=16 * 154)
    left = world.stays(0)[0][1]
    assert all(world.stays(light)[0][0] >= left for light in (1, 2, 3))


def test_the_whole_prompt_gate_keeps_the_fifth_long_prompt_out() -> None:
    """A pool of 450k tokens, five prompts of 100k in chunks of 8k: without the gate they evict one another."""
    rows = [(at, 100_000, 500) for at in range(5)]
    def preemptions(gate: bool) -> int:
        policy = Vllm(max_num_seqs=8, max_num_batched_tokens=8192, scheduler_reserve_full_isl=gate,
                      enable_prefix_caching=False)
        return run(rows, policy=policy, kv_capacity_tokens=450_000).summary()["preemptions"]

    assert preemptions(gate=True) == 0
    assert preemptions(gate=False) > 0


def test_a_pool_a_little_smaller_falls_off_a_cliff() -> None:
    """200 requests of 512 and 256 tokens: flat above the peak demand, a sharp knee below it."""
    rows = [(at * 50_000_000, 512, 256) for at in range(200)]
    peak = int(run(rows).record.used.max())
    summaries = [run(rows, kv_capacity_tokens=16 * (blocks + 1)).summary() for blocks in
                 (peak * 2, peak, int(peak * 0.955), int(peak * 0.6))]
    ttft = [summary["p99_ttft_ms"] for summary in summaries]
    assert [summary["preemptions"] for summary in summaries[:2]] == [0, 0]
    assert ttft[0] == ttft[1] < ttft[2] < ttft[3]
    assert ttft[3] > 4.7 * ttft[1]


def test_a_larger_budget_costs_inter_token_latency_and_gains_time_to_first_token() -> None:
    rng = np.random.default_rng(0)
    rows = [(int(at), 4000 if index % 4 == 0 else 100, 100) for index, at in
            enumerate(np.cumsum(rng.exponential(60e6, 400)))]
    found = [run(rows, knobs={"max_num_batched_tokens": budget, "max_num_seqs": 128}).summary()
             for budget in (256, 1024, 4096)]
    assert [one["p99_itl_ms"] for one in found] == sorted(one["p99_itl_ms"] for one in found)
    assert found[0]["p99_itl_ms"] < found[2]["p99_itl_ms"]
    assert found[0]["median_ttft_ms"] > found[2]["median_ttft_ms"]


def test_chunking_does_not_raise_offline_throughput() -> None:
    """50 prompts of 40,000 and 256 tokens, all at once: the makespan is about the same, the gaps are not."""
    rows = [(0, 40_000, 256)] * 50
    chunked = run(rows, knobs={"max_num_batched_tokens": 4096}).summary()
    whole = run(rows, knobs={"max_num_batched_tokens": 131_072, "enable_chunked_prefill": False}).summary()
    assert chunked["duration"] == pytest.approx(whole["duration"], rel=0.25)
    assert chunked["p99_itl_ms"] < whole["p99_itl_ms"]


def test_the_youngest_of_three_is_the_victim_and_nothing_is_kept_free() -> None:
    rows = [(0, 15, 20), (1, 15, 20), (2, 15, 20)]
    world = play(rows, Vllm(max_num_seqs=8, max_num_batched_tokens=99, enable_prefix_caching=False), capacity=16 * 6)
    victims = [tick.preempted for tick in world.ticks if tick.preempted]
    assert victims[0] == [2]
    assert world.record.used.max() == 5, "without a watermark the whole pool is used"


def test_prefix_ids_of_a_trace_are_hit_at_any_block_size() -> None:
    """Two prompts share two of three ids of 512 tokens; without ids nothing is shared."""
    columns = [np.array(column, np.int64) for column in ([0, 10 ** 9], [1536, 1536], [1, 1])]
    ids = ((1, 2, 3), (1, 2, 4))
    for block in (16, 48, 512):
        trace = Trace("ids", *columns, hash_ids=ids, hash_block=512)
        computed = sim.simulate(trace, "vllm", knobs={"block_size": block}).record.steps["prompt"].tolist()
        assert computed == [1536, 1536 - 1024 // block * block]
    assert sim.simulate(Trace("none", *columns), "vllm").record.steps["prompt"].tolist() == [1536, 1536]
