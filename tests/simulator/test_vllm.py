"""The vllm policy on worlds small enough to know every step of. A step lasts 10 ns, a block holds 4 tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from worlds import Affine, play, play_both

from simulator.deployment import Deployment
from simulator.errors import InputError
from simulator.memory import UNLIMITED, Memory, Paged
from simulator.policies import Vllm
from simulator.step import Queue, Step


def vllm(**knobs: object) -> Vllm:
    return Vllm(**({"block_size": 4, "max_num_seqs": 8, "max_num_batched_tokens": 64} | knobs))    # type: ignore[arg-type]


def test_a_prefill_step_emits_the_first_token_and_a_finish_makes_room_at_once() -> None:
    world = play_both([(0, 5, 3), (0, 3, 1), (0, 2, 2)], vllm(max_num_seqs=2))
    assert world.log == [
        "0: 0+5 1+3 | wait 2 | emit 0 1 | leave 1",
        "10: 0+1 2+2 | emit 0 2",
        "20: 0+1 2+1 | emit 0 2 | leave 0 2",
    ]
    assert world.stays(2) == [(10, 30)]
    assert world.record.steps["blocked"].tolist() == [1, 0, 0], "the cap on sequences keeps the third one out"


def test_a_prompt_is_computed_in_chunks_within_the_budget() -> None:
    world = play_both([(0, 10, 2), (0, 3, 2)], vllm(max_num_batched_tokens=8, max_num_seqs=4), cost=Affine(0, 0, 1, 1))
    assert world.log == [
        "0: 0+8 | wait 1",
        "8: 0+2 1+3 | emit 0 1",
        "13: 0+1 1+1 | emit 0 1 | leave 0 1",
    ]
    assert world.record.ends.tolist() == [8, 8 + 5, 13 + 10 + 3]
    assert world.record.steps["blocked"].tolist() == [2, 0, 0], "the budget keeps the second one out"


def test_decodes_come_before_new_prompts() -> None:
    world = play_both([(0, 2, 4), (5, 9, 1)], vllm(max_num_batched_tokens=8, max_num_seqs=8))
    assert world.log == [
        "0: 0+2 | emit 0",
        "10: 0+1 1+7 | emit 0",
        "20: 0+1 1+2 | emit 0 1 | leave 1",
        "30: 0+1 | emit 0 | leave 0",
    ]


def test_without_chunking_a_prompt_waits_for_a_whole_budget() -> None:
    world = play_both([(0, 6, 3), (0, 6, 1), (0, 1, 1)], vllm(max_num_batched_tokens=8, enable_chunked_prefill=False),
                      max_model_len=8)
    assert world.log == [
        "0: 0+6 | wait 1 2 | emit 0",
        "10: 0+1 1+6 2+1 | emit 0 1 2 | leave 1 2",
        "20: 0+1 | emit 0 | leave 0",
    ], "the head does not fit, and nobody behind it is looked at"


def test_a_threshold_bounds_chunks_unless_the_request_is_alone() -> None:
    world = play_both([(0, 9, 2), (15, 9, 1), (15, 2, 1)], vllm(long_prefill_token_threshold=4))
    assert world.log == [
        "0: 0+9 | emit 0",
        "10: 0+1 | emit 0 | leave 0",
        "20: 1+4 2+2 | emit 2 | leave 2",
        "30: 1+5 | emit 1 | leave 1",
    ]


def test_the_youngest_is_preempted_and_computes_everything_again() -> None:
    """Without prefix caching: it finds none of its own blocks again."""
    world = play_both([(0, 4, 6), (0, 4, 6)], vllm(enable_prefix_caching=False), capacity=4 * (4 + 1))
    assert world.log == [
        "0: 0+4 1+4 | emit 0 1",        # a block each
        "10: 0+1 1+1 | emit 0 1",       # two blocks each: all four
        "20: 0+1 1+1 | emit 0 1",
        "30: 0+1 1+1 | emit 0 1",
        "40: 0+1 1+1 | emit 0 1",       # 8 tokens each: the blocks are full
        "50: 0+1 | wait 1 | preempt 1 | emit 0 | leave 0",
        "60: 1+9 | emit 1 | leave 1",   # prompt and the five tokens it had emitted
    ]
    assert world.record.steps["used"].tolist() == [2, 4, 4, 4, 4, 3, 3]
    assert world.record.steps["redone"].tolist() == [0] * 6 + [8]
    assert world.stays(1) == [(0, 50), (60, 70)]
    assert world.token_times(1) == [10, 20, 30, 40, 50, 70], "what was emitted stays emitted"
    assert [tuple(span) for span in world.record.spans.tolist()] == [(1, 0, 4), (0, 0, 5), (1, 6, 6)]


def test_a_victim_goes_to_the_front_and_nobody_is_admitted_in_that_step() -> None:
    world = play_both([(0, 4, 4), (0, 4, 4), (5, 1, 1)], vllm(max_num_seqs=2), capacity=4 * (3 + 1))
    # Two blocks at first; both need a second one, and only one is free.
    assert world.log[:3] == [
        "0: 0+4 1+4 | emit 0 1",
        "10: 0+1 | wait 1 2 | preempt 1 | emit 0",     # one block is free, and 2 would fit it
        "20: 0+1 | wait 1 2 | emit 0",                 # 1 needs two blocks and stops the queue
    ]
    assert world.record.steps["blocked"].tolist()[1:3] == [0, 3]


def test_the_whole_prompt_must_find_room_before_the_first_chunk_is_computed() -> None:
    rows = [(0, 4, 8), (0, 16, 1)]
    world = play_both(rows, vllm(max_num_batched_tokens=8), capacity=4 * (4 + 1))
    assert [tick.admitted for tick in world.ticks if tick.admitted] == [[0], [1]]
    assert world.ticks[1].waiting == [1]
    eager = play_both(rows, vllm(max_num_batched_tokens=8, scheduler_reserve_full_isl=False), capacity=4 * (4 + 1))
    assert eager.log[0] == "0: 0+4 1+4 | emit 0"
    assert any(1 in tick.preempted for tick in eager.ticks), "it is let in too early, and thrown out again"


def test_a_lone_request_that_fills_the_pool_finishes() -> None:
    """Its last token never gets KV: 4 + 13 - 1 = 16 tokens are four blocks, which is all there is."""
    world = play_both([(0, 4, 13)], vllm(), capacity=4 * (4 + 1))
    assert world.record.used.max() == 4
    assert world.token_times(0)[-1] == 130


@pytest.mark.parametrize(("watermark", "together"), [(0.0, True), (0.19, True), (0.21, False), (0.5, False)])
def test_a_watermark_keeps_blocks_free_while_others_run(watermark: float, together: bool) -> None:
    """Five blocks with the null block: 0.19 of them is none, 0.21 is one. Each request takes two of the four usable."""
    world = play_both([(0, 8, 1), (0, 8, 1)], vllm(watermark=watermark), capacity=4 * 5)
    assert (world.ticks[0].admitted == [0, 1]) is together


def test_the_watermark_does_not_keep_out_who_would_run_alone() -> None:
    world = play_both([(0, 16, 1), (0, 16, 1)], vllm(watermark=0.5), capacity=4 * 5)
    assert world.log == ["0: 0+16 | wait 1 | emit 0 | leave 0", "10: 1+16 | emit 1 | leave 1"]


def test_one_output_token_ends_in_the_prefill_step() -> None:
    world = play_both([(0, 5, 1)], vllm())
    assert world.log == ["0: 0+5 | emit 0 | leave 0"]
    assert world.record.spans.tolist() == [[0, 0, 0]]


def test_those_who_finish_in_one_step_leave_in_running_order() -> None:
    """Request 0 ends with its last chunk, request 1 as a decode; the older one goes first."""
    world = play_both([(0, 9, 1), (0, 2, 3)], vllm(long_prefill_token_threshold=4))
    assert world.log == ["0: 0+4 1+2 | emit 1", "10: 0+4 1+1 | emit 1", "20: 0+1 1+1 | emit 0 1 | leave 0 1"]


@dataclass
class Falling(Vllm):
    """A budget that falls to two tokens at 20 ns and comes back at 40 ns, so that running decodes lose their token."""

    steady: ClassVar[bool] = False

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | None:
        self.max_num_batched_tokens = 2 if 20 <= now < 40 else 64
        return super().plan(queue, memory, now)


def test_the_budget_is_cut_from_the_youngest_backwards() -> None:
    world = play_both([(0, 2, 6), (0, 3, 6), (0, 4, 4)], Falling(block_size=4, max_num_seqs=8))
    assert world.log == [
        "0: 0+2 1+3 2+4 | emit 0 1 2",
        "10: 0+1 1+1 2+1 | emit 0 1 2",
        "20: 0+1 1+1 | emit 0 1",
        "30: 0+1 1+1 | emit 0 1",
        "40: 0+1 1+1 2+1 | emit 0 1 2",
        "50: 0+1 1+1 2+1 | emit 0 1 2 | leave 0 1 2",
    ]
    spans = [tuple(span) for span in world.record.spans.tolist()]
    assert sorted(spans) == [(0, 0, 5), (1, 0, 5), (2, 0, 1), (2, 4, 5)]


def test_the_queue_is_looked_at_in_order_and_stops_at_the_first_who_does_not_fit() -> None:
    world = play_both([(0, 9, 3), (0, 12, 1), (0, 1, 1)], vllm(), capacity=4 * (5 + 1))
    assert world.log[0] == "0: 0+9 | wait 1 2 | emit 0"
    assert world.record.steps["blocked"].tolist() == [3, 3, 3, 0]


def test_overload_with_a_tight_pool_ends_and_every_step_makes_progress() -> None:
    """Requests of 24 blocks against 125 blocks, at several times what can be served: work per token stays bounded."""
    def plans_per_token(load: int) -> float:
        rows = [(at * 2000 // load, 200, 185) for at in range(60)]
        world = play_both(rows, Vllm(max_num_seqs=256, max_num_batched_tokens=2048), capacity=16 * 126)
        assert world.record.used.max() <= 125
        return world.plans / (60 * 185)

    at_load = [plans_per_token(load) for load in (2, 5, 10)]
    assert at_load[0] < 0.6, at_load
    assert at_load[2] < at_load[1] < at_load[0], "more load is fuller steps, not more of them"


def test_what_can_never_fit_stops_the_replica_and_not_the_program() -> None:
    """Past the gate: a prompt larger than the pool waits for ever; an output that outgrows it is first thrown out."""
    world = play([(0, 40, 1), (0, 1, 1)], vllm(), capacity=4 * 6, fails=True)
    assert (world.error, len(world.replica.queue.waiting)) == (None, 2)
    world = play([(0, 4, 40)], vllm(), capacity=4 * 6, fails=True)
    assert (world.error, len(world.replica.queue.waiting)) == (None, 1)
    assert world.log[-1].endswith(": wait 0 | preempt 0")


DEVICES = {"h100-80": 85.0e9, "h200": 150.7e9, "b200": 191e9, "a100-80": 85.0e9, "l40s": 48e9}


@pytest.mark.parametrize(("gpu", "seqs", "tokens"), [
    ("h100-80", 1024, 8192), ("h200", 1024, 8192), ("b200", 1024, 16384), ("a100-80", 256, 2048), ("l40s", 256, 2048)])
def test_defaults_by_class_of_gpu(gpu: str, seqs: int, tokens: int) -> None:
    policy = Vllm().resolve(Deployment(gpu=gpu, gpu_bytes=DEVICES[gpu]))
    assert (policy.max_num_seqs, policy.max_num_batched_tokens) == (seqs, tokens)
    assert policy.slots == seqs


def test_large_devices_begin_at_70_and_the_largest_at_160_gib() -> None:
    for gib, tokens in ((70, 8192), (160, 16384)):
        for gpu_bytes, usual in ((gib << 30, tokens), ((gib << 30) - 1, tokens // (4 if gib == 70 else 2))):
            assert Vllm().resolve(Deployment(gpu_bytes=gpu_bytes)).max_num_batched_tokens == usual


def test_defaults_are_clipped_as_the_engine_clips_them() -> None:
    short = Deployment(max_model_len=4)
    assert Vllm(max_num_seqs=10).resolve(short).max_num_batched_tokens == 40, "at most every sequence at full length"
    assert Vllm(max_num_batched_tokens=100).resolve(Deployment()).max_num_seqs == 100, "at most a token a sequence"
    whole = Deployment(max_model_len=20000)
    assert Vllm(enable_chunked_prefill=False).resolve(whole).max_num_batched_tokens == 20000
    assert Vllm(max_model_len=77).resolve(whole).max_model_len == 77
    assert Vllm().resolve(whole).max_model_len == 20000


def test_block_zero_is_not_usable() -> None:
    policy = Vllm().resolve(Deployment(kv_capacity_tokens=16 * 50 + 15))
    memory = policy.memory(Deployment(kv_capacity_tokens=16 * 50 + 15), None)    # type: ignore[arg-type]
    assert isinstance(memory, Paged)
    assert (memory.capacity, memory.block_size) == (49, 16)
    assert policy.memory(Deployment(kv_capacity_tokens=3), None).capacity == 0    # type: ignore[arg-type]


@pytest.mark.parametrize("knobs", [
    {"max_num_seqs": 0}, {"max_num_batched_tokens": -1}, {"block_size": 0}, {"block_size": 16.0}, {"max_model_len": 0},
    {"enable_chunked_prefill": "no"}, {"scheduler_reserve_full_isl": 1}, {"long_prefill_token_threshold": -1},
    {"long_prefill_token_threshold": 1.5}, {"watermark": 1.0}, {"watermark": -0.1}, {"watermark": float("nan")},
    {"watermark": "low"}, {"scheduling_policy": "lifo"}, {"block_size": (1 << 20) + 1}])
def test_a_wrong_knob_is_one_line(knobs: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"\Avllm: " + next(iter(knobs))) as error:
        Vllm(**knobs)    # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    assert Vllm(block_size=1 << 20).block_size == 1 << 20


def test_a_budget_that_is_too_small_is_refused_as_the_engine_refuses_it() -> None:
    with pytest.raises(InputError, match=r"max_num_batched_tokens \(8\) must be at least max_num_seqs \(9\)"):
        Vllm(max_num_seqs=9, max_num_batched_tokens=8).resolve(Deployment())
    whole = Vllm(max_num_seqs=9, max_num_batched_tokens=99, enable_chunked_prefill=False)
    with pytest.raises(InputError, match=r"at least max_model_len \(100\) when enable_chunked_prefill is false"):
        whole.resolve(Deployment(max_model_len=100))


def test_no_cap_at_all_is_allowed() -> None:
    world = play_both([(0, 3, 2)] * 40, Vllm(max_num_seqs=UNLIMITED, max_num_batched_tokens=UNLIMITED))
    assert len(world.record.ends) == 2
    assert world.record.steps["running"].tolist() == [40, 40]
