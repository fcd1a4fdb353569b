"""Fullness: how many sequences compute new tokens, bin by bin of the run's time. It reads the slot ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from simulator.binned import Binned

BINS = 60
"""As many as fit on a line."""
LEVELS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Fullness:
    """The batch over time, on average over each bin; with several replicas, all of them together.

    Attributes:
        ends: Of the bins, s after the first request was sent; the first begins at 0.
        sequences: Those that compute new tokens; idle time counts as none.
    """

    ends: Sequence[float]
    sequences: Sequence[float]

    @classmethod
    def of(cls, slots: Binned) -> Fullness:
        """By a slot ledger over time."""
        useful = np.add(slots.parts["decode"], slots.parts["prefill"])
        return cls(((slots.edges[1:] - slots.edges[0]) / 1e9).tolist(), (useful / np.diff(slots.edges)).tolist())

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"end_s": list(self.ends), "sequences": list(self.sequences)}

    def drawn(self) -> str:
        """A bar for each bin, the highest one full; a blank where nothing is computed."""
        most = max(self.sequences, default=0.0) or 1.0
        return "".join(LEVELS[ceil(each / most * (len(LEVELS) - 1))] for each in self.sequences)
