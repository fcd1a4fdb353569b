"""The three ledgers: small worlds added up by hand, and a plain walk over the log of drawn ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invariants import is_late
from worlds import Affine, World, deployment_of, play

from simulator.areas import times
from simulator.ledger import KV_PARTS, SLOT_PARTS, TOKEN_PARTS, Ledger, kv_ledger, slot_ledger, token_ledger
from simulator.memory import UNLIMITED, Contiguous, Memory, Paged
from simulator.policies import Policy, Sglang, StaticBatching, Tgi, Vllm, Vllm0
from simulator.record import Record
from simulator.recorder import PLAN_COLUMNS, Recorder
from simulator.result import Result
from simulator.slots import Slots, count_slots, gaps_between
from simulator.step import Queue, Step, Wait
from simulator.waste import effective_batch, waste


def result_of(world: World, capacity: int = UNLIMITED) -> Result:
    """A Result of a world wired by hand: only the parts that the ledgers ask for."""
    rows = np.array(world.rows, np.int64)
    prompt, output, limits = rows[:, 1], rows[:, 2], rows[:, 3]
    footprint = world.memory.footprint(prompt, output, limits) * world.memory.block_size
    setup = SimpleNamespace(policy=world.policy, prompt=prompt, output=output, max_tokens=limits, footprint=footprint,
                            request_overhead=0,
                            verdict=np.zeros(len(rows), np.int64), deployment=deployment_of(world.rows, capacity, 4096))
    return Result(setup, world.record)


def run(rows, policy: Policy, capacity: int = UNLIMITED, **options) -> Result:
    return result_of(play(rows, policy, capacity=capacity, **options), capacity)


def lasts(record: Record) -> int:
    return record.bounds[1] - record.bounds[0]


def nonzero(ledger: Ledger) -> dict[str, int | None]:
    return {name: amount for name, amount in ledger.parts.items() if amount != 0}


def crowded() -> Vllm:
    return Vllm(max_num_seqs=4, max_num_batched_tokens=8, block_size=4)


def drawn_rows(most: int = 12):
    return st.lists(st.tuples(st.integers(0, 400), st.integers(1, most), st.integers(1, most)), min_size=1, max_size=10)


# --- slots ----------------------------------------------------------------------------------------------------------

def test_static_holds_the_finished_and_leaves_the_last_batch_half_empty():
    # 0 and 1 fill a batch of three steps, in which 0 has nothing to do after the first; 2 runs alone for two.
    result = run([(0, 4, 1), (0, 4, 3), (0, 4, 2)], StaticBatching(max_batch_size=2))
    assert result.slot_ledger.total == 2 * 50
    assert nonzero(result.slot_ledger) == {"prefill": 30, "decode": 30, "held": 20, "no_queue": 20}
    assert result.slot_ledger.share("decode", "prefill") == 0.6
    assert result.slot_ledger.of == "2 slots: the policy's cap"
    assert nonzero(result.token_ledger) == {"useful": 15}


def test_each_ledger_says_what_it_counts():
    for capacity in (UNLIMITED, 64):
        result = run([(0, 4, 2)], Vllm(max_num_seqs=2, max_num_batched_tokens=64, block_size=4), capacity=capacity)
        ledgers = (result.slot_ledger, result.token_ledger, result.kv_ledger)
        assert [ledger.unit for ledger in ledgers] == ["slot-ns", "token positions", "token-ns"]


def test_continuous_batching_refills_the_slot_at_once():
    result = run([(0, 4, 1), (0, 4, 3), (0, 4, 2)], Vllm(max_num_seqs=2, max_num_batched_tokens=64))
    assert nonzero(result.slot_ledger) == {"prefill": 30, "decode": 30}
    assert result.slot_ledger.share("decode", "prefill") == 1
    assert effective_batch(result.record) == 2


def test_a_closed_batch_keeps_others_out_from_the_step_after_they_came():
    result = run([(0, 4, 3), (5, 4, 1)], StaticBatching(max_batch_size=2))
    assert nonzero(result.slot_ledger) == {"prefill": 20, "decode": 20, "no_queue": 10 + 10, "blocked_batch": 20}


def test_a_forming_batch_and_an_idle_replica_are_told_apart():
    # Request 0 waits 20 ns for company; nobody is there from 30 on; requests 1 and 2 fill a batch at 100.
    result = run([(0, 4, 1), (90, 4, 1), (100, 4, 1)], StaticBatching(max_batch_size=2, max_wait=20e-6))
    assert nonzero(result.slot_ledger) == {"forming": 2 * 20 + 2 * 10, "prefill": 10 + 20, "no_queue": 10,
                                           "idle": 2 * 60}
    assert result.slot_ledger.total == 2 * 110


def test_the_clock_of_the_ledger_starts_with_the_first_request_sent():
    result = run([(1000, 4, 2)], Vllm(max_num_seqs=1, max_num_batched_tokens=64))
    assert result.slot_ledger.total == 20


@pytest.mark.parametrize(("capacity", "policy", "part", "amount"), [
    (UNLIMITED, Vllm(max_num_seqs=2, max_num_batched_tokens=4), "blocked_budget", 10),    # one prompt takes it all
    (16, Vllm(max_num_seqs=2, max_num_batched_tokens=64, block_size=4), "blocked_memory", 20),    # three blocks
    (UNLIMITED, Vllm(max_num_seqs=1, max_num_batched_tokens=64), "blocked_cap", 20),
])
def test_empty_slots_name_what_keeps_the_queue_out(capacity, policy, part, amount):
    result = run([(0, 4, 2), (0, 12, 1)], policy, capacity)
    assert slot_ledger(result.record, result.gaps, Slots(2, "two"), lasts(result.record)).parts[part] == amount


def test_a_trimmed_row_is_stalled():
    # The budget takes a chunk's tokens first and a decode's next: the youngest holds its slot and computes nothing.
    # When it computes its next token it is not in the decoding set, but decodes all the same.
    result = run([(0, 1, 3), (0, 1, 3), (0, 1, 3)], Trimming(max_num_seqs=3, max_num_batched_tokens=3))
    assert result.slot_ledger.parts["stalled"] == 10
    assert nonzero(result.slot_ledger) == {"prefill": 10 * 3, "decode": 10 * 3 * 2, "stalled": 10, "no_queue": 10 * 2}


class Trimming(Vllm):
    """Its second plan takes one token away."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step:
        step = super().plan(queue, memory, now)
        if now == 10:
            queue.trim(step, 1)
        return step


