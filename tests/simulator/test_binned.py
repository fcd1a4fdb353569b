"""Ledgers over time: every bin adds up, all bins make the ledger, and what lies in a bin is what happened in it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ledger import drawn_rows, result_of, run
from worlds import Affine, play

from simulator.areas import Level
from simulator.binned import Binned, by_time, edges_of
from simulator.errors import InputError
from simulator.ledger import LEDGERS, TOKEN_PARTS, Ledger
from simulator.policies import Sglang, StaticBatching, Vllm, Vllm0

POLICIES = [StaticBatching(max_batch_size=3, max_wait=50e-6), StaticBatching(max_batch_size=2, padded=True),
            Vllm(max_num_seqs=4, max_num_batched_tokens=8, block_size=4), Vllm0(max_num_seqs=3, block_size=4),
            Sglang(max_running_requests=3)]


def test_bins_by_hand() -> None:
    # 0 and 1 fill a batch of three steps of 10 ns, in which 0 holds its slot for two; 2 runs alone for two.
    result = run([(0, 4, 1), (0, 4, 3), (0, 4, 2)], StaticBatching(max_batch_size=2))
    slots, tokens = result.ledger_over_time("slots", 2), result.ledger_over_time("tokens", 5)
    assert slots.edges.tolist() == [0, 25, 50]
    assert {name: amounts for name, amounts in slots.parts.items() if any(amounts)} == {
        "prefill": [20, 10], "decode": [15, 15], "held": [15, 5], "no_queue": [0, 20]}
    assert tokens.parts["useful"] == [8, 1, 1, 4, 1]


def test_memory_by_hand() -> None:
    result = run([(0, 5, 3)], Vllm(max_num_seqs=1, max_num_batched_tokens=64, block_size=4), 44)
    kv = result.ledger_over_time("kv", 3)
    assert (kv.parts["holding"], kv.parts["internal"], kv.parts["free"]) == ([50, 60, 70], [30, 20, 10], [320] * 3)


def test_a_frame_has_averages() -> None:
    result = run([(0, 4, 1), (0, 4, 3), (0, 4, 2)], StaticBatching(max_batch_size=2))
    frame = result.ledger_over_time("slots", 2).frame()
    assert frame["held"].tolist() == [15 / 25, 5 / 25]
    assert result.ledger_over_time("tokens", 5).frame()["useful"].tolist() == [8e8, 1e8, 1e8, 4e8, 1e8]


@given(drawn_rows(), st.sampled_from(POLICIES), st.integers(1, 60))
def test_every_bin_adds_up(rows: list[tuple[int, ...]], policy, bins: int) -> None:
    result = result_of(play(sorted(rows), policy, capacity=128, cost=Affine(), max_model_len=64), 128)
    for name in LEDGERS:
        found = result.ledger_over_time(name, bins)
        width = np.diff(found.edges)
        assert all(amount >= 0 for amounts in found.parts.values() for amount in amounts)
        if name == "tokens":
            ended = np.searchsorted(result.record.ends, found.edges, side="right")
            computed = sum(result.record.step(column) for column in ("decodes", "prompt", "padding"))
            assert found.totals == [int(computed[low:high].sum()) for low, high in pairwise(ended)]
        else:
            per_ns = result.ledgers[name].total // int(width.sum())
            assert found.totals == (per_ns * width).tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 1 << 40)), min_size=1, max_size=8),
       st.integers(1, 1 << 44))
def test_areas_are_exact_whatever_the_scale(gaps_and_lengths, scale: int) -> None:
    at, rows = 0, []
    for gap, length, amount in gaps_and_lengths:
        rows.append((at + gap, at + gap + length, amount))
        at += gap + length
    start, end, amount = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    edges = np.arange(0, at + 3, 2)
    found = Level(start * scale, end * scale, amount).between(edges * scale).tolist()
    by_hand = [sum(max(0, min(high, last) - max(low, first)) * each for first, last, each in rows) * scale
               for low, high in pairwise(edges.tolist())]
    assert found == by_hand


def test_bins_that_do_not_add_up_are_refused() -> None:
    ledger = Ledger("token positions", "", 4, {"useful": 4, "padding": 0, "recompute": 0}, TOKEN_PARTS)
    with pytest.raises(ArithmeticError, match="the bins come to"):
        Binned(ledger, np.array([0, 1, 2]), {"useful": [1, 2], "padding": [0, 0], "recompute": [0, 0]})


def test_wrong_questions() -> None:
    result = run([(0, 4, 1)], StaticBatching(max_batch_size=2))
    with pytest.raises(InputError, match="unknown ledger 'slot': did you mean 'slots'"):
        result.ledger_over_time("slot")
    with pytest.raises(InputError, match="at least 1 bin, not 0"):
        result.ledger_over_time("slots", 0)


def test_nothing_ran() -> None:
    record = run([(0, 4, 1)], StaticBatching(max_batch_size=2)).record
    short = edges_of(record, 400)
    assert short.tolist() == list(range(11))    # ten nanoseconds have no more bins
    empty = by_time(Ledger("slot-ns", "", 0, {}, {}), [{}], short[:1])
    assert empty.totals == []
