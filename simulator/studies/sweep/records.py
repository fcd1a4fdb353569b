"""Records: what a sweep found as flat records, in the shape of `vllm bench sweep`, and what they say of each other.

A record has what was measured, then `run_number`, then what was varied. It knows no run and no file.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from io import StringIO
from typing import Any

from simulator.documents import quoted
from simulator.errors import InputError
from simulator.result import Result
from simulator.scenario import FIELDS, Scenario
from simulator.simulation import run
from simulator.studies.sweep.served import UNSERVED, by_tenant
from simulator.summary import LATENCIES, plain

Record = dict[str, Any]
RUN = "run_number"
THROUGHPUT, INTERACTIVITY = "tokens_per_gpu", "tokens_per_user"
"""Output tokens a second for each GPU, and for each user while the answer comes: what the Pareto set weighs."""
RECKONED = ("output_throughput", "median_tpot_ms", "mean_tpot_ms", "tensor_parallel_size", "replicas", "completed",
            *UNSERVED)
LARGEST = 1e300
_TUPLE = re.compile(r"^\((.*?),?\)$", re.DOTALL)


def summary(scenario: Scenario, percentiles: Sequence[float] = (99,), metrics: Sequence[str] = LATENCIES) -> Record:
    """What a run comes to. It says nothing of when it was made, so that the same run has the same bytes."""
    return undated(run(scenario), percentiles, metrics)


def undated(result: Result, percentiles: Sequence[float], metrics: Sequence[str]) -> Record:
    """The summary without its date, and with the figures of its tenants."""
    told = result.summary(percentiles, metrics) | by_tenant(result)
    return {name: plain(value) for name, value in told.items() if name != "date"}


def record(measured: Mapping[str, Any], values: Mapping[str, Any], number: int = 0) -> Record:
    """A flat record: what was varied comes last, and under its own name only once."""
    return {**{name: value for name, value in measured.items() if name not in values}, RUN: number,
            **{name: _cell(value) for name, value in values.items()}}


def checked(each: Record, where: str) -> Record:
    """A record of a file, if what is reckoned with are numbers. Raises InputError."""
    for name in RECKONED:
        if not isinstance(value := each.get(name), int | float | None) or abs(value or 0) > LARGEST:
            raise InputError(f"{where}: {name} must be a number or null, not {quoted(value)}")
    return each


def knob_of(measured: Mapping[str, Any], knob: str) -> Any:
    """A knob as the run had it, its default resolved; None where the policy lacks it or bounds nothing by it."""
    found = re.search(rf"(?:^|,){re.escape(knob)}=(.*?)(?:,\w+=|$)", measured.get("policy_args") or "", re.DOTALL)
    word = found[1] if found else "None"
    try:
        value = json.loads(_TUPLE.sub(r"[\1]", word))
    except ValueError:
        return None if word == "None" else word
    return tuple(value) if isinstance(value, list) else value


def values_of(each: Record) -> Record:
    """What was varied, of one record; empty for one that does not tell."""
    names = list(each)
    return {name: each[name] for name in names[names.index(RUN) + 1:]} if RUN in each else {}


def varied(records: Sequence[Record]) -> list[str]:
    """Names of what was varied, and differs: all after `run_number`, then fields of a scenario that follow from it."""
    own = [name for each in records for name in values_of(each)]
    follow = [name for name in FIELDS if all(each.get(name) is not None for each in records)]
    return [name for name in dict.fromkeys([*own, *follow]) if len({hashable(each.get(name)) for each in records}) > 1]


def efficiency(each: Record) -> tuple[float, float] | None:
    """Tokens a second for each user and for each GPU; None where nothing was served."""
    total, between = each.get("output_throughput"), each.get("median_tpot_ms") or each.get("mean_tpot_ms")
    gpus = (each.get("tensor_parallel_size") or 1) * (each.get("replicas") or 1)
    return None if not total or not between else (1000 / between, total / gpus)


def to_csv(records: Sequence[Record]) -> str:
    """A row a record; a name that a record lacks is an empty cell."""
    names = dict.fromkeys(name for each in records for name in each)
    text = StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value as a flat record holds it: a mapping is spelled as its flag spells it."""
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{plain(part)}" for key, part in value.items())
    return plain(value)


def hashable(value: Any) -> Hashable:
    """The value, or how it is spelled where it is a list."""
    return value if isinstance(value, Hashable) else repr(value)
