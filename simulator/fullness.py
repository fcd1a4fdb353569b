"""Fullness: how many sequences compute new tokens, bin by bin of the run's time. It knows no metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from simulator.areas import Level
from simulator.columns import Ints
from simulator.frozen import Kept
from simulator.ledger import useful_rows
from simulator.record import Record

BINS = 60
"""As many as fit on a line."""
LEVELS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Fullness(Kept):
    """The batch over time, on average over each bin; with several replicas, all of them together.

    Attributes:
        ends: Of the bins, s after the first request was sent; the first begins at 0.
        sequences: Those that compute new tokens; idle time counts as none.
    """

    ends: Sequence[float]
    sequences: Sequence[float]

    @classmethod
    def of(cls, records: Iterable[Record], edges: Ints) -> Fullness:
        """Of all replicas, between these edges (ns)."""
        areas = [Level(record.plan("start"), record.plan_ends, useful_rows(record)).between(edges)
                 for record in records]
        return cls(((edges[1:] - edges[0]) / 1e9).tolist(), (sum(areas) / np.diff(edges)).astype(float).tolist())

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"end_s": list(self.ends), "sequences": list(self.sequences)}

    def drawn(self) -> str:
        """A bar for each bin, the highest one full; a blank where nothing is computed."""
        most = max(self.sequences, default=0.0) or 1.0
        return "".join(LEVELS[ceil(each / most * (len(LEVELS) - 1))] for each in self.sequences)
