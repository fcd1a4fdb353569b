"""Several replicas behind a router: whole runs, against what one replica does and against sums over all."""

from __future__ import annotations

import numpy as np
import pytest

from cost_models import Constant
from simulator.errors import InputError
from simulator.routing import ROUTERS
from simulator.scenario import Scenario
from simulator.simulate import run
from traces import Trace


def trace_of(*rows: tuple[int, int, int], **columns) -> Trace:
    """Requests of (arrival in ns, prompt, output)."""
    arrival, prompt, output = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    one = [str(row) for row in range(len(rows))]
    known = {"session": one, "tenant": one, "hash_ids": [[row] for row in range(len(rows))], "hash_block": 16}
    return Trace("made", arrival, prompt, output, **(known | columns))


def scenario(trace: Trace, **fields) -> Scenario:
    return Scenario(**{"trace": trace, "policy": "vllm", "cost_model": Constant(10), "request_overhead": 0.0} | fields)


@pytest.mark.parametrize("router", ROUTERS)
def test_two_requests_of_very_different_length_both_finish(router: str) -> None:
    result = run(scenario(trace_of((0, 4, 2), (0, 4, 500)), replicas=2, router=router))
    assert result.summary()["completed"] == 2
    assert result.requests["left"].max() * 1e9 == 10 * 500


def test_each_replica_does_what_it_does_alone() -> None:
    rows = [(0, 4, 3), (3, 9, 5), (5, 4, 2), (12, 30, 7), (25, 4, 40), (26, 4, 1)]
    both = run(scenario(trace_of(*rows), replicas=2)).requests
    for first in (0, 1):
        start = rows[first][0]
        own = [(at - start, prompt, output) for at, prompt, output in rows[first::2]]
        alone = run(scenario(trace_of(*own))).requests
        mine = both.iloc[first::2].reset_index(drop=True)
        for column in ("ttft", "e2el", "queue_time", "tpot"):
            assert np.allclose(mine[column], alone[column], rtol=0, atol=1e-15, equal_nan=True), column


def test_a_rule_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="unknown router 'round-robbin': did you mean 'round-robin'"):
        Scenario(router="round-robbin")
