"""Gather and attend: copy each sequence out of its pages, then torch's scaled_dot_product_attention.

It works everywhere and moves the KV cache three times, so it is the fallback and no proxy for what a kernel costs.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages, Row


class GatherAndAttend(AttentionPath):
    """One sequence after the other, each without padding."""

    name: ClassVar[str] = "gather"

    def obstacle(self, device: torch.device) -> str | None:
        return None

    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        first = 0
        for row, table in zip(batch.rows, batch.tables.unbind(), strict=True):
            keys, values = (_gathered(each, table, row) for each in (pages.keys, pages.values))
            new = query[first:first + row.new].transpose(0, 1)[None]
            seen = scaled_dot_product_attention(new, keys, values, **_mask(row, query.device), enable_gqa=True)
            out[first:first + row.new] = seen[0].transpose(0, 1)
            first += row.new


def _gathered(kept: Tensor, table: Tensor, row: Row) -> Tensor:
    """The sequence's keys or values in order, as (1, KV heads, tokens, head dimension)."""
    found = kept.index_select(0, table[:len(row.pages)]).flatten(0, 1)[:row.length]
    return found.transpose(0, 1)[None]


def _mask(row: Row, device: torch.device) -> dict[str, Tensor | bool]:
    """The new tokens are the last ones of the sequence: each sees what is before it."""
    if row.new == 1:
        return {}
    if row.new == row.length:
        return {"is_causal": True}
    mask = torch.ones(row.new, row.length, dtype=torch.bool, device=device)
    return {"attn_mask": mask.tril(row.length - row.new)}
