"""torch's variable-length FlashAttention with a block table: CUDA only, torch 2.12 or later.

Depending on the FlashAttention that torch was built with, pages of 16 tokens work or only those of 256; the check
against the reference finds out. It splits the KV of long sequences as it sees fit.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import torch
from torch import Tensor

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages


def _function(name: str) -> Any:
    """A function of torch's module, if it is there and knows block tables."""
    try:
        from torch.nn.attention import varlen
    except ImportError:
        return None
    found = getattr(varlen, name, None)
    return found if found is not None and "block_table" in signature(found).parameters else None


class Varlen(AttentionPath):
    """`torch.nn.attention.varlen`: one kernel for decodes, chunks and both together."""

    name: ClassVar[str] = "varlen"
    page_sizes: ClassVar[tuple[int, ...]] = (16, 64, 256)

    def obstacle(self, device: torch.device) -> str | None:
        if device.type != "cuda":
            return "varlen_attn needs CUDA"
        return None if _function("varlen_attn") else "this torch has no varlen_attn with a block table"

    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        given = (query, pages.keys, pages.values, batch.starts, None, max(row.new for row in batch.rows), batch.longest)
        options = {"window_size": (-1, 0), "enable_gqa": True, "seqused_k": batch.lengths, "block_table": batch.tables}
        if into := _function("varlen_attn_out"):
            into(out, *given, **options)
        else:
            out.copy_(_function("varlen_attn")(*given, **options))
