"""A paged decode kernel of our own in Triton: grouped queries, block table, split KV. Decodes only.

All query heads of a KV head read it together. Long sequences are cut into splits that run side by side; a second kernel
puts their parts together. Source: FlashDecoding, as described by Dao et al., 2023. Under TRITON_INTERPRET=1 it runs on
a CPU, which checks what it computes and says nothing of its speed.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import ClassVar

import torch
from torch import Tensor

from calibration.attention.base import AttentionPath
from calibration.paged import Batch, Pages

PROGRAMS = 512
"""Programs that keep a large GPU busy: fewer sequences are cut into more splits."""
MOST_SPLITS = 32
SHORTEST_SPLIT = 256


class TritonDecode(AttentionPath):
    """Our own kernel, where triton is installed."""

    name: ClassVar[str] = "triton"
    mixes: ClassVar[bool] = False

    def obstacle(self, device: torch.device) -> str | None:
        if find_spec("triton") is None:
            return "triton is not installed"
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"
        return None if device.type == "cuda" or interpreted else "triton needs CUDA, or TRITON_INTERPRET=1"

    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        from calibration.attention.triton_kernels import decode
        decode(query, pages, batch, out, splits_for(len(batch.rows) * pages.keys.shape[2], batch.longest))


def splits_for(programs: int, longest: int) -> int:
    """Into how many splits sequences are cut: a power of two that fills the GPU and leaves no split too short."""
    wanted = min(MOST_SPLITS, PROGRAMS // programs, longest // SHORTEST_SPLIT)
    return 1 << max(0, wanted.bit_length() - 1)
