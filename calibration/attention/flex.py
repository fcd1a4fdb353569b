"""torch's flex_attention with its experimental PagedAttention: decodes only, torch 2.11 or later.

The name is private in torch, so it is looked for and never relied on. On CUDA it is compiled, which takes a minute the
first time; on a CPU it runs uncompiled, slow and good for checking only.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages


@cache
def _torch_parts(device: str) -> tuple[Any, Any, Any] | None:
    """PagedAttention, create_block_mask and flex_attention (compiled on CUDA), if torch has them all."""
    try:
        from torch.nn.attention.experimental._paged_attention import PagedAttention
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError:
        return None
    return PagedAttention, create_block_mask, torch.compile(flex_attention) if device == "cuda" else flex_attention


class FlexPaged(AttentionPath):
    """`flex_attention` over pages, through a block mask that knows which page belongs to whom."""

    name: ClassVar[str] = "flex"
    page_sizes: ClassVar[tuple[int, ...]] = (128,)
    mixes: ClassVar[bool] = False

    def __init__(self) -> None:
        self._masks: WeakKeyDictionary[Batch, Any] = WeakKeyDictionary()

    def obstacle(self, device: torch.device) -> str | None:
        return None if _torch_parts(device.type) else "this torch has no flex_attention with PagedAttention"

    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        parts = _torch_parts(query.device.type)
        assert parts is not None
        if batch not in self._masks:
            self._masks[batch] = _mask_of(batch, len(pages.keys), query.device.type)
        keys, values = (kept.flatten(0, 1).transpose(0, 1)[None] for kept in (pages.keys, pages.values))
        seen = parts[2](query[:, :, None], keys, values, block_mask=self._masks[batch], enable_gqa=True)
        out.copy_(seen[:, :, 0])


def _mask_of(batch: Batch, pages: int, device: str) -> Any:
    """The block mask of a batch of decodes over a pool of so many pages."""
    parts = _torch_parts(device)
    assert parts is not None
    kind, create_block_mask, _ = parts
    count, wide, lengths = len(batch.rows), batch.tables.shape[1], batch.lengths
    table = kind(pages, batch.page_size, count, device=device)
    for at, row in enumerate(batch.rows):    # PagedAttention deals out pages by itself; here they are dealt already
        mine = torch.tensor(row.pages, device=device)
        table.page_table[at, :len(mine)] = mine
        table.physical_to_logical[at, mine] = torch.arange(len(mine), device=device)
    logical = create_block_mask(lambda b, h, q, kv: kv < lengths[b], count, None, 1, wide * batch.page_size,
                                device=device, BLOCK_SIZE=(128, batch.page_size))
    return table.convert_logical_block_mask(logical, torch.arange(count, device=device), lengths.long())