def test_lost_work_is_told_from_new_work():
    # Request 1 computes one token at 0 and loses it; at 60 its prompt of eight holds one token done before.
    policy = Vllm(max_num_seqs=2, max_num_batched_tokens=9, block_size=4, scheduler_reserve_full_isl=False)
    result = run([(0, 8, 6), (0, 8, 1)], policy, 20)
    assert nonzero(slot_ledger(result.record, result.gaps, Slots(2, "two"), lasts(result.record))) == {
        "prefill": 20, "decode": 50, "recompute": 10, "blocked_step": 10, "blocked_memory": 40, "no_queue": 10}
    assert effective_batch(result.record) == 70 / 70    # two rows at first, one in five steps, none in the last
    assert nonzero(result.token_ledger) == {"useful": 13 + 8, "recompute": 1}


def test_decodes_that_wait_for_prompts_are_told_from_other_stalls():
    # Prompts run alone: while request 1's is computed from 10 to 20, request 0 holds its slot and computes nothing.
    result = run([(0, 4, 2), (5, 4, 1)], Vllm0(max_num_seqs=2), 64)
    assert nonzero(slot_ledger(result.record, result.gaps, Slots(2, "two"), lasts(result.record))) == {
        "prefill": 20, "behind_prefill": 10, "decode": 10, "no_queue": 20}


class Napping(Policy):
    """One at a time, with a nap of 7 ns before each decode."""

    def plan(self, queue: Queue, memory: Memory, now: int) -> Step | Wait:
        if not queue.running:
            head = queue.waiting[0]
            assert memory.grow(head, head.prompt)
            return Step(chunks=[(queue.admit(), head.prompt)])
        if now % 10 == 0:
            return Wait(now + 7)
        assert memory.take(queue.decoding, [])
        return Step()


def test_who_keeps_a_slot_between_steps_is_stalled_and_keeps_its_memory():
    result = run([(0, 4, 2), (3, 16, 1)], Napping(), 64, exact=True, verify=False)    # it idles while somebody waits
    # Step 0-10, nap to 17, step 17-27, then the other one from 27 to 37.
    assert nonzero(slot_ledger(result.record, result.gaps, Slots(2, "two"), lasts(result.record))) == {
        "prefill": 20, "decode": 10, "stalled": 7, "no_queue": 10 + 10, "blocked_step": 10, "forming": 7}
    assert nonzero(result.kv_ledger) == {"holding": 4 * 17 + 5 * 10 + 16 * 10, "internal": 12 * 17 + 11 * 10,
                                         "free": 48 * 37}


