"""Recorded: a side from the JSON of a run - of `vllm bench serve`, or of batchsim itself. It runs nothing.

Where a measurement has its arrays, its latencies are worked out anew by our definitions, so that they compare; what the
file itself says by another definition is told. Where it has none, what cannot be known is "not stated".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from simulator.documents import document_of
from simulator.engine_runs.columns import columns
from simulator.engine_runs.run import number as seconds
from simulator.engine_runs.run import tokens
from simulator.errors import InputError
from simulator.kinds import OURS
from simulator.metrics import json_keys
from simulator.plausible import check
from simulator.scenarios import read_scenario
from simulator.studies.regression.names import STEM
from simulator.studies.regression.side import (
    CONDITIONS,
    DEFINITIONS,
    NOT_STATED,
    Side,
    definitions,
    measured,
)

ARRAYS = ("ttfts", "itls", "output_lens")
GOODPUT = "request_goodput:"
"""How `vllm bench serve` spells it."""
NEAR = 0.01
"""Two figures that lie closer, as a share, are taken for the same."""


class Latencies(NamedTuple):
    """Every answered request of a measurement, in seconds; see METRICS for what they are."""

    ttft: list[float]
    tpot: list[float]
    itl: list[float]
    e2el: list[float]
    output: list[int]

    @property
    def tokens_in_a_gap(self) -> float:
        """How many tokens come with each gap, on average: 1 where every token is a chunk of its own."""
        return sum(count - 1 for count in self.output) / len(self.itl) if self.itl else 1.0


def read_side(path: str | os.PathLike[str]) -> Side:
    """The side in a file. Raises InputError, one line, if it holds no result, or one of a scenario that cannot be."""
    where = os.fspath(path)
    found = side_of(where, document_of(where, nan=True))
    if found.scenario is not None:
        read_scenario(where)
    return found


def side_of(where: str, document: Any) -> Side:
    """What a file holds. Raises InputError if it is no result."""
    if not isinstance(document, Mapping) or not all(name in document for name in ("completed", "duration")):
        raise InputError(f"{where}: is no result: give what `vllm bench serve --save-result`, `batchsim run` or "
                         "`batchsim baseline save` wrote")
    if str(document.get("backend", "")).startswith(OURS):
        check(document, where)
        return _ours(document)
    if GOODPUT in document:
        document = {**document, GOODPUT.rstrip(":"): document[GOODPUT]}
    conditions = _conditions(document)
    origin = {name: document[name] for name in ("backend", "model_id") if document.get(name)}
    told = {**DEFINITIONS, "itl": NOT_STATED, "goodput": NOT_STATED}
    if not all(name in document for name in ARRAYS):
        return Side("measured", measured(document), told, conditions, origin)
    found = _latencies(where, document)
    told["itl"] = DEFINITIONS["itl"] if found.tokens_in_a_gap < 1 + NEAR else (
        f"between chunks of {found.tokens_in_a_gap:.3g} tokens")
    return Side("measured", measured(document) | _statistics(document, found), told, conditions, origin,
                notes=tuple(_notes(document, found)))


def merged(sides: Sequence[Side]) -> Side:
    """Several measurements of the same as one: the mean of each metric, and how far they lie apart."""
    first, *others = sides
    if not others:
        return first
    for other in others:
        if _how(other) != _how(first):
            raise InputError("these results were not made alike, so they are no repetitions: give one of them")
    names = [name for name in first.metrics if all(side.metrics.get(name) is not None for side in sides)]
    values = {name: [side.metrics[name] or 0.0 for side in sides] for name in names}
    means = {name: fmean(each) for name, each in values.items()}
    spread = {name: (max(each) - min(each)) / abs(means[name]) for name, each in values.items() if means[name]}
    return Side(first.kind, means, first.definitions, first.conditions, first.origin, first.scenario, spread,
                (f"the mean of {len(sides)} results", *first.notes))


def _how(side: Side) -> tuple[Any, ...]:
    """How it was made; repetitions have all of it in common, and other seeds, so other requests."""
    origin = {name: value for name, value in side.origin.items() if name != "trace_digest"}
    scenario = {name: value for name, value in (side.scenario or {}).items() if name != "seed"}
    return side.kind, side.definitions, side.conditions, origin, scenario


def _ours(document: Mapping[str, Any]) -> Side:
    origin = {name: document.get(name) for name in ("simulator_version", "policy_version", "trace_digest",
                                                    "cost_model")}
    return Side("simulated", measured(document), definitions(document),
                _conditions(document), origin, document.get("scenario"))


def _conditions(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the file tells of them; null is an answer too."""
    return {name: document[name] for name in CONDITIONS if name in document}


def _latencies(where: str, document: Mapping[str, Any]) -> Latencies:
    known = {"errors": [""] * len(columns(where, document, ARRAYS)[0]), **document}
    found = Latencies([], [], [], [], [])
    for at, (error, *entry) in enumerate(zip(*columns(where, known, ("errors", *ARRAYS)), strict=True)):
        if not error and entry[2]:
            _add(found, f"{where}, request {at}", *entry)
    if not found.ttft:
        raise InputError(f"{where}: holds no answered request, so there is nothing to compare")
    return found


def _add(found: Latencies, place: str, ttft: Any, gaps: Any, output: Any) -> None:
    if not isinstance(gaps, list):
        raise InputError(f"{place}: 'itls' must be a list of numbers")
    first, gaps = seconds(place, "ttfts", ttft), [seconds(place, "itls", gap) for gap in gaps]
    count = tokens(place, "output_lens", output)
    found.ttft.append(first)
    found.e2el.append(first + sum(gaps))
    found.output.append(count)
    found.itl.extend(gaps)
    if count > 1:
        found.tpot.append(sum(gaps) / (count - 1))


def _statistics(document: Mapping[str, Any], found: Latencies) -> dict[str, float | None]:
    """The statistics that a simulated run tells, and the percentiles that the file has beside them."""
    told: dict[str, float | None] = {}
    for metric in ("ttft", "tpot", "itl", "e2el"):
        asked = dict.fromkeys([*json_keys(metric), *(name for name in document if name.endswith(f"_{metric}_ms"))])
        told |= {name: _statistic(parts["stem"], getattr(found, metric)) for name in asked
                 if (parts := STEM.fullmatch(name)) and parts["metric"] == metric}
    return told


def _statistic(stem: str, values: list[float]) -> float | None:
    if not values:
        return None
    if stem == "std":
        return 1e3 * float(np.std(values))
    return 1e3 * float(np.mean(values) if stem == "mean" else np.percentile(values, percent_of(stem)))


def percent_of(stem: str) -> float:
    """Which percentile "median" or "p99" is."""
    return 50.0 if stem == "median" else min(100.0, float(stem[1:]))


def _notes(document: Mapping[str, Any], found: Latencies) -> list[str]:
    """Where the file says another TPOT than its arrays do."""
    said = document.get("mean_tpot_ms")
    if not isinstance(said, int | float) or not said or not found.tpot:
        return []
    ours = 1e3 * fmean(found.tpot)
    if abs(said - ours) <= NEAR * ours:
        return []
    with_first = 1e3 * fmean(each / count for each, count in zip(found.e2el, found.output, strict=True))
    other = "counts the first token" if abs(said - with_first) <= NEAR * with_first else "is not what its arrays say"
    return [f"mean_tpot_ms of the file, {said:,.4g}, {other}; from its arrays, the first token excluded, it is "
            f"{ours:,.4g}, which is compared"]
