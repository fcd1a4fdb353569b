"""The two Triton kernels of `triton_decode` and their launch. It is imported only where triton is installed."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from calibration.paged import Batch, Pages

BLOCK = 64
"""Tokens that one turn of the loop reads."""
FEWEST_ROWS = 16
"""Of a tile that tensor cores multiply."""


@triton.jit
def attend_split(query: Any, keys: Any, values: Any, tables: Any, lengths: Any, parts: Any, peaks: Any, sums: Any,
                 scale: Any, table_width: Any, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr,
                 DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr) -> None:
    """One sequence, one KV head, one split: softmax over its tokens, kept apart as sum, peak and weighted values."""
    sequence, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + sequence)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK) * BLOCK
    first = split * share
    last = tl.minimum(first + share, length)

    row, dim = tl.arange(0, ROWS), tl.arange(0, DIM)
    mine = (sequence * KV_HEADS + head) * GROUP + row
    queries = tl.load(query + mine[:, None] * DIM + dim[None, :], mask=(row < GROUP)[:, None], other=0.0)
    peak = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    weighted = tl.zeros([ROWS, DIM], tl.float32)

    for start in range(first, last, BLOCK):
        token = start + tl.arange(0, BLOCK)
        there = token < last
        page = tl.load(tables + sequence * table_width + token // PAGE, mask=there, other=0).to(tl.int64)
        place = ((page * PAGE + token % PAGE) * KV_HEADS + head) * DIM
        key = tl.load(keys + place[:, None] + dim[None, :], mask=there[:, None], other=0.0)
        scores = tl.dot(queries, tl.trans(key), input_precision="ieee") * scale
        scores = tl.where(there[None, :], scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        fade = tl.exp(peak - new_peak)
        weights = tl.exp(scores - new_peak[:, None])
        value = tl.load(values + place[:, None] + dim[None, :], mask=there[:, None], other=0.0)
        weighted = weighted * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        total = total * fade + tl.sum(weights, 1)
        peak = new_peak

    at = mine * SPLITS + split
    tl.store(peaks + at, peak, mask=row < GROUP)
    tl.store(sums + at, total, mask=row < GROUP)
    tl.store(parts + at[:, None] * DIM + dim[None, :], weighted, mask=(row < GROUP)[:, None])


@triton.jit
def join_splits(parts: Any, peaks: Any, sums: Any, out: Any, DIM: tl.constexpr, SPLITS: tl.constexpr) -> None:
    """One query head of one sequence: its splits, each faded to the highest peak, over their common sum."""
    head = tl.program_id(0)
    split, dim = tl.arange(0, SPLITS), tl.arange(0, DIM)
    peak = tl.load(peaks + head * SPLITS + split)
    fade = tl.exp(peak - tl.max(peak, 0))
    total = tl.sum(tl.load(sums + head * SPLITS + split) * fade, 0)
    part = tl.load(parts + (head * SPLITS + split)[:, None] * DIM + dim[None, :])
    seen = tl.sum(part * fade[:, None], 0) / total
    tl.store(out + head * DIM + dim, seen.to(out.dtype.element_ty))


def decode(query: Tensor, pages: Pages, batch: Batch, out: Tensor, splits: int) -> None:
    """Launch both kernels. `query` and `out` are (sequences, heads, head dimension), contiguous."""
    sequences, heads, dim = query.shape
    kv_heads = pages.keys.shape[2]
    rows = max(FEWEST_ROWS, triton.next_power_of_2(heads // kv_heads))
    kept = {"dtype": torch.float32, "device": query.device}
    parts = torch.empty(sequences, heads, splits, dim, **kept)
    peaks, sums = (torch.empty(sequences, heads, splits, **kept) for _ in range(2))
    attend_split[(sequences, kv_heads, splits)](
        query, pages.keys, pages.values, batch.tables, batch.lengths, parts, peaks, sums, 1 / sqrt(dim),
        batch.tables.shape[1], kv_heads, heads // kv_heads, rows, dim, pages.page_size, BLOCK, splits)
    join_splits[(sequences * heads,)](parts, peaks, sums, out, dim, splits)
