"""Objectives in seconds, where milliseconds are meant: shorter than any step, so that nobody can keep them."""

from __future__ import annotations

import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.haste import too_hasty
from simulator.remarks import remarks

STEP_MS = 8
COST = Constant(STEP_MS * 1_000_000)
TRACE = trace_of([(0, 4, 2), (10, 4, 1)])


def test_a_limit_below_the_shortest_step_is_kept_by_nobody_and_one_of_a_step_may_be() -> None:
    told = list(too_hasty({"ttft": 7.9, "e2el": 3, "tpot": 0.05}, COST))
    assert told == [
        "goodput ttft:7.9 is kept by nobody: the shortest step takes 8 ms, and limits are in ms (7.9 s is ttft:7900)",
        "goodput e2el:3 is kept by nobody: the shortest step takes 8 ms, and limits are in ms (3 s is e2el:3000)"]
    assert not list(too_hasty({"ttft": STEP_MS, "e2el": STEP_MS}, COST))


@pytest.mark.parametrize(("limit", "kept", "told"), [(7.999, 0, True), (8, 1, False)])
def test_a_run_tells_it_and_is_right(limit: float, kept: int, told: bool) -> None:
    """The first request is alone when it comes, and has its first token after one step."""
    result = sim.simulate(TRACE, cost_model=COST, goodput={"ttft": limit})
    assert result.summary()["request_goodput"] * result.summary()["duration"] == pytest.approx(kept)
    assert any("is kept by nobody" in line for line in remarks(result)) == told


def test_a_sweep_tells_it_once_and_of_an_objective_that_is_varied_each() -> None:
    def told(**asked: object) -> int:
        return sum("is kept by nobody" in line
                   for line in sim.sweep(TRACE, cost_model=COST, **asked).account().warnings)    # type: ignore[arg-type]

    assert told(vary={"max_num_seqs": [1, 2]}, goodput={"ttft": 0.5}) == 1
    assert told(vary={"goodput.ttft": [0.5, 2, 500]}) == 2