@given(drawn_rows(), st.booleans())
def test_slots_equal_a_walk_over_the_log(rows, continuous):
    policy = crowded() if continuous else StaticBatching(max_batch_size=3, max_wait=50e-6)
    world = play(sorted(rows), policy, capacity=32 if continuous else 60, cost=Affine(), exact=True, max_model_len=32)
    result = result_of(world, 32 if continuous else 60)
    found, slots = result.slot_ledger, result.slots.count
    parts = dict.fromkeys(SLOT_PARTS, 0)
    end = min(world.sent().values())
    for tick in world.ticks:
        arrivals = sorted(at for at in world.sent().values() if end < at < tick.now)
        waiting = sum(at <= end for at in world.sent().values()) - tick.gone    # nobody runs if time passes here
        crowd = end if waiting else (arrivals or [tick.now])[0]
        parts["idle"] += slots * (crowd - end)
        parts["forming"] += slots * (tick.now - crowd)
        end = int(world.record.ends[tick.first])
        took = end - tick.now
        lost = most_computed(world, tick)
        for who in tick.running:
            row = next((row for row in tick.computing if row[0] == who), None)
            if who in tick.held:
                parts["held"] += took
            elif row is None:
                parts["stalled"] += took
            elif who in tick.decoding or is_late(world, tick, *row):
                parts["decode"] += took
            else:
                parts["recompute" if lost.get(who, 0) > tick.computed[who] else "prefill"] += took
        empty = f"blocked_{tick.blocked or 'step'}" if tick.waiting else "no_queue"
        parts[empty] += (slots - len(tick.running)) * took
    assert dict(found.parts) == parts
    assert found.total == slots * (end - min(world.sent().values()))


def most_computed(world: World, now) -> dict[int, int]:
    """The most tokens that each request had computed by the time it was last preempted."""
    most: dict[int, int] = {}
    latest: dict[int, int] = {}
    for tick in world.ticks:
        for who in tick.preempted:
            most[who] = max(most.get(who, 0), latest.get(who, 0))
        if tick is now:
            break
        for who, tokens, computed in tick.computing:
            latest[who] = computed + tokens
    return most


# --- the denominator ------------------------------------------------------------------------------------------------

