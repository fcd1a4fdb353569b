"""Is an attention path right? Each answer is held against softmax written out in float64, on fresh random inputs.

Before the call the output is full of NaN, and every token of the pages that is not of the sequence, those of its own
last page included, holds a large number: what is left unwritten, or read where it must not be, shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, sqrt

import numpy as np
import torch
from torch import Tensor

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages, Row

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""Largest error that a right path may have, as a share of the largest value that the reference has."""
FOREIGN = 1000.0
"""What stands in tokens that belong to nobody."""
LENGTHS = (1, 15, 16, 17, 129, 300, 1000)
"""Around the edges of pages, and long enough for several splits."""


@dataclass(frozen=True)
class Heads:
    """The heads of one layer on one device."""

    heads: int
    kv_heads: int
    head_dim: int


def reference(query: Tensor, pages: Pages, batch: Batch) -> Tensor:
    """What each new token sees, in float64: (new tokens, heads, head dimension)."""
    parts, first = [], 0
    for row in batch.rows:
        slots = [row.pages[at // batch.page_size] * batch.page_size + at % batch.page_size for at in range(row.length)]
        new = query[first:first + row.new].double()
        group = query.shape[1] // pages.keys.shape[2]
        keys, values = (kept.flatten(0, 1)[slots].double().repeat_interleave(group, 1)
                        for kept in (pages.keys, pages.values))
        scores = torch.einsum("nhd,thd->hnt", new, keys) / sqrt(query.shape[2])
        at = torch.arange(row.length, device=query.device)
        unseen = at[None, :] > at[row.length - row.new:, None]
        weights = torch.softmax(scores.masked_fill(unseen, float("-inf")), -1)
        parts.append(torch.einsum("hnt,thd->nhd", weights, values))
        first += row.new
    return torch.cat(parts)


def random_case(heads: Heads, rows: list[tuple[int, int]], page_size: int, dtype: torch.dtype, device: torch.device,
                rng: np.random.Generator) -> tuple[Tensor, Pages, Batch]:
    """A query, pages and the batch for rows of (new tokens, tokens in all), in pages dealt out at random."""
    counts = [-(-length // page_size) for _, length in rows]
    dealt = rng.permutation(sum(counts) + 3).tolist()
    ends = np.cumsum(counts).tolist()
    batch = Batch.of([Row(new, length, dealt[end - count:end]) for (new, length), count, end in
                      zip(rows, counts, ends, strict=True)], page_size, device)
    like = torch.zeros((), dtype=dtype, device=device)
    pages = Pages.empty(len(dealt), page_size, heads.kv_heads, heads.head_dim, like)
    for kept in (pages.keys, pages.values):
        kept.fill_(FOREIGN)
    for row in batch.rows:
        slots = torch.tensor([row.pages[at // page_size] * page_size + at % page_size for at in range(row.length)],
                             device=device)
        pages.write(slots, *(_normal(rng, (row.length, heads.kv_heads, heads.head_dim), like) for _ in range(2)))
    return _normal(rng, (batch.tokens, heads.heads, heads.head_dim), like), pages, batch


def _normal(rng: np.random.Generator, shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape, np.float32)).to(like)


def error_of(path: AttentionPath, heads: Heads, page_size: int, dtype: torch.dtype, device: torch.device,
             rng: np.random.Generator, *, lengths: tuple[int, ...] = LENGTHS) -> float:
    """The largest error of a path over decodes, and over chunks and both together where it serves them.

    It is a share of the largest value of the reference, and infinite where something was not written.
    """
    decodes = [(1, length) for length in lengths]
    chunks = [(length, length) for length in lengths] + [(max(1, length // 3), length) for length in lengths]
    cases = [decodes, chunks, decodes + chunks] if path.mixes else [decodes]
    return max(_error(path, *random_case(heads, case, page_size, dtype, device, rng)) for case in cases)


def _error(path: AttentionPath, query: Tensor, pages: Pages, batch: Batch) -> float:
    out = torch.full_like(query, float("nan"))
    path.attend(query, pages, batch, out)
    right = reference(query, pages, batch)
    worst = float((out.double() - right).abs().max() / right.abs().max())
    return inf if isnan(worst) else worst
