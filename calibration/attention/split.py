"""Decodes through one path, chunks through another: for kernels that serve single tokens only."""

from __future__ import annotations

import torch
from torch import Tensor

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages


class Split(AttentionPath):
    """The leading rows of a batch that compute one token go one way, the rows after them the other."""

    def __init__(self, decodes: AttentionPath, chunks: AttentionPath) -> None:
        self._decodes, self._chunks = decodes, chunks
        self.name = f"{decodes.name} (chunks: {chunks.name})"    # type: ignore[misc]

    def obstacle(self, device: torch.device) -> str | None:
        return self._decodes.obstacle(device) or self._chunks.obstacle(device)

    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        decodes, chunks = batch.parts
        single = len(decodes.rows) if decodes else 0
        if decodes:
            self._decodes.attend(query[:single], pages, decodes, out[:single])
        if chunks:
            self._chunks.attend(query[single:], pages, chunks, out[single:])