def slots_with(cap: int, capacity: int, ran: int, footprint: int = 10) -> Slots:
    setup = SimpleNamespace(policy=SimpleNamespace(slots=cap), verdict=np.array([0, 0, 1]),
                            footprint=np.array([footprint, footprint + 2, 10 ** 9]),
                            deployment=SimpleNamespace(kv_capacity_tokens=capacity))
    return count_slots(setup, Paged(capacity // 4, 4), ran)


@pytest.mark.parametrize(("cap", "capacity", "ran", "count", "words"), [
    (32, UNLIMITED, 7, 32, "the policy's cap"),
    (UNLIMITED, UNLIMITED, 7, 7, "the most that ever ran at once"),
    (32, 1000, 7, 32, "the policy's cap"),
    (1024, 1000, 7, 90, "the most requests of mean size that memory holds"),    # 1000 // 11, of the accepted
    (1024, 1000, 95, 95, "the most that ever ran at once"),
    (UNLIMITED, 1000, 7, 90, "the most requests of mean size that memory holds"),
    (32, 1000, 33, 33, "the policy's cap"),    # a policy that breaks its own cap loses no slot
])
def test_slots_are_the_cap_or_what_memory_would_hold(cap, capacity, ran, count, words):
    assert slots_with(cap, capacity, ran) == Slots(count, words)


# --- token positions ------------------------------------------------------------------------------------------------

def test_padding_is_positions_computed_for_nothing():
    # Prompts 10 and 2 padded to 10; then one row decodes and the finished one computes along.
    result = run([(0, 10, 1), (0, 2, 3)], StaticBatching(max_batch_size=2, padded=True))
    assert nonzero(result.token_ledger) == {"useful": 12 + 2, "padding": 8 + 2}
    assert result.token_ledger.share("padding") == 10 / 24


@given(drawn_rows())
def test_every_position_is_useful_once(rows):
    result = run(sorted(rows), crowded(), 32, max_model_len=32)
    assert result.token_ledger.parts["useful"] == sum(prompt + output - 1 for _, prompt, output in rows)
    assert result.token_ledger.total == int((result.record.steps["decodes"] + result.record.steps["prompt"]).sum())


# --- KV cache -------------------------------------------------------------------------------------------------------

def test_a_reservation_is_full_of_holes_until_it_is_used():
    # Reserved 4 + 6 and 4 + 3 of 100 tokens for three steps; at the end of the steps 8, 9 and 10 hold KV.
    result = run([(0, 4, 1, 6), (0, 4, 3, 3)], StaticBatching(max_batch_size=2), 100)
    assert nonzero(result.kv_ledger) == {"holding": 270, "reserved": 17 * 30 - 270, "free": 83 * 30}
    assert result.kv_ledger.of == "100 tokens of KV cache"
    assert result.kv_use == (pytest.approx(0.17), 0.17)


def test_buddies_round_up():
    result = run([(0, 4, 1, 6), (0, 4, 3, 3)], StaticBatching(max_batch_size=2, placement="buddy"), 128)
    assert result.kv_ledger.parts["internal"] == (16 - 10 + 8 - 7) * 30


def test_pages_waste_the_rest_of_the_last_block():
    # One block is the engine's own. 5, 6, 7 tokens lie in two blocks of four.
    result = run([(0, 5, 3), (100, 4, 1)], Vllm(max_num_seqs=1, max_num_batched_tokens=64, block_size=4), 44)
    assert nonzero(result.kv_ledger) == {"holding": 180 + 40, "internal": 240 - 180,
                                         "cached": 4 * 80, "free": 32 * 30 + 36 * 70 + 32 * 10}
    assert result.kv_use == (pytest.approx(280 / (40 * 110)), 8 / 40)


def test_free_memory_in_short_holes_is_external_fragmentation():
    recorder = Recorder()
    for start, blocked, waiting in ((0, 4, 1), (10, 4, 0), (20, 3, 1)):
        row = {"start": start, "steps": 1, "decodes": 1, "context": 4, "running": 1, "waiting": waiting,
               "resident": 4, "promised": 8, "blocked": blocked, "empty": -1}
        recorder.plans.append(tuple((dict.fromkeys(PLAN_COLUMNS, 0) | row).values()))
        recorder.ends.append(start + 10)
        recorder.used.append(8)
    recorder.sent.extend((0, 0))
    recorder.stay(0, 0, 30)
    record = recorder.freeze()
    memory = Contiguous(20, lambda request: 8, lambda prompt, output, limits: prompt)
    gaps = gaps_between(record, np.array([30]), record.bounds)
    found = kv_ledger(record, gaps, memory, unlimited=False, lasts=lasts(record))
    assert nonzero(found) == {"holding": 150, "reserved": 240 - 150, "external": 120, "free": 240}


def test_without_a_bound_nothing_is_said_to_be_free():
    result = run([(0, 5, 3)], Vllm(max_num_seqs=1, max_num_batched_tokens=64, block_size=4))
    assert nonzero(result.kv_ledger) == {"holding": 180, "internal": 60, "external": None, "cached": None,
                                         "free": None}
    assert result.kv_ledger.total is None
    assert result.kv_ledger.share("holding") is None
    assert result.kv_use == (None, None)


@given(drawn_rows(), st.sampled_from([("first-fit", False), ("buddy", True), ("paged", False)]))
def test_kv_equals_a_walk_over_the_log(rows, how):
    place, padded = how
    policy = crowded() if place == "paged" else StaticBatching(max_batch_size=3, placement=place, padded=padded)
    world = play(sorted(rows), policy, capacity=64, cost=Affine(), exact=True, max_model_len=32)
    result, memory = result_of(world, 64), world.memory
    holding = taken = 0
    for tick in world.ticks:
        took = int(world.record.ends[tick.first]) - tick.now
        computes = {who: tokens for who, tokens, _ in tick.computing}
        holding += took * sum(tick.computed[who] + computes.get(who, 0) for who in tick.running)
        taken += took * tick.used * memory.block_size
    found = result.kv_ledger
    capacity = memory.capacity * memory.block_size
    assert found.parts["holding"] == holding
    assert found.parts["cached"] == cached_by(world) * memory.block_size
    assert found.parts["holding"] + found.parts["reserved"] + found.parts["internal"] == taken
    assert found.total == capacity * int(world.record.ends[-1] - min(world.sent().values()))
    assert all(amount >= 0 for amount in found.parts.values())


def cached_by(world: World) -> int:
    """Block-nanoseconds that held reusable KV of nobody, in a run asked at every step: in steps and between them."""
    cached, now, kept = 0, min(world.sent().values()), 0
    for tick in world.ticks:
        end = int(world.record.ends[tick.first])
        cached += kept * (tick.now - now) + tick.evictable * (end - tick.now)
        now, kept = end, tick.evictable_after
    return cached


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 24), st.integers(1, 8), st.integers(0, 3)), min_size=1,
                max_size=10), st.sampled_from([Vllm(max_num_seqs=3, max_num_batched_tokens=16, block_size=4),
                                               Sglang(max_running_requests=3), Tgi(max_batch_size=3)]))
