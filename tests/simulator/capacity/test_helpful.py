"""How many replicas may be of any help: with one for each request, more are as good, but where chance picks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from worlds import trace_of

import simulator as sim
from cost_models import Constant
from simulator.replication import MOST_REPLICAS
from simulator.routing import ROUTERS
from simulator.scenario import Scenario
from simulator.studies.capacity.solving import by_chance
from simulator.studies.capacity.traffic import RANDOM_ROUTERS, Traffic
from traces import Trace

STEP = 10_000_000
SEEDS = range(12)


def conversations(seed: int) -> Trace:
    """A few requests on a lattice of steps; turns hold the prompts before them, and first ones may begin alike."""
    chance = np.random.default_rng(seed)
    count = int(chance.integers(2, 25))
    sessions = chance.integers(0, max(2, count // 2), count).tolist()
    parent, blocks, last = np.full(count, -1), list[list[int]](), dict[int, int]()
    for row, session in enumerate(sessions):
        parent[row] = last.get(session, -1)
        begins = blocks[parent[row]] if parent[row] >= 0 else [1000 + int(chance.integers(0, 3))]
        blocks.append([*begins, *(10 * row + at for at in range(int(chance.integers(1, 4))))])
        last[session] = row
    return Trace("made", np.sort(chance.integers(0, 60, count)) * STEP, np.array([16 * len(each) for each in blocks]),
                 chance.integers(1, 9, count), session=tuple(map(str, sessions)), parent=parent,
                 hash_ids=blocks, hash_block=16)    # type: ignore[arg-type]


def served(trace: Trace, replicas: int, **options: Any) -> tuple[list[int], list[int]]:
    line = sim.simulate(trace, replicas=replicas, cost_model=Constant(STEP), kv_capacity_tokens=3000.0,
                        **options).timeline
    return line.ttft.tolist(), line.e2el.tolist()


@pytest.mark.parametrize("options", [
    {"policy": "static"}, {"policy": "static", "queue_limit": 1, "turns": "recorded"},
    {"policy": "sglang", "turns": "recorded"}], ids=["static", "one at a time", "sglang"])
@pytest.mark.parametrize("router", ROUTERS)
def test_with_a_replica_for_each_request_three_more_change_nothing(router: str, options: dict[str, Any]) -> None:
    more, fewer = set(), set()
    for trace in map(conversations, SEEDS):
        enough = served(trace, len(trace), router=router, **options)
        more.add(enough == served(trace, len(trace) + 3, router=router, **options))
        fewer.add(enough == served(trace, max(1, len(trace) // 3), router=router, **options))
    assert False in fewer
    if router not in RANDOM_ROUTERS:
        assert more == {True}
    elif router == "random" and "queue_limit" not in options:
        assert False in more    # two of them share one of the many


@pytest.mark.parametrize("router", ROUTERS)
def test_no_more_are_of_help_than_requests_unless_chance_or_who_tries_again_shares_one(router: str) -> None:
    trace = conversations(1)
    helpful = Traffic([Scenario(trace, router=router)]).helpful
    assert helpful == (MOST_REPLICAS if router in RANDOM_ROUTERS else len(trace))
    assert Traffic([Scenario(trace, router=router, max_retries=1)]).helpful == MOST_REPLICAS


@pytest.mark.parametrize("router", ROUTERS)
def test_only_a_router_that_draws_is_told_to_share_and_where_there_is_one_for_each(router: str) -> None:
    traffic = Traffic([Scenario(conversations(1), router=router)])
    told = by_chance(traffic, traffic.requests, allowed=False)
    assert told == (f"; router {router} may send two requests to one of them, however many there are: --router "
                    "least-outstanding does not" if router in RANDOM_ROUTERS else "")
    assert by_chance(traffic, traffic.requests - 1, allowed=False) == ""
    assert by_chance(traffic, traffic.requests, allowed=True) == ""


def test_fewer_replicas_than_requests_must_be_shared_under_any_router() -> None:
    """Forty come at a time, to 32 replicas at most."""
    trace = trace_of([(at // 40 * 100 * STEP, 3, 4) for at in range(400)])
    told = sim.plan(trace, policy="static", settings={"max_batch_size": 1}, cost_model=Constant(STEP),
                    goodput={"e2el": 40.0}, attainment=0.99, replications=1, router="random").best.why_not
    assert told.startswith("32 replicas, the most that are tried ")
    assert "may send two" not in told
