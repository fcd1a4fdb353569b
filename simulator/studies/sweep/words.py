"""Words: what the names of a record mean to a reader, as METRICS has them."""

from __future__ import annotations

import re
from collections.abc import Sized

from simulator.counting import counted
from simulator.metrics import METRICS, Metric
from simulator.studies.sweep.served import TENANT

SPREAD = re.compile(r"(?P<stem>mean|median|std|p[\d.]+)_(?P<metric>\w+)_ms")
STEMS = {"std": "standard deviation of "}


def words(name: str) -> str:
    """A figure by its label and unit; another name as it is."""
    if name.startswith(TENANT):
        tenant, _, figure = name.removeprefix(TENANT).rpartition(".")
        return f"{words(figure)}, of {tenant}"
    if name in METRICS:
        return _with_unit(METRICS[name])
    found = SPREAD.fullmatch(name)
    if not found or found["metric"] not in METRICS:
        return name
    return f"{STEMS.get(found['stem'], found['stem'] + ' ')}{METRICS[found['metric']].label}, ms"


def points(found: Sized) -> str:
    """How many points there are."""
    return counted(len(found), "point")


def _with_unit(metric: Metric) -> str:
    """A label that tells its unit by itself says it once."""
    unit = {"1/s": "requests/s", "count": "", "index": "", "requests": "requests"}.get(metric.unit, metric.unit)
    return metric.label if not unit or "/s" in metric.label else f"{metric.label}, {unit}"
