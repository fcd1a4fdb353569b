"""The record by plans and by steps: what a stretch comes to is what its steps come to, one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_ledger import crowded, drawn_rows, result_of
from worlds import Affine, World, play

from simulator.ledger import KV_PARTS, SLOT_PARTS
from simulator.policies import Policy, Sglang, StaticBatching, Vllm, Vllm0
from simulator.recorder import OBSTACLES
from simulator.result import Result


def test_steps_start_with_their_plan_or_where_the_one_before_ended() -> None:
    record = play([(0, 1, 3), (100, 1, 2)], Vllm(max_num_seqs=1)).record
    assert record.starts.tolist() == record.steps["start"].tolist() == [0, 10, 20, 100, 110]
    assert record.plan("steps").tolist() == [1, 2, 1, 1]
    assert (record.firsts.tolist(), record.plan_ends.tolist()) == ([0, 1, 3, 4], [10, 30, 110, 120])


def test_contexts_grow_and_the_queue_fills_within_a_stretch() -> None:
    record = play([(0, 4, 5), (10, 4, 1), (24, 4, 1), (30, 4, 1)], StaticBatching(max_batch_size=1)).record
    assert record.plan("steps").tolist() == [1, 4, 1, 1, 1]
    assert record.step("context").tolist() == [0, 4, 5, 6, 7, 0, 0, 0]
    assert record.step("resident").tolist() == [0, 4, 5, 6, 7, 0, 0, 0]
    assert record.step("waiting").tolist() == [0, 1, 1, 3, 3, 2, 1, 0]


def test_a_queue_that_fills_amid_a_stretch_is_seen_by_the_step_after() -> None:
    # One request alone for steps from 10 on, in a closed batch: somebody comes during a step, at its end, or never.
    for arrival, seen in ((21, 30), (30, 30), (31, 40), (45, 50)):
        record = play([(0, 4, 5), (arrival, 4, 1)], StaticBatching(max_batch_size=1)).record
        assert (record.plan("start").tolist()[1], record.queued_from.tolist()[1]) == (10, seen)


def worlds_by_plans() -> st.SearchStrategy[World]:
    """Fast-forwarded ones: closed batches, torn memory, preemptions, naps between steps."""
    policies: list[Policy] = [StaticBatching(max_batch_size=3, max_wait=50e-6), crowded(),
                              StaticBatching(max_batch_size=3, placement="first-fit"),
                              StaticBatching(max_batch_size=2, placement="buddy", padded=True),
                              Vllm0(max_num_seqs=3, block_size=4), Sglang(max_running_requests=3)]
    return st.builds(lambda rows, policy: play(sorted(rows), policy, capacity=64, cost=Affine(), max_model_len=32),
                     drawn_rows(), st.sampled_from(policies))


@given(worlds_by_plans())
def test_ledgers_by_plans_equal_a_walk_over_the_steps(world: World) -> None:
    result = result_of(world, 64)
    slots, tokens, kv = walk(result)
    assert dict(result.slot_ledger.parts) == slots
    assert dict(result.token_ledger.parts) == tokens
    assert dict(result.kv_ledger.parts) == kv


def walk(result: Result) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """The parts of the three ledgers, step by step in plain integers."""
    memory, count = result.memory, result.slots.count
    capacity = memory.capacity * memory.block_size
    slots, kv = dict.fromkeys(SLOT_PARTS, 0), dict.fromkeys(KV_PARTS, 0)
    tokens = dict.fromkeys(("useful", "padding", "recompute"), 0)
    now, held = int(result.record.sent[:, 1].min()), {"free": capacity}
    rests = dict(result.record.rests.tolist())
    for step in steps_of(result):
        busy, crowd = gap(result, now, step["start"])
        slots["stalled"] += busy * (step["start"] - now)
        slots["idle"] += (count - busy) * (crowd - now)
        slots["forming"] += (count - busy) * (step["start"] - crowd)
        kept = (memory.capacity - rests.get(step["number"], memory.capacity)) * memory.block_size
        for part, amount in (held if busy else {"cached": kept, "free": capacity - kept}).items():
            kv[part] += amount * (step["start"] - now)
        took = step["end"] - step["start"]
        prefills = step["chunks"] - step["redoing"]
        left_out = step["running"] - step["decodes"] - step["chunks"] - step["held"]
        waits = "behind_prefill" if step["paused"] and step["chunks"] else "stalled"
        for part, rows in (("decode", step["decodes"]), ("prefill", prefills), ("recompute", step["redoing"]),
                           ("held", step["held"]),
                           (waits, left_out)):
            slots[part] += rows * took
        why = f"blocked_{OBSTACLES[step['blocked']] or 'step'}" if step["waiting"] else "no_queue"
        slots[why] += (count - step["running"]) * took
        tokens["useful"] += step["decodes"] + step["prompt"] - step["redone"]
        tokens["padding"] += step["padding"]
        tokens["recompute"] += step["redone"]
        held = held_by(step, memory.block_size, capacity)
        for part, amount in held.items():
            kv[part] += amount * took
        now = step["end"]
    return slots, tokens, kv


def held_by(step: dict[str, int], block: int, capacity: int) -> dict[str, int]:
    """Tokens of memory at the end of a step, by part."""
    holding = step["resident"] + step["decodes"] + step["prompt"]
    promised = holding if step["promised"] < 0 else step["promised"]
    used = step["used"] * block
    torn = OBSTACLES[step["blocked"]] == "fragmentation" and step["waiting"] > 0
    cached = 0 if step["empty"] < 0 else capacity - used - step["empty"] * block
    return {"holding": holding, "reserved": promised - holding, "internal": used - promised,
            "cached": cached, "external" if torn else "free": capacity - used - cached}


def gap(result: Result, start: int, end: int) -> tuple[int, int]:
    """Requests that keep their slots between two steps, and since when somebody waits there."""
    record, line = result.record, result.timeline
    busy = sum(since <= start < until for _, since, until in record.stays.tolist())
    sent = sorted(record.sent[:, 1].tolist())
    waiting = sum(at <= start for at in sent) - int((line.left <= start).sum()) - busy
    return busy, start if waiting else next((at for at in sent if start < at < end), end)


def steps_of(result: Result) -> list[dict[str, Any]]:
    columns = result.record.steps
    return [dict(zip(columns, row, strict=True)) | {"number": number}
            for number, row in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True))]


@given(drawn_rows(), st.sampled_from(["static", "crowded"]))
def test_ledgers_of_stretches_are_those_of_single_steps(rows: list[tuple[int, ...]], which: str) -> None:
    policy = crowded() if which == "crowded" else StaticBatching(max_batch_size=3)
    fast, exact = (result_of(play(sorted(rows), policy, capacity=64, max_model_len=32, exact=exact), 64)
                   for exact in (False, True))
    assert fast.slot_ledger == exact.slot_ledger
    assert fast.token_ledger == exact.token_ledger
    assert fast.kv_ledger == exact.kv_ledger
    assert fast.waste == exact.waste