def test_what_memory_remembers_equals_a_walk_over_the_log(rows, policy):
    rows = sorted(rows)
    prefixes = [((group, max(1, prompt - 1)),) if group else () for _, prompt, _, group in rows]
    worlds = [play([row[:3] for row in rows], policy, capacity=64, exact=exact, max_model_len=40, prefixes=prefixes)
              for exact in (True, False)]
    exact, fast = (result_of(world, 64) for world in worlds)
    assert exact.kv_ledger.parts["cached"] == cached_by(worlds[0]) * worlds[0].memory.block_size
    assert exact.kv_ledger == fast.kv_ledger


# --- what was lost --------------------------------------------------------------------------------------------------

def test_idle_slots_and_padding_are_counted_apart():
    # A step costs its positions and contexts. Prefill: 20 for 12, so 8 too much for both slots. Then the useful row
    # alone would cost 1 + 2 and 1 + 3; padded to 10 and 11, with a finished row beside it, it costs 22 and 24.
    padded = run([(0, 10, 1), (0, 2, 3)], StaticBatching(max_batch_size=2, padded=True), cost=Affine(0, 1, 1, 1))
    lost = waste(padded.record, padded.slot_ledger)
    assert lost.idle_slots == pytest.approx((22 + 24) * 1e-9)
    assert lost.padding == pytest.approx((2 * 8 + (22 - 3) + (24 - 4)) * 1e-9)
    ragged = run([(0, 10, 1), (0, 2, 3)], StaticBatching(max_batch_size=2))
    lost = waste(ragged.record, ragged.slot_ledger)
    assert (lost.idle_slots, lost.padding) == (20e-9, 0)


def test_an_empty_slot_is_lost_only_while_somebody_waits():
    result = run([(0, 4, 3), (5, 4, 1)], StaticBatching(max_batch_size=2))
    assert result.waste.idle_slots == 20e-9


def test_the_effective_batch_leaves_idle_time_and_idle_rows_out():
    # 2 rows in 10 ns, then 1 useful row in 20 ns beside a held one; later 1 row in 10 ns.
    result = run([(0, 4, 1), (0, 4, 3), (500, 4, 1)], StaticBatching(max_batch_size=2))
    assert effective_batch(result.record) == (2 * 10 + 20 + 10) / 40


# --- exactness ------------------------------------------------------------------------------------------------------

@given(st.lists(st.tuples(st.integers(0, 10 ** 7), st.integers(0, 10 ** 13)), max_size=30))
def test_sums_are_exact_beyond_64_bits(pairs):
    amounts, took = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    assert times(amounts, took) == sum(amount * last for amount, last in pairs)


@given(st.lists(st.tuples(st.integers(-2 ** 62, 2 ** 62), st.integers(0, 2 ** 62)), max_size=8))
def test_sums_are_exact_whatever_the_amounts(pairs):
    amounts, took = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    assert times(amounts, took) == sum(amount * last for amount, last in pairs)


@pytest.mark.parametrize("bits", [0, 10, 40, 55, 59, 62, 80])
def test_long_columns_are_summed_exactly_piece_by_piece(bits):
    # Products of so many bits: 64 bits hold the sum of all rows, of some, of a few, or of none.
    amounts = np.full(1000, 2 ** (bits // 2) - 1) - np.arange(1000) % 2
    took = np.full(1000, 2 ** (bits - bits // 2) - 1) + np.arange(1000) % 3
    assert times(amounts, took) == sum(map(int.__mul__, amounts.tolist(), took.tolist()))


def test_a_ledger_that_does_not_add_up_is_refused():
    with pytest.raises(ArithmeticError, match="slot-ns of the ledger come to 3, not to 4"):
        Ledger("slot-ns", "", 4, {"decode": 1, "held": 2}, SLOT_PARTS)


def test_rows_name_amounts_and_shares():
    ledger = Ledger("token positions", "", 4, {"useful": 3, "padding": 1, "recompute": 0}, TOKEN_PARTS)
    assert ledger.rows()[1] == {"part": "padding", "means": "computed for nothing", "token positions": 1, "share": 0.25}
    assert ledger.share("useful", "padding") == 1


def test_nothing_ran():
    record = Recorder().freeze()
    gaps = gaps_between(record, np.zeros(0, np.int64), record.bounds)
    assert slot_ledger(record, gaps, Slots(4, "four"), 0).share("decode") is None
    assert token_ledger(record).total == 0
    assert kv_ledger(record, gaps, Paged(4, 4), unlimited=False, lasts=0).parts == dict.fromkeys(KV_PARTS, 0)
    assert effective_batch(record) is None
