"""Binned ledgers: where slots, token positions and KV cache went over time. Each bin adds up exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simulator.columns import Ints
from simulator.errors import InputError
from simulator.ledger import Ledger
from simulator.levels import Levels
from simulator.record import Record

if TYPE_CHECKING:
    import pandas as pd

BINS = 120


@dataclass(frozen=True, eq=False)
class Binned:
    """A ledger, bin by bin.

    Attributes:
        ledger: The sums of all bins.
        edges: Of the bins, ns on the clock of the run: one more than there are bins.
        parts: By part, the amount in each bin; parts of which nothing is said are left out.
    """

    ledger: Ledger
    edges: Ints
    parts: Mapping[str, list[int]]

    def __post_init__(self) -> None:
        sums = {name: sum(amounts) for name, amounts in self.parts.items()}
        wanted = {name: amount for name, amount in self.ledger.parts.items() if amount is not None}
        if sums != wanted:
            raise ArithmeticError(f"the bins come to {sums} {self.ledger.unit}, the ledger to {wanted}")

    @property
    def totals(self) -> list[int]:
        """All that is known of each bin."""
        return [sum(amounts) for amounts in zip(*self.parts.values(), strict=True)]

    def frame(self) -> pd.DataFrame:
        """A row a bin: start_s, end_s, and each part on average over it: slots, token positions a second, or tokens."""
        import pandas as pd
        width = np.diff(self.edges)
        scale = 1e9 if self.ledger.unit == "token positions" else 1
        means = {name: np.array(amounts, float) * scale / width for name, amounts in self.parts.items()}
        return pd.DataFrame({"start_s": self.edges[:-1] / 1e9, "end_s": self.edges[1:] / 1e9, **means})


def edges_of(record: Record, bins: int) -> Ints:
    """Edges in whole ns from the first request sent to the end of the last step; fewer where the run is too short."""
    if bins < 1:
        raise InputError(f"a ledger has at least 1 bin, not {bins}")
    start, end = record.bounds
    return np.array(sorted({start + (end - start) * at // bins for at in range(bins + 1)}), np.int64)


def by_time(ledger: Ledger, levels: Sequence[Levels], edges: Ints) -> Binned:
    """A ledger whose levels lie on the clock of the run, those of each replica by themselves."""
    return Binned(ledger, edges, _sums([_cut(each, edges) for each in levels]))


def by_steps(ledger: Ledger, levels: Sequence[Levels], records: Sequence[Record], edges: Ints) -> Binned:
    """A ledger whose levels lie on a clock of steps: each step counts where it ends, at the edge still before it."""
    return Binned(ledger, edges, _sums([_cut(each, np.searchsorted(record.ends, edges, side="right"))
                                        for each, record in zip(levels, records, strict=True)]))


def _sums(parts: Sequence[dict[str, list[int]]]) -> dict[str, list[int]]:
    """The amounts of several replicas, part by part and bin by bin."""
    if len(parts) == 1:
        return parts[0]
    return {name: [sum(amounts) for amounts in zip(*(each[name] for each in parts), strict=True)] for name in parts[0]}


def _cut(levels: Levels, edges: Ints) -> dict[str, list[int]]:
    """The amounts between the edges, in Python's own numbers: a bin may hold more than 64 bits do."""
    return {name: [sum(amounts) for amounts in zip(*(level.between(edges).tolist() for level in each), strict=True)]
            for name, each in levels.items()}
