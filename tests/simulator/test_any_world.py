"""Any world that can be drawn: every invariant holds, fast is exact, the same is the same, the metrics are the log's.

Each policy of POLICIES plays worlds of each kind in which everything is drawn: see `drawn.scenarios` for what a world
has, `drawn.checks` and `invariants` for what is true of it, `drawn.plain` for the metrics once more. EXAMPLES=1000
plays so many of each policy and kind.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from drawn import plain, short
from drawn.checks import check
from drawn.hearing import heard
from drawn.knobs import KNOBS
from drawn.play import play
from drawn.scenarios import KINDS
from worlds import Affine, trace_of

from simulator import passes, sending, serving, summary, tenancy
from simulator.conversations import Conversations
from simulator.fleet import Fleet
from simulator.measure import rows_of
from simulator.metrics import PER_REQUEST
from simulator.policies import POLICIES, Vllm
from simulator.request import Request
from simulator.scenario import Scenario

EXAMPLES = os.environ.get("EXAMPLES")
EVERY = pytest.mark.parametrize("name", POLICIES)


def played(name: str, worlds: int, start: int) -> Counter[str]:
    """So many worlds of each kind; few of them are refused or stall, and who may send somebody back does so."""
    worlds = int(EXAMPLES or worlds)
    counts = sum((play(name, kind, worlds, start) for kind in KINDS), Counter[str]())
    assert counts["worlds"] > 4 * (counts["refused"] + counts["stalled"])
    assert counts["preemptions"] >= worlds * short.LEAST.get(name, 0)
    assert (counts["preemptions"] > 0) == (name in short.LEAST)
    return counts


@EVERY
def test_hundreds_of_worlds(name: str) -> None:
    counts = played(name, 12, 0)
    assert min(counts[what] for what in ("clusters", "answered", "cancelled")) > 0


@pytest.mark.slow
@pytest.mark.nightly
@EVERY
def test_thousands_of_worlds(name: str) -> None:
    assert played(name, 45, 1)["steps"] > 1500


@EVERY
def test_every_knob_is_drawn(name: str) -> None:
    assert KNOBS[name].keys() == POLICIES[name].knobs().keys()


def small(**fields: Any) -> Scenario:
    """Six requests on a memory that holds two of them; the third and the last are later turns."""
    rows = [(0, 20, 9), (3, 20, 9), (5, 20, 9), (5, 9, 3), (700, 20, 1), (990, 4, 4)]
    trace = replace(trace_of(rows), parent=np.array([-1, -1, 0, -1, -1, 3]), think=np.array([0, 0, 80, 0, 0, 40]))
    return Scenario(trace=trace, policy=Vllm(block_size=4), cost_model=Affine(), max_model_len=40,
                    kv_capacity_tokens=60, request_overhead=0.00002, goodput={"ttft": 0.00008}, exact=True, **fields)


WRONG_METRICS: dict[str, Any] = {
    "median_ttft_ms": (PER_REQUEST, "ttft", lambda line: line.ttft + 1),
    "mean_tpot_ms": (PER_REQUEST, "tpot", lambda line: line.e2el / line.output),
    "std_queue_time_ms": (PER_REQUEST, "queue_time", lambda line: line.queue_time // 2),
    "max_output_tokens_per_s": (vars(summary), "most_tokens_in_a_second", lambda record, line: len(line)),
    "request_goodput": (vars(tenancy), "meets", lambda line, objectives: np.ones(len(line), bool)),
    "mean_batch_size": (vars(summary), "effective_batch", lambda record: record.plan("running").mean()),
    "recomputed_tokens": (vars(passes), "rows_of", lambda step, queue: rows_of(step, queue)._replace(redone=0)),
}


@pytest.mark.parametrize("name", WRONG_METRICS)
def test_a_wrong_metric_is_told(name: str) -> None:
    assert plain.differences(heard(small())) == []
    where, what, wrong = WRONG_METRICS[name]
    with patch.dict(where, {what: wrong}):
        assert name in [line.partition(":")[0] for line in plain.differences(heard(small()))]


class Eager(Conversations):
    """Sends a turn as soon as the one before it is answered."""

    def after(self, row: int, now: int) -> list[Request]:
        turns = super().after(row, now)
        for turn in turns:
            turn.arrival = now
        return turns


class Wider(Fleet):
    """Lets one request more to each replica than it may have."""

    def __init__(self, env: Any, make: Any, limit: int, *rest: Any) -> None:
        super().__init__(env, make, limit + 1, *rest)


@pytest.mark.parametrize(("module", "name", "wrong", "told"), [
    (sending, "Conversations", Eager, "sent at"), (serving, "Fleet", Wider, "more than 1 at a replica")])
def test_a_wrong_rule_outside_of_the_policy_is_told(module: Any, name: str, wrong: Any, told: str) -> None:
    scenario = small(replicas=2, queue_limit=1, overflow="fcfs")
    check(heard(scenario))
    with patch.object(module, name, wrong), pytest.raises(AssertionError, match=told):
        check(heard(scenario))
