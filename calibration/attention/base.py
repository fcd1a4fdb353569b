"""An attention path: one way to attend to a paged KV cache, which may work on a device or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from calibration.paged import Batch, Pages


class AttentionPath(ABC):
    """Causal attention of a ragged batch of new tokens over a paged KV cache, with grouped-query heads.

    Class attributes:
        name: What a profile calls it.
        page_sizes: Tokens a page that it may work with, the smallest first.
        mixes: Rows of several new tokens are served, too; False: single tokens only.
    """

    name: ClassVar[str]
    page_sizes: ClassVar[tuple[int, ...]] = (16,)
    mixes: ClassVar[bool] = True

    @abstractmethod
    def obstacle(self, device: torch.device) -> str | None:
        """Why it cannot run on this device, as far as that shows without running it; None if it might."""

    @abstractmethod
    def attend(self, query: Tensor, pages: Pages, batch: Batch, out: Tensor) -> None:
        """Write into `out` what each new token sees. Both are (new tokens, heads, head dimension)."""
