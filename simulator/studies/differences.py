"""Differences: figures of replicated runs beside those of a baseline, with intervals, in pairs.

The n-th run of each side had the same traffic; what both sides owe to it cancels out. It knows no run, only records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from simulator.metrics import METRICS
from simulator.statistics import Interval, of_means, paired

FIGURES = {"request_throughput": "requests/s", "output_throughput": "output tokens/s",
           "request_goodput": "good requests/s",
           **{f"{stem}_{name}_ms": f"{METRICS[name].label}, {word}, ms" for name in ("ttft", "tpot", "e2el")
              for stem, word in (("median", "median"), ("p99", "p99"))}}
"""What is compared, by its name in the records, in words."""

UNMEASURED = "how far chance moves these differences was not measured; replications give intervals"
"""The warning wherever runs differ and each was made once."""

Records = Mapping[str, Sequence[Mapping[str, Any]]]
"""By label, a record a replication; the first label is the baseline."""
Side = Sequence[float | None]
"""A figure of one side, replication by replication; None where it was not measured."""


@dataclass(frozen=True)
class Difference:
    """A figure of the baseline beside that of another side, over all replications.

    Attributes:
        figure: Its name in the records.
        label: The other side.
        baseline, other: The mean of each side.
        difference: The mean of other - baseline.
        ratio: The geometric mean of other / baseline; None where a side is 0 at times.
    """

    figure: str
    label: str
    baseline: Interval
    other: Interval
    difference: Interval
    ratio: Interval | None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        found = {name: getattr(self, name) for name in ("baseline", "other", "difference", "ratio")}
        return {"figure": self.figure, "label": self.label, **{name: each and each.plain()
                                                               for name, each in found.items()}}


def differences(records: Records, figures: Iterable[str] = FIGURES) -> list[Difference]:
    """Every figure of every label beside the baseline's; without those that a replication did not measure."""
    baseline, *others = records
    found = (difference(figure, label, *([each.get(figure) for each in records[side]] for side in (baseline, label)))
             for label in others for figure in figures)
    return [each for each in found if each]


def difference(figure: str, label: str, baseline: Side, other: Side) -> Difference | None:
    """The difference between two sides, replication by replication; None where one of them did not measure it."""
    first, second = ([value for value in side if value is not None] for side in (baseline, other))
    if len(first) + len(second) < len(baseline) + len(other):
        return None
    return Difference(figure, label, of_means(first), of_means(second), paired(second, first), _ratio(second, first))


def _ratio(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """The interval of the factor between them: that of the mean difference of logarithms."""
    if min(*above, *below) <= 0:
        return None
    found = paired([log(value) for value in above], [log(value) for value in below])
    return Interval(exp(found.low), exp(found.mean), exp(found.high), found.level)
